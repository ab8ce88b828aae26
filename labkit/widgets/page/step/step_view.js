// The view of `labkit.step`: one recorded block of a CUDA kernel, replayed in the page.
//
// labkit/widgets/step.py joins the files of this folder to one module, and writes the recording as JSON; nothing
// is asked of a kernel afterwards. In a page without a kernel the same script shows what stands there (showAll).
//   recording, memory, origins    what happened: decoded once, then asked; they know no page
//   player                        the time (how many events have happened), what is chosen, and the verbs
//   source_view, lanes_view, ...  each shows the player's moment in place
//   this file                     puts them together: buttons, keys, the sentence that is read aloud
// Time t means "after t events". The current event of a warp is its last one before t.

// A verb: its name in the page, its keys, and what it does. `by` pairs stand as ◀ name ▶.
const PAIRS = [
  {
    name: "line",
    back: "one line back",
    on: "one line on",
    keys: "← → or p n",
    does: (player, by) => player.stepLine(by),
  },
  {
    name: "instruction",
    back: "one instruction back",
    on: "one instruction on",
    keys: "⇧← ⇧→",
    does: (player, by) => player.stepInstruction(by),
  },
  {
    name: "warp",
    back: "to the previous change of warps",
    on: "to where another warp begins to run",
    keys: "W w",
    does: (player, by) => player.toWarp(by),
  },
  {
    name: "barrier",
    back: "to the previous barrier",
    on: "to the next barrier",
    keys: "B b",
    does: (player, by) => player.toBarrier(by),
  },
  {
    name: "chosen line",
    back: "back to the chosen line",
    on: "on to the chosen line",
    keys: "L l",
    does: (player, by) => player.toLine(by),
  },
];

const HELP = [
  ["← → or p n", "line"],
  ["⇧← ⇧→", "instruction"],
  ["w W", "warp change"],
  ["b B", "barrier"],
  ["l L", "chosen line"],
  ["Space", "play"],
  ["Home End", "start, end"],
  ["[ ]", "writes to the cell"],
  ["{ }", "accesses to it"],
  ["f", "where from"],
  ["r", "jump to the finding"],
];

class StepView {
  constructor(recording) {
    this.recording = recording;
    this.player = new Player(recording);
    this.root = make("section", { class: "lks", tabindex: "-1", "aria-label": `Steps of ${recording.head.kernel}` });
    this.root.lks = { recording, player: this.player };
    this.keys = this.keyTable();
  }

  // Build into `parent`. The colours are known only there.
  show(parent) {
    const { player, root } = this;
    parent.append(root);
    this.paint = new Paint(root);
    const ask = () => this.origin.ask();
    this.timeline = new TimelineView(player, this.paint);
    this.source = new SourceView(player);
    this.lanes = new LanesView(player, ask);
    this.memory = new MemoryView(player, this.paint, ask);
    this.origin = new OriginView(player);
    this.said = make("p", { class: "lks-said", role: "status", "aria-live": "polite" });
    const columns = make(
      "div",
      { class: "lks-columns" },
      this.source.element,
      this.lanes.element,
      ...this.memory.elements,
    );
    root.append(
      this.header(),
      this.findings(),
      this.bar(),
      this.said,
      this.timeline.element,
      columns,
      this.help(),
      this.origin.element,
    );
    player.listen(() => this.update());
    root.addEventListener("keydown", (event) => this.key(event));
    this.watch();
    this.resize();
    this.update();
  }

  watch() {
    this.resized = new ResizeObserver(() => {
      if (this.root.clientWidth !== this.measured) this.resize();
    });
    this.resized.observe(this.root);
    // Whatever changes the theme changes the background, and that is a transition; a change of style sheets
    // cancels it, and hides the page for a moment.
    const repaint = () => {
      this.paint.refresh();
      this.resize();
    };
    for (const over of ["transitionend", "transitioncancel"])
      this.root.addEventListener(over, (event) => {
        if (event.target === this.root) requestAnimationFrame(repaint);
      });
  }

  close() {
    this.player.pause();
    this.resized.disconnect();
  }

  resize() {
    const wasHidden = !this.measured;
    this.measured = this.root.clientWidth;
    if (!this.measured) return;
    if (wasHidden) this.paint.refresh(); // what is not in the page yet has no colours
    this.timeline.resize(this.timeline.element.clientWidth);
    this.memory.resize();
  }

