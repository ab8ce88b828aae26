// An explorer in the page: its controls, its pictures, and what pointing, clicking and stepping do.
//
// Python (labkit/widgets/explorer.py) computes and draws; the page asks for other positions of the controls and
// shows the answer. `asked` is {id, positions}; `shown` is {id, controls, pictures, conclusion, details, error}.
// ipywidgets keeps one message on its way at most and sends the newest after it, so that a drag never queues up.
// What the elements of a picture carry (data-link, data-set, ...) is written in labkit/figures/svg.py.

const BUSY_MS = 150; // an answer that takes longer is announced
const PLAY_MS = 900; // from step to step

function render({ model, el }) {
  const explorer = new Explorer(model, el);
  return () => explorer.close();
}

class Explorer {
  constructor(model, el) {
    this.model = model;
    this.inputs = new Map(); // a control's name -> its parts in the page
    this.root = make("section", { class: "lk", "aria-label": model.get("title") });
    this.note = make("p", { class: "lk-note", role: "status", hidden: "" });
    this.pictures = make("div", { class: "lk-pictures" });
    this.conclusion = make("p", { class: "lk-conclusion", role: "status", "aria-live": "polite" });
    this.readout = make("p", { class: "lk-readout", "aria-live": "polite" });
    this.form = make("form", { class: "lk-controls" });
    this.busy = make("span", { class: "lk-busy", role: "status" });
    this.details = make("details", {}, make("summary", {}, "Details"));
    this.words = make("div");
    this.details.append(this.words);
    const side = make("div", { class: "lk-side" }, this.conclusion, this.readout, this.form, this.details);
    this.root.append(this.note, this.pictures, side);
    el.append(this.root);
    this.listen();
    this.onShown = () => this.show();
    model.on("change:shown", this.onShown);
    this.show();
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(this.pictures);
    this.onKernelGone = () => this.leave();
    model.on("comm_live_update", this.onKernelGone); // ipywidgets says this of all widgets of a kernel that restarts
    this.root.addEventListener("labkit-gone", this.onKernelGone); // labkit's part of JupyterLab: of one shut down
  }

  close() {
    this.stop();
    clearTimeout(this.waiting);
    this.resized.disconnect();
    this.model.off("change:shown", this.onShown);
    this.model.off("comm_live_update", this.onKernelGone);
  }

  // What Python has drawn.

  show() {
    const shown = this.model.get("shown");
    const latest = shown.id >= (this.asked ?? 0);
    if (latest) this.ready();
    this.drawControls(shown.controls, latest);
    const focus = document.activeElement?.closest?.(".lk svg [data-key]")?.dataset.key;
    const scrolled = [...this.pictures.children].map((box) => box.scrollLeft);
    this.pictures.innerHTML = shown.pictures.map((svg) => `<div class="lk-scroll">${svg}</div>`).join("");
    [...this.pictures.children].forEach((box, i) => (box.scrollLeft = scrolled[i] ?? 0));
    if (focus) this.pictures.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
    for (const svg of this.pictures.querySelectorAll("svg"))
      svg.style.minWidth = `${Math.min(0.85 * svg.getAttribute("width"), 600)}px`;
    this.fit();
    this.conclusion.textContent = shown.error || shown.conclusion;
    this.conclusion.classList.toggle("lk-error", Boolean(shown.error));
    this.words.innerHTML = shown.details;
    this.details.hidden = !shown.details;
    if (!this.words.contains(document.activeElement)) this.readout.textContent = shown.hint || "";
  }

  // A picture that scrolls can be reached with the keyboard.
  fit() {
    for (const box of this.pictures.children)
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
  }

  drawControls(controls, latest) {
    const names = controls.map((control) => control.name).join();
    if (names !== this.names) this.buildControls(controls);
    this.names = names;
    for (const control of controls) {
      const parts = this.inputs.get(control.name);
      const labels = control.labels.join("\n");
      if (parts.labels !== labels) {
        parts.labels = labels;
        if (control.kind === "menu")
          parts.input.replaceChildren(...control.labels.map((text, i) => make("option", { value: i }, text)));
        else parts.input.max = control.labels.length - 1;
      }
      parts.control = control;
      if (latest || parts.input !== document.activeElement) parts.input.value = control.position;
      parts.input.disabled = Boolean(control.why) || this.gone;
      parts.why.textContent = control.why;
      this.say(parts);
    }
    const reset = this.form.querySelector(".lk-reset"); // it keeps the focus that it has
    reset.disabled = this.gone || (reset !== document.activeElement && controls.every((c) => c.position === c.first));
  }

