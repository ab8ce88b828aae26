const GUTTER = 58; // pixels for the warps' names
const EDGE = 8; // half of a slider's thumb, so that slider and time line stand one below the other
const CLOSE = 160; // events around the moment, when one looks closely
const [READY, RUNS, PART, WAITS] = [1, 2, 4, 8];

// One row per warp: where it runs, with all its lanes or a part, where it waits, and where others run.
class TimelineView {
  constructor(player, paint) {
    this.player = player;
    this.paint = paint;
    this.recording = player.recording;
    this.close = false;
    this.span = [0, Math.max(1, this.recording.n)];
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.cursor = make("div", { class: "lks-cursor", "aria-hidden": "true" });
    this.marks = make("div", { class: "lks-marks" });
    this.plot = make("div", { class: "lks-plot" }, this.marks, this.canvas, this.cursor);
    const id = newId();
    this.slider = make("input", { type: "range", id, min: "0", max: String(this.recording.n), step: "1", value: "0" });
    this.where = make("output", { for: id, class: "lks-where" });
    const zoom = make("input", { type: "checkbox", id: newId() });
    zoom.addEventListener("change", () => {
      this.close = zoom.checked;
      this.look();
      this.update();
    });
    this.element = make(
      "div",
      { class: "lks-timeline" },
      make(
        "div",
        { class: "lks-head" },
        make("h4", {}, make("label", { for: id }, "Time")),
        this.where,
        make("span", { class: "lks-check" }, zoom, make("label", { for: zoom.id }, "close up")),
        legend(["runs", "part", "waits", "ready"]),
      ),
      this.plot,
      this.slider,
    );
    this.listen();
  }

  listen() {
    this.slider.addEventListener("input", () => {
      this.wanted = Number(this.slider.value);
      this.frame ??= requestAnimationFrame(() => {
        this.frame = null;
        this.player.pause();
        this.player.go(this.wanted);
      });
    });
    this.plot.addEventListener("pointerdown", (event) => {
      if (event.button || event.target.closest("button")) return;
      this.plot.setPointerCapture(event.pointerId);
      this.from = event.clientX;
      this.dragged = false;
      this.player.pause();
      this.click(event);
    });
    this.plot.addEventListener("pointermove", (event) => {
      if (this.from === undefined || (!this.dragged && Math.abs(event.clientX - this.from) < 4)) return;
      this.dragged = true;
      this.player.go(this.timeAt(event));
    });
    for (const end of ["pointerup", "pointercancel"]) this.plot.addEventListener(end, () => (this.from = undefined));
  }

  // A click chooses the moment; on the row of a warp that does not run then, it also chooses that warp.
  click(event) {
    const { recording, player } = this;
    const box = this.canvas.getBoundingClientRect();
    const warp = Math.floor((event.clientY - box.top) / this.high);
    if (event.clientX - box.left < GUTTER) {
      if (warp >= 0 && warp < recording.warps) player.follow(player.chosenWarp === warp ? null : warp);
      return;
    }
    let t = this.timeAt(event);
    const near = recording.nextEvent(Math.max(0, Math.min(recording.warps - 1, warp)), Math.max(0, t - 1));
    const reach = ((this.span[1] - this.span[0]) / this.wide) * 3;
    if (warp >= 0 && warp < recording.warps) {
      if (near >= 0 && near - t < reach) {
        t = recording.endOf(near);
        if (player.chosenWarp !== null) player.chosenWarp = warp;
      } else if (player.warp !== warp) player.chosenWarp = warp;
    }
    if (!player.go(t)) player.changed();
  }

  timeAt(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left - GUTTER;
    const [from, to] = this.span;
    return Math.round(from + (Math.max(0, Math.min(this.wide, x)) / this.wide) * (to - from));
  }

  place(t) {
    const [from, to] = this.span;
    return GUTTER + ((t - from) / (to - from)) * this.wide;
  }

  resize(width) {
    if (!width) return;
    const { warps } = this.recording;
    this.width = width;
    this.wide = Math.max(10, width - GUTTER - EDGE);
    this.high = warps <= 8 ? 14 : warps <= 16 ? 10 : 7;
    this.context = sizeCanvas(this.canvas, width, this.high * warps + 2);
    this.slider.style.marginLeft = `${GUTTER - EDGE}px`;
    this.slider.style.width = `${this.wide + 2 * EDGE}px`;
    this.cursor.style.height = `${this.high * warps + 4}px`;
    this.look();
    this.update();
  }

  // Choose the span that is shown, and draw it.
  look() {
    const { n } = this.recording;
    const span = this.close && n > CLOSE ? Math.max(0, Math.min(n - CLOSE, this.player.t - CLOSE / 2)) : 0;
    this.span = this.close && n > CLOSE ? [span, span + CLOSE] : [0, Math.max(1, n)];
    this.draw();
  }