  header() {
    const { head, warps } = this.recording;
    const triple = (at) => `(${at.slice(0, at[2] > 1 || at.length < 3 ? 3 : 2).join(", ")})`;
    const facts = make("ul", { class: "lks-facts" });
    for (const [name, value] of [
      ["grid", triple(head.grid)],
      ["block", `${triple(head.block)}, ${plural(this.recording.threads, "thread")}, ${plural(warps, "warp")}`],
      ["recorded", `block ${triple(head.at)}`],
      ["schedule", head.schedule],
      ["code", head.code],
    ])
      facts.append(make("li", {}, make("span", {}, `${name} `), value));
    const header = make("div", { class: "lks-header" }, make("h3", {}, head.kernel), facts);
    for (const notice of [head.stopped, head.cut]) {
      if (!notice || (notice === head.stopped && this.saidBy(notice) >= 0)) continue;
      const line = notice.line && !notice.message.startsWith("line") ? `Line ${notice.line}: ` : "";
      header.append(
        make(
          "p",
          { class: "lks-notice" },
          make("b", {}, notice === head.stopped ? "Stopped. " : "Cut. "),
          line,
          ...message(notice.message),
        ),
      );
    }
    return header;
  }

  // The finding that says the same as what stopped the kernel; -1 if none does.
  saidBy(stopped) {
    return this.recording.head.findings.findIndex((finding) => stopped.message.includes(finding.message));
  }

  findings() {
    const { findings, stopped } = this.recording.head;
    const stopping = stopped ? this.saidBy(stopped) : -1;
    const list = make("ul", { class: "lks-findings" });
    if (!findings.length) list.hidden = true;
    findings.forEach((finding, number) => {
      const item = make(
        "li",
        {},
        make("span", { "aria-hidden": "true" }, "⚠ "),
        make("b", {}, finding.tool + (number === stopping ? ", stopped here." : "")),
        finding.line ? ` Line ${finding.line}: ` : " ",
        ...message(finding.message),
        " ",
      );
      finding.events.forEach((_, side) => {
        const name = finding.events.length > 1 ? ["first side", "second side"][side] : "go there";
        const button = make("button", { type: "button" }, name);
        button.addEventListener("click", () => this.player.toFinding(number, side));
        item.append(button, " ");
      });
      list.append(item);
    });
    return list;
  }

  bar() {
    const bar = make("div", { class: "lks-bar", role: "toolbar", "aria-label": "Steps" });
    const button = (sign, says, action) => {
      const found = make("button", { type: "button", "aria-label": says, title: says }, sign);
      found.addEventListener("click", action);
      return found;
    };
    bar.append(button("|◀︎", "to the start (Home)", () => (this.player.pause(), this.player.go(0))));
    this.pairs = PAIRS.map(({ name, back, on, keys, does }) => {
      const act = (by) => () => this.go(name, by, does);
      const label = make("span", { "aria-hidden": "true" }, name);
      const pair = make(
        "span",
        { class: "lks-pair" },
        button("◀︎", `${back} (${keys})`, act(-1)),
        label,
        button("▶︎", `${on} (${keys})`, act(1)),
      );
      bar.append(pair);
      return { pair, label, name };
    });
    bar.append(button("▶︎|", "to the end (End)", () => (this.player.pause(), this.player.go(this.recording.n))));
    this.playing = button("▶︎ play", "play (Space)", () => this.player.play());
    this.playing.classList.add("lks-play");
    this.speed = make(
      "select",
      { "aria-label": "Speed" },
      ...SPEEDS.map(([name, value]) => make("option", { value: String(value) }, name)),
    );
    this.speed.value = String(this.player.speed);
    this.speed.addEventListener("change", () => (this.player.speed = Number(this.speed.value)));
    const names = Array.from({ length: this.recording.warps }, (_, warp) =>
      make("option", { value: String(warp) }, `warp ${warp}`),
    );
    const id = newId();
    this.warp = make("select", { id }, make("option", { value: "" }, "the running warp"), ...names);
    this.warp.addEventListener("change", () =>
      this.player.follow(this.warp.value === "" ? null : Number(this.warp.value)),
    );
    bar.append(
      make("span", { class: "lks-group" }, this.playing, this.speed),
      make("span", { class: "lks-group" }, make("label", { for: id }, "follow"), this.warp),
    );
    return bar;
  }

  help() {
    const list = make("p", { class: "lks-help" }, make("b", {}, "Keys, while the focus is in here: "));
    for (const [keys, what] of HELP) {
      if (keys === "r" && !this.recording.head.findings.length) continue;
      list.append(
        make("span", {}, ...keys.split(" ").map((key) => (key === "or" ? " or " : make("kbd", {}, key))), ` ${what}`),
        " ",
      );
    }
    return list;
  }

