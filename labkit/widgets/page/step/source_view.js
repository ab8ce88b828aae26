const KEYWORDS =
  "alignas auto bool break case char class const constexpr continue default do double else enum extern false float " +
  "for half if inline int long namespace operator return short signed sizeof static static_assert struct switch " +
  "template true typedef typename unsigned using void volatile while";
const TOKENS = new RegExp(
  [
    /(\/\/.*|\/\*.*?\*\/)/, // comments
    /("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+')/, // strings
    /(^\s*#\s*\w+)/, // directives
    new RegExp(`\\b(__\\w+|${KEYWORDS.replaceAll(" ", "|")})\\b`),
    /\b(\d[\w.]*)/, // numbers
  ]
    .map((each) => each.source)
    .join("|"),
  "g",
);
const TOKEN_CLASSES = ["", "comment", "string", "keyword", "keyword", "number-token"];

// A line of CUDA C++ with its tokens marked.
function coloured(line) {
  const parts = [];
  let at = 0;
  for (const match of line.matchAll(TOKENS)) {
    const group = match.findIndex((text, i) => i && text !== undefined);
    if (match.index > at) parts.push(line.slice(at, match.index));
    parts.push(make("span", { class: `lks-${TOKEN_CLASSES[group]}` }, match[0]));
    at = match.index + match[0].length;
  }
  parts.push(line.slice(at) || (parts.length ? "" : " "));
  return parts;
}

// The source with what stands where: the shown warp's line, those of the other warps, how often each line ran.
// The PTX and machine code of the shown line stand below it on demand.
class SourceView {
  constructor(player) {
    this.player = player;
    this.recording = player.recording;
    this.code = false; // show PTX
    this.sitesAt = new Map();
    this.recording.sites.forEach((site, number) => {
      if (!this.sitesAt.has(site.line)) this.sitesAt.set(site.line, []);
      this.sitesAt.get(site.line).push(number);
    });
    this.build();
    this.shown = { current: 0, next: 0, chosen: 0 };
  }

  build() {
    const { head } = this.recording;
    this.rows = head.source.map((text, i) => this.row(text, i + 1));
    this.under = make("div", { class: "lks-under", role: "row", hidden: "" }, make("div", { role: "gridcell" }));
    const names = make("div", { class: "lks-line lks-names", role: "row" });
    for (const [name, title] of [
      ["", "findings"],
      ["line", "a click runs to the line"],
      ["warps", "the other warps that are at this line"],
      ["runs", "how often the shown warp has run the line, of how often in all"],
      ["source", ""],
    ])
      names.append(
        make("span", { role: "columnheader", title }, name || make("span", { class: "lks-hidden" }, "finding")),
      );
    this.list = make(
      "div",
      { class: "lks-lines", role: "grid", tabindex: "0", "aria-label": "Source" },
      names,
      ...this.rows.map((row) => row.element),
    );
    this.list.addEventListener("click", (event) => this.click(event));
    this.list.addEventListener("keydown", (event) => this.key(event));
    const toggle = make("input", { type: "checkbox", id: newId() });
    toggle.addEventListener("change", () => {
      this.code = toggle.checked;
      this.shown.code = null;
      this.update();
    });
    const machine = head.machine_code ? ` and machine code (${head.machine_code.gpu})` : "";
    this.head = make(
      "div",
      { class: "lks-head" },
      make("h4", {}, "Source"),
      make("span", { class: "lks-check" }, toggle, make("label", { for: toggle.id }, `PTX${machine}`)),
    );
    this.element = make("div", { class: "lks-panel lks-source" }, this.head, this.list);
  }

  row(text, line) {
    const findings = this.recording.head.findings.filter((each) => each.line === line);
    const mark = make("span", { class: "lks-mark", role: "gridcell" });
    if (findings.length) {
      mark.append(make("span", { "aria-hidden": "true" }, "⚠"), make("span", { class: "lks-hidden" }, "finding"));
      mark.title = findings.map((each) => each.message).join("\n");
    }
    const number = make("span", { class: "lks-number", role: "rowheader", title: `run to line ${line}` }, String(line));
    const warps = make("span", { class: "lks-warps", role: "gridcell" });
    const runs = make("span", { class: "lks-runs", role: "gridcell" });
    const code = make("span", { class: "lks-code", role: "gridcell" }, ...coloured(text));
    const element = make(
      "div",
      { class: "lks-line", role: "row", id: newId(), "data-line": line },
      mark,
      number,
      warps,
      runs,
      code,
    );
    return { element, warps, runs, line };
  }

  click(event) {
    const row = event.target.closest(".lks-line[data-line]");
    if (!row) return;
    const line = Number(row.dataset.line);
    this.player.line = line;
    if (!event.target.closest(".lks-number") || !this.run(line)) this.player.changed();
  }

  // On to the line; where it does not come again, back to its last time.
  run(line) {
    return this.player.toLine(1, line) || this.player.toLine(-1, line);
  }

  key(event) {
    const to = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (to && !event.shiftKey) {
      const from = this.player.line || this.shown.current || 1;
      this.player.chooseLine(Math.max(1, Math.min(this.rows.length, from + to)));
      this.reveal(this.player.line);
    } else if (event.key === "Enter" && this.player.line) this.run(this.player.line);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  update() {
    const { player, recording } = this;
    const { warp, event } = player;
    const next = recording.nextEvent(warp, player.t);
    const now = {
      current: event < 0 ? 0 : recording.line[event],
      next: next < 0 ? 0 : recording.line[next],
      chosen: player.line,
    };
    this.warpsAt(warp);
    this.countRuns(warp);
    for (const { element, line } of this.rows) {
      const names = ["lks-line"];
      if (line === now.current) names.push("lks-current");
      if (line === now.next) names.push("lks-next");
      if (line === now.chosen) names.push("lks-chosen");
      setClass(element, names.join(" "));
    }
    if (now.chosen !== this.shown.chosen) {
      const chosen = this.rows[now.chosen - 1]?.element;
      for (const { element } of this.rows)
        if (element.hasAttribute("aria-selected")) element.removeAttribute("aria-selected");
      chosen?.setAttribute("aria-selected", "true");
      if (chosen) this.list.setAttribute("aria-activedescendant", chosen.id);
    }
    if (now.current !== this.shown.current) {
      this.rows[this.shown.current - 1]?.element.removeAttribute("aria-current");
      this.rows[now.current - 1]?.element.setAttribute("aria-current", "true");
    }
    this.showCode(now.current, event);
    if (now.current !== this.shown.current && now.current) this.reveal(now.current);
    Object.assign(this.shown, now);
  }

  warpsAt(shown) {
    const { recording, player } = this;
    const at = new Map();
    for (let warp = 0; warp < recording.warps; warp++) {
      const event = warp === shown ? -1 : recording.lastEvent(warp, player.t);
      if (event < 0 || recording.finished(warp, player.t)) continue;
      const line = recording.line[event];
      if (!at.has(line)) at.set(line, []);
      at.get(line).push(warp);
    }
    for (const { warps, line } of this.rows) {
      const text = at.has(line) ? ranges(at.get(line), ",") : "";
      if (warps.lksText === text) continue;
      setText(warps, text);
      warps.title = text ? `warps ${text}` : "";
    }
  }

  countRuns(warp) {
    const lists = this.recording.visits(warp);
    this.rows.forEach(({ runs }, i) => {
      const list = lists[i];
      setText(runs, list.length ? `${lowerBound(list, this.player.t)}/${list.length}` : "");
    });
  }

  // The instructions of the current line, the last one marked; made anew only for another line.
  showCode(line, event) {
    const sites = this.code && line ? (this.sitesAt.get(line) ?? []) : [];
    const key = sites.length ? line : 0;
    if (this.shown.code !== key) {
      this.shown.code = key;
      this.under.hidden = !key;
      if (key) this.buildCode(line, sites);
    }
    if (!key) return;
    const site = this.recording.site[event];
    const start = this.recording.startOf(event);
    const ran = new Set();
    for (let e = start; e <= event; e++) ran.add(this.recording.site[e]);
    for (const [number, element] of this.instructions) {
      setClass(element, number === site ? "lks-now" : ran.has(number) ? "lks-ran" : "");
      setText(element.firstChild, number === site ? "▶" : ran.has(number) ? "·" : " ");
    }
  }

  buildCode(line, sites) {
    this.instructions = new Map();
    const ptx = make("div", { class: "lks-ptx" }, make("b", {}, "PTX"));
    sites.forEach((number, i) => {
      const gap =
        i && sites[i - 1] !== number - 1
          ? make("div", { class: "lks-gap", title: "instructions of other lines stand between" }, "⋯")
          : "";
      const element = make("div", {}, make("span", {}, " "), ` ${this.recording.sites[number].text}`);
      this.instructions.set(number, element);
      ptx.append(gap, element);
    });
    const machine = this.recording.head.machine_code;
    const lines = machine?.lines.filter((each) => each.line === line) ?? [];
    const sass = make("div", { class: "lks-ptx" }, make("b", {}, `SASS ${machine?.gpu ?? ""}`));
    for (const each of lines) sass.append(make("div", {}, `  ${each.text}`));
    if (machine && !lines.length) sass.append(make("div", {}, "  none of its own"));
    this.under.firstChild.replaceChildren(ptx, ...(machine ? [sass] : []));
    this.rows[line - 1].element.after(this.under);
  }

  // Scroll the list, never the page.
  reveal(line) {
    const row = this.rows[line - 1]?.element;
    if (!row) return;
    const top = row.offsetTop - this.list.offsetTop;
    const bottom =
      top + row.offsetHeight + (this.under.hidden ? 0 : Math.min(this.under.offsetHeight, this.list.clientHeight / 2));
    const from = this.list.scrollTop + row.offsetHeight;
    if (top >= from && bottom <= this.list.scrollTop + this.list.clientHeight) return;
    this.list.scrollTop = top - this.list.clientHeight / 3;
  }
}