  draw() {
    if (!this.wide) return;
    const { context, paint, recording } = this;
    context.fillStyle = paint.paperCss;
    context.fillRect(0, 0, this.width, this.canvas.height);
    const pixels = Math.ceil(this.wide) + 1;
    const flags = this.flags(pixels);
    for (let warp = 0; warp < recording.warps; warp++) {
      const row = flags.subarray(warp * pixels, (warp + 1) * pixels);
      for (let x = 0; x < pixels; ) {
        let end = x + 1;
        while (end < pixels && row[end] === row[x]) end++;
        this.bar(GUTTER + x, warp * this.high, end - x, row[x]);
        x = end;
      }
    }
    this.names();
    this.drawMarks();
  }

  // What each warp does in each column of pixels, from the events in the span.
  flags(pixels) {
    const { recording } = this;
    const [from, to] = this.span;
    const scale = this.wide / (to - from);
    const flags = new Uint8Array(recording.warps * pixels);
    const put = (warp, start, end, flag) => {
      const first = Math.max(0, Math.floor((start - from) * scale));
      const last = Math.min(pixels, Math.max(first + 1, Math.floor((end - from) * scale)));
      for (let x = first; x < last; x++) flags[warp * pixels + x] |= flag;
    };
    for (let warp = 0; warp < recording.warps; warp++) {
      const [first, end] = [recording.warpFirst[warp], recording.warpFirst[warp + 1]];
      if (first === end) continue;
      put(warp, from, Math.min(to, recording.warpEvents[end - 1] + 1), READY);
      for (let at = Math.max(first, lowerBound(recording.warpEvents, from, first, end) - 1); at < end; at++) {
        const event = recording.warpEvents[at];
        if (event >= to) break;
        if (event >= from) put(warp, event, event + 1, recording.diverged[event] ? RUNS | PART : RUNS);
        if (recording.kind(event) === "barrier" && at + 1 < end && recording.warpEvents[at + 1] > event + 1)
          put(warp, Math.max(from, event + 1), Math.min(to, recording.warpEvents[at + 1]), WAITS);
      }
    }
    return flags;
  }

  bar(x, y, width, flag) {
    const { context, paint, high } = this;
    const middle = y + high / 2;
    if (flag & RUNS) {
      context.fillStyle = flag & PART ? paint.part : paint.run;
      context.fillRect(x, y + 1, width, high - 2);
      if (flag & PART && width > 2) hatch(context, x, y + 1, width, high - 2, 4, paint.paperCss);
    } else if (flag & WAITS) {
      context.fillStyle = paint.wait;
      for (let at = Math.ceil(x / 5) * 5; at < x + width; at += 5)
        context.fillRect(at, middle - 1.5, Math.min(3, x + width - at), 3);
    } else if (flag & READY) {
      context.fillStyle = paint.faint;
      context.fillRect(x, middle - 0.5, width, 1);
    }
  }

  names() {
    const { context, paint, recording } = this;
    context.font = `${Math.min(11, this.high + 2)}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    context.textAlign = "right";
    const every = this.high < 10 ? 4 : 1;
    for (let warp = 0; warp < recording.warps; warp += every) {
      const isShown = warp === this.player.warp;
      context.fillStyle = isShown ? paint.inkCss : paint.soft;
      context.fillText(
        `${isShown && every === 1 ? "▶ " : ""}warp ${warp}`,
        GUTTER - 6,
        Math.max(6, (warp + 0.5) * this.high),
      );
    }
    this.named = this.player.warp;
  }

  // A mark for each side of each finding.
  drawMarks() {
    const { findings } = this.recording.head;
    this.marks.replaceChildren();
    this.marks.hidden = !findings.length;
    findings.slice(0, 40).forEach((finding, number) =>
      finding.events.forEach((event, side) => {
        if (event < this.span[0] || event >= this.span[1]) return;
        const which = finding.events.length > 1 ? `${["first", "second"][side]} side, ` : "";
        const name = `${finding.tool}: ${which}line ${this.recording.line[event]}`;
        const button = make(
          "button",
          { type: "button", tabindex: "-1", title: name, "aria-label": `go to ${name}` },
          "▼",
        );
        button.style.left = `${this.place(event + 1)}px`;
        button.addEventListener("click", () => this.player.toFinding(number, side));
        this.marks.append(button);
      }),
    );
  }

  update() {
    const { player, recording } = this;
    const { t } = player;
    if (this.close && (t < this.span[0] + 4 || t > this.span[1] - 4)) {
      const [from, to] = this.span;
      const outside = (t < from + 4 && from > 0) || (t > to - 4 && to < recording.n);
      if (outside) this.look();
    }
    if (this.wide && this.named !== player.warp) {
      this.context.fillStyle = this.paint.paperCss;
      this.context.fillRect(0, 0, GUTTER - 1, this.canvas.height);
      this.names();
    }
    if (this.wide) this.cursor.style.transform = `translateX(${this.place(t) - 1}px)`;
    if (Number(this.slider.value) !== t) this.slider.value = String(t);
    const text = `${grouped.format(t)} of ${plural(recording.n, "event")}`;
    setText(this.where, text);
    this.slider.setAttribute("aria-valuetext", text);
  }
}