  update() {
    const { player } = this;
    this.timeline.update();
    this.source.update();
    this.lanes.update();
    this.memory.update();
    if (this.warp.value !== String(player.chosenWarp ?? "")) this.warp.value = String(player.chosenWarp ?? "");
    setText(this.playing, player.playing ? "⏸︎ pause" : "▶︎ play");
    if (this.wasPlaying !== player.playing) {
      this.wasPlaying = player.playing;
      this.playing.setAttribute("aria-label", player.playing ? "pause (Space)" : "play (Space)");
      this.said.setAttribute("aria-live", player.playing ? "off" : "polite");
    }
    const { label, pair } = this.pairs.at(-1);
    setText(label, player.line ? `line ${player.line}` : "chosen line");
    for (const button of pair.querySelectorAll("button")) button.disabled = !player.line;
    setText(this.said, sentence(player));
  }

  // One of the pairs of verbs; where it leads nowhere, say so.
  go(name, by, does) {
    this.player.pause();
    if (does(this.player, by)) return;
    const which = name === "chosen line" && this.player.line ? `line ${this.player.line}` : name;
    setText(this.said, `${sentence(this.player)} There is no ${by > 0 ? "further" : "earlier"} ${which} from here.`);
  }

  keyTable() {
    const { player } = this;
    const stopped = (action) => () => (player.pause(), action());
    const verbs = PAIRS.map(
      ({ name, does }) =>
        (by) =>
        () =>
          this.go(name, by, does),
    );
    const [line, instruction, warp, barrier, chosen] = verbs;
    return {
      ArrowRight: line(1),
      ArrowLeft: line(-1),
      n: line(1),
      p: line(-1),
      "Shift ArrowRight": instruction(1),
      "Shift ArrowLeft": instruction(-1),
      w: warp(1),
      W: warp(-1),
      b: barrier(1),
      B: barrier(-1),
      l: chosen(1),
      L: chosen(-1),
      Home: stopped(() => player.go(0)),
      End: stopped(() => player.go(this.recording.n)),
      " ": () => player.play(),
      "]": stopped(() => player.toWrite(1)),
      "[": stopped(() => player.toWrite(-1)),
      "}": stopped(() => player.toAccess(1)),
      "{": stopped(() => player.toAccess(-1)),
      f: () => this.origin.ask(),
      r: stopped(() => player.nextFinding()),
    };
  }

  // The notebook has keys of its own: x would cut the cell. Escape leaves the view for its cell.
  key(event) {
    if (event.key === "Escape") this.root.closest(".jp-Cell")?.focus();
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Escape") return;
    if (!(event.shiftKey && event.key === "Enter")) event.stopPropagation();
    const { target } = event;
    const isField = target.matches("select, textarea, input:not([type=checkbox])");
    if (isField || (event.key === " " && target.matches("button, summary, input"))) return;
    const shifted = event.shiftKey && event.key.startsWith("Arrow") ? `Shift ${event.key}` : event.key;
    const action = this.keys[shifted];
    if (!action) return;
    event.preventDefault();
    action();
  }
}

// Show a recording in `parent`; what stands there is replaced when it can be shown.
async function open(text, parent) {
  const start = performance.now();
  try {
    const view = new StepView(await Recording.open(text));
    const decoded = performance.now();
    parent.replaceChildren();
    view.show(parent);
    view.root.lks.opened = { decoded: decoded - start, shown: performance.now() - start }; // milliseconds
    parent.lks = view.root.lks;
    return view;
  } catch (error) {
    parent.append(make("p", { class: "lks-error", role: "status" }, String(error?.message ?? error)));
    return null;
  }
}

function render({ model, el }) {
  let view = null;
  let gone = false;
  const show = async () => {
    view?.close();
    const text = model.get("recording");
    el.replaceChildren(make("p", { role: "status" }, "Opening the recording …"));
    view = await open(text, el);
    if (!view) el.firstChild.remove();
    if (gone) view?.close();
  };
  model.on("change:recording", show);
  show();
  return () => {
    gone = true;
    view?.close();
    model.off("change:recording", show);
  };
}

function showAll() {
  for (const place of document.querySelectorAll(".lks-still:not([data-shown])")) {
    place.dataset.shown = "";
    open(place.querySelector('script[type="application/json"]').textContent, place);
  }
}

export default { render };