  buildControls(controls) {
    this.inputs.clear();
    this.form.replaceChildren();
    const groups = new Map();
    for (const control of controls) {
      if (!groups.has(control.group)) {
        const group = make("fieldset");
        if (control.group) group.append(make("legend", {}, control.group));
        groups.set(control.group, group);
        this.form.append(group);
      }
      groups.get(control.group).append(this.buildControl(control));
    }
    const reset = make("button", { type: "button", class: "lk-reset" }, "Reset");
    reset.addEventListener("click", () => {
      this.stop();
      this.ask(Object.fromEntries([...this.inputs].map(([name, { control }]) => [name, control.first])));
    });
    this.form.append(reset, this.busy);
  }

  buildControl(control) {
    const id = `lk-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
    const menu = control.kind === "menu";
    const input = menu ? make("select", { id }) : make("input", { id, type: "range", min: 0, step: 1 });
    const value = make("output", { for: id, "aria-hidden": "true" });
    const why = make("span", { class: "lk-why" });
    const name = make("span", { class: "lk-name" }, make("label", { for: id }, control.label), menu ? "" : value);
    const box = make("div", { class: "lk-control" }, name, input, why);
    const parts = { input, value, why, control, labels: null };
    if (control.kind === "steps") box.append(this.stepButtons(control, parts));
    this.inputs.set(control.name, parts);
    input.addEventListener("input", () => {
      if (!menu) this.say(parts);
      this.ask({ [control.name]: Number(input.value) });
    });
    return box;
  }

  stepButtons({ name, label }, parts) {
    const by = (step) => {
      const to = Number(parts.input.value) + step;
      if (to < 0 || to >= parts.control.labels.length) return false;
      parts.input.value = to;
      this.say(parts);
      this.ask({ [name]: to });
      return true;
    };
    const button = (sign, says, action) => {
      const made = make("button", { type: "button", "aria-label": `${says}: ${label}`, title: says }, sign);
      made.addEventListener("click", action);
      return made;
    };
    parts.play = button("▶︎", "play", () => {
      if (this.playing) return this.stop();
      if (!by(1)) this.ask({ [name]: 0 }); // at the end: from the start
      parts.play.textContent = "⏸︎";
      parts.play.setAttribute("aria-label", `pause: ${label}`);
      this.playing = setInterval(() => by(1) || this.stop(), PLAY_MS);
      this.player = parts.play;
    });
    const back = button("◀︎", "step back", () => (this.stop(), by(-1)));
    const on = button("▶︎|", "step forward", () => (this.stop(), by(1)));
    return make("span", { class: "lk-steps" }, back, parts.play, on);
  }

  stop() {
    if (!this.playing) return;
    clearInterval(this.playing);
    this.playing = null;
    this.player.textContent = "▶︎";
    this.player.setAttribute("aria-label", this.player.getAttribute("aria-label").replace("pause", "play"));
  }

  say({ input, value, control }) {
    const text = control.labels[input.value] ?? "";
    value.textContent = text;
    if (control.kind !== "menu") input.setAttribute("aria-valuetext", `${control.label} = ${text}`);
  }

  // What the student asks for.

  ask(positions) {
    if (this.gone) return;
    const now = Object.fromEntries([...this.inputs].map(([name, { input }]) => [name, Number(input.value)]));
    Object.assign(now, positions);
    for (const [name, position] of Object.entries(positions)) {
      const parts = this.inputs.get(name);
      parts.input.value = position;
      this.say(parts);
    }
    this.asked = Math.max(this.asked ?? 0, this.model.get("shown").id) + 1;
    this.model.set("asked", { id: this.asked, positions: now });
    this.model.save_changes();
    this.waiting ??= setTimeout(() => {
      this.busy.textContent = "at work …";
      this.root.setAttribute("aria-busy", "true");
    }, BUSY_MS);
  }

  ready() {
    clearTimeout(this.waiting);
    this.waiting = null;
    this.busy.textContent = "";
    this.root.removeAttribute("aria-busy");
  }

  leave() {
    this.gone = true;
    this.stop();
    this.ready();
    this.root.classList.add("lk-stale");
    this.note.hidden = false;
    this.note.textContent =
      "The kernel that drew this has ended. The picture is its last one: run the cell again to use the controls.";
    this.drawControls(this.model.get("shown").controls, true);
    for (const button of this.form.querySelectorAll(".lk-steps button")) button.disabled = true;
  }

  // Pointing, clicking and keys in the pictures and the details.

  listen() {
    const point = (event) => this.point(event.target.closest("[data-link], [data-tip]"));
    for (const place of [this.pictures, this.words]) {
      place.addEventListener("pointerover", point);
      place.addEventListener("pointerleave", () => this.point(null));
      place.addEventListener("focusin", point);
      place.addEventListener("focusout", () => this.point(null));
      place.addEventListener("click", (event) => this.click(event));
      place.addEventListener("keydown", (event) => this.key(event));
    }
    this.pictures.addEventListener("pointermove", (event) => this.grid(event, !event.buttons));
    // Not at the click: a preview that comes while the button is down replaces what was pressed, and Firefox
    // then tells of no click.
    this.pictures.addEventListener("pointerdown", (event) => event.button || this.grid(event));
    this.pictures.addEventListener("pointerleave", () => this.forget());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.root.addEventListener("keydown", keepKey);
  }

  point(element) {
    const link = element?.dataset.link;
    if (link === this.link && !element?.dataset.tip) return;
    this.link = link;
    this.root.classList.toggle("lk-linking", Boolean(link));
    const links = link?.split(" ") ?? [];
    for (const each of this.root.querySelectorAll("[data-link]"))
      each.classList.toggle("lk-linked", each.dataset.link.split(" ").some((one) => links.includes(one)));
    this.readout.textContent = element?.dataset.tip ?? this.model.get("shown").hint ?? "";
  }

  click(event) {
    const chosen = event.target.closest("[data-set]");
    if (chosen) this.ask(JSON.parse(chosen.dataset.set));
    else this.grid(event);
  }

  // A grid of cells: where the pointer is tells the positions of its two controls. Where the grid can be
  // hovered, that is a preview until a click; leaving the picture brings back what was chosen.
  grid(event, hovering = false) {
    const grid = event.target.closest("[data-cols]");
    if (hovering && grid?.dataset.hover === undefined) return this.forget();
    if (!grid) return;
    const box = grid.getBoundingClientRect();
    const place = (at, start, size, count) => Math.max(0, Math.min(count - 1, Math.floor(((at - start) / size) * count)));
    const positions = {};
    if (grid.dataset.x) positions[grid.dataset.x] = place(event.clientX, box.left, box.width, +grid.dataset.cols);
    if (grid.dataset.y) positions[grid.dataset.y] = place(event.clientY, box.top, box.height, +grid.dataset.rows);
    const before = Object.fromEntries(Object.keys(positions).map((name) => [name, Number(this.inputs.get(name).input.value)]));
    if (hovering) this.chosen ??= before;
    else this.chosen = null;
    if (Object.entries(positions).some(([name, to]) => before[name] !== to)) this.ask(positions);
  }

  forget() {
    if (this.chosen) this.ask(this.chosen);
    this.chosen = null;
  }

  key(event) {
    const element = event.target;
    if (element.dataset.set && (event.key === "Enter" || event.key === " ")) {
      this.ask(JSON.parse(element.dataset.set));
    } else if (element.dataset.cols) {
      const [name, step] = {
        ArrowLeft: [element.dataset.x, -1],
        ArrowRight: [element.dataset.x, 1],
        ArrowUp: [element.dataset.y, -1],
        ArrowDown: [element.dataset.y, 1],
      }[event.key] ?? [];
      if (!name) return;
      const { input, control } = this.inputs.get(name);
      const to = Number(input.value) + step;
      if (to >= 0 && to < control.labels.length) this.ask({ [name]: to });
    } else return;
    event.preventDefault();
  }
}

// The notebook has keys of its own: an arrow would leave a slider for another cell, and x cut the cell. Escape
// leaves the explorer for its cell.
function keepKey(event) {
  if (event.key === "Escape") event.currentTarget.closest(".jp-Cell")?.focus();
  const theirs = event.ctrlKey || event.metaKey || event.altKey || event.key === "Escape";
  if (!theirs && !(event.shiftKey && event.key === "Enter")) event.stopPropagation();
}

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export default { render };
