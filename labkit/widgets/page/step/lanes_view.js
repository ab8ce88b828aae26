const MANY = 10; // variables; with more, only those in scope are shown

// A table of lanes and variables. Its cells stay; a step writes the text of those that differ.
class LanesView {
  constructor(player, ask) {
    this.player = player;
    this.recording = player.recording;
    this.columns = [];
    this.at = [0, 0]; // row and column of the cell with the focus
    const last = this.recording.head.block.reduce((found, size, i) => (size > 1 ? i : found), 0);
    this.dimensions = [0, 1, 2].filter((i) => i <= last && this.recording.head.block[i] > 1);
    this.table = make("table", { class: "lks-lanes", role: "grid" });
    this.box = make("div", { class: "lks-scroll" }, this.table);
    const toggle = make("input", { type: "checkbox", id: newId() });
    toggle.addEventListener("change", () => this.box.classList.toggle("lks-brief", toggle.checked));
    this.button = make("button", { type: "button", class: "lks-ask" }, "Where does this value come from?");
    this.button.addEventListener("click", () => {
      this.player.asking = "variable";
      ask();
    });
    this.title = make("h4", {}, "Lanes");
    this.note = make("p", { class: "lks-small" });
    this.element = make(
      "div",
      { class: "lks-panel lks-lanes-panel" },
      make(
        "div",
        { class: "lks-head" },
        this.title,
        make("span", { class: "lks-check" }, toggle, make("label", { for: toggle.id }, "only the summary")),
      ),
      this.box,
      make("div", { class: "lks-foot" }, this.button, this.note),
    );
    this.table.addEventListener("click", (event) => this.click(event));
    this.table.addEventListener("keydown", (event) => this.key(event));
  }

  // The variables, or in optimised code the registers of the current line: {name, title, places, type, now,
  // changed}. The kernel's parameters come last, for they never change.
  wanted(warp) {
    const { recording, player } = this;
    if (!recording.variables.length) return this.registers(warp);
    const all = recording.states(warp, player.t);
    const shown = all.length > MANY ? all.filter((each) => each.places.length) : all;
    const columns = shown.map(({ variable, places, now, changed }) => ({
      id: recording.variables.indexOf(variable),
      name: variable.name,
      title: `${variable.type} ${variable.name}${variable.function ? ` of ${variable.function}` : ""}`,
      places,
      type: places.length ? shownType(variable.type, recording.registers[places[0].registers[0]].type) : "",
      now,
      changed,
      last: !variable.function && recording.origins.parameters.includes(variable.name),
    }));
    return [...columns.filter((each) => !each.last), ...columns.filter((each) => each.last)];
  }

  // Those that the line has written, then those that it has read. Of bits, those of 32 are mostly numbers.
  registers(warp) {
    const { recording, player } = this;
    const { event } = player;
    if (event < 0) return [];
    const start = recording.startOf(event);
    const [written, read] = [new Set(), new Set()];
    for (let e = start; e <= event; e++) {
      const site = recording.sites[recording.site[e]];
      for (const each of site.writes) written.add(each);
      for (const each of site.reads) read.add(each);
    }
    return [...new Set([...written, ...read])].slice(0, 24).map((register) => {
      const { name, type } = recording.registers[register];
      const now = recording.values(warp, register, player.t, laneValues());
      const before = recording.values(warp, register, start, laneValues());
      let changed = 0;
      for (let lane = 0; lane < LANES; lane++) if (differ(now, before, lane)) changed |= 1 << lane;
      return {
        id: register,
        name,
        title: `register ${name}, ${type}`,
        places: [{ registers: [register], mask: -1 }],
        type: { b32: "s32", b64: "pointer" }[type] ?? type,
        now,
        changed,
      };
    });
  }

  build(columns) {
    const kept = document.activeElement && this.table.contains(document.activeElement);
    const names = make("tr", {}, make("th", { scope: "col" }, "lane"));
    for (const i of this.dimensions)
      names.append(make("th", { scope: "col", title: `threadIdx.${"xyz"[i]}` }, "xyz"[i]));
    names.append(
      make("th", { scope: "col", class: "lks-state", title: "what the lane does in this instruction" }, "state"),
    );
    this.headers = columns.map(() => make("th", { scope: "col" }));
    names.append(...this.headers);
    const all = make(
      "tr",
      { class: "lks-all" },
      make("th", { scope: "row", colspan: 1 + this.dimensions.length }, "all"),
    );
    this.allState = make("td", { class: "lks-state" });
    this.allCells = columns.map(() => make("td"));
    all.append(this.allState, ...this.allCells);
    this.lanes = Array.from({ length: LANES }, (_, lane) => this.laneRow(lane, columns.length));
    this.table.replaceChildren(make("thead", {}, names, all), make("tbody", {}, ...this.lanes.map((each) => each.row)));
    this.at = [Math.min(this.at[0], LANES - 1), Math.max(0, Math.min(this.at[1], columns.length - 1))];
    this.rove(kept);
  }

  laneRow(lane, count) {
    const row = make("tr", {}, make("th", { scope: "row" }, String(lane)));
    const places = this.dimensions.map(() => make("td", { class: "lks-place" }));
    const state = make("td", { class: "lks-state" });
    const cells = Array.from({ length: count }, (_, column) =>
      make("td", { class: "", tabindex: "-1", "data-at": `${lane} ${column}` }),
    );
    row.append(...places, state, ...cells);
    return { row, places, state, cells };
  }

  update() {
    const { player, recording } = this;
    const { warp, t } = player;
    const columns = this.wanted(warp);
    const key = columns.map((each) => each.id).join();
    const isNew = key !== this.columns || !this.lanes;
    if (isNew) this.build(columns);
    this.columns = key;
    this.columns = columns;
    const moved = warp !== this.warp || isNew;
    this.warp = warp;
    setText(this.title, `Lanes of warp ${warp}`);
    const states = recording.laneStates(warp, t);
    states.forEach(({ state, word, why }, lane) => {
      const { row, places, state: cell } = this.lanes[lane];
      if (moved)
        this.dimensions.forEach((i, at) =>
          setText(places[at], state === "none" ? "" : String(recording.thread(warp, lane)[i])),
        );
      setClass(row, `lks-lane-${state}${lane === player.lane ? " lks-lane-chosen" : ""}`);
      setText(cell, word);
      if (cell.title !== why) cell.title = why;
    });
    const active = states.filter(({ state }) => state === "active").length;
    setText(this.allState, active ? `${active} active` : (states.find(({ state }) => state !== "none")?.word ?? ""));
    columns.forEach((column, i) => this.fill(column, i, states));
    this.tell();
  }

  // One column: its 32 values, which of them this line has changed, and what they have in common.
  fill(column, i, states) {
    const { recording, player } = this;
    const { now, type } = column;
    setText(this.headers[i], column.name);
    this.headers[i].title = column.title;
    setClass(this.headers[i], !column.places.length ? "lks-outside" : "");
    const isChosen = player.variable?.id === column.id;
    let [count, same, first] = [0, true, ""];
    let [least, most] = [Infinity, -Infinity];
    for (let lane = 0; lane < LANES; lane++) {
      const isThread = states[lane].state !== "none";
      const known = now !== null && isThread && now.event[lane] >= 0 && now.known[lane];
      const text = known ? recording.text(type, now.low[lane], now.high[lane]) : isThread ? "–" : "";
      const changed = known && (column.changed >>> lane) & 1;
      setText(this.lanes[lane].cells[i], text);
      setClass(
        this.lanes[lane].cells[i],
        `${changed ? "lks-changed" : ""}${isChosen && lane === player.lane ? " lks-picked" : ""}`,
      );
      if (!known) continue;
      if (!count) first = text;
      else if (text !== first) same = false;
      count += 1;
      const number = toNumber(type, now.low[lane], now.high[lane]);
      if (number !== null) [least, most] = [Math.min(least, number), Math.max(most, number)];
    }
    const show = (number) => (isFloat(type) ? digits(number, 3) : String(number));
    setText(
      this.allCells[i],
      !count ? "" : same ? `= ${first}` : most >= least ? `${show(least)}..${show(most)}` : "differ",
    );
  }

  tell() {
    const { variable, lane } = this.player;
    const found = variable && this.columns.find((each) => each.id === variable.id);
    if (found) this.player.variable = found;
    this.button.disabled = !found?.places.length;
    setText(
      this.note,
      found
        ? `${found.name}, lane ${lane}: thread ${this.recording.threadName(this.warp, lane)}`
        : "Choose a value in the table.",
    );
  }

  click(event) {
    const cell = event.target.closest("td[data-at]");
    const lane = cell
      ? Number(cell.dataset.at.split(" ")[0])
      : [...this.table.tBodies[0].rows].indexOf(event.target.closest("tbody tr"));
    if (lane < 0) return;
    if (cell) this.at = cell.dataset.at.split(" ").map(Number);
    this.rove(true);
    this.player.chooseValue(lane, cell ? this.columns[this.at[1]] : this.player.variable);
  }

  key(event) {
    const by = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const within = (at, count) => Math.max(0, Math.min(count - 1, at));
    this.at = [within(this.at[0] + by[0], LANES), within(this.at[1] + by[1], this.columns.length)];
    this.rove(true);
    this.player.chooseValue(this.at[0], this.columns[this.at[1]]);
  }

  // One cell is in the order of tabs.
  rove(focus) {
    this.tabbed?.setAttribute("tabindex", "-1");
    this.tabbed = this.lanes[this.at[0]].cells[this.at[1]];
    this.tabbed?.setAttribute("tabindex", "0");
    if (focus) this.tabbed?.focus({ preventScroll: true });
    if (focus && this.tabbed) this.reveal(this.tabbed);
  }

  reveal(cell) {
    const [row, head] = [cell.parentElement, this.table.tHead];
    const { box } = this;
    if (row.offsetTop - head.offsetHeight < box.scrollTop) box.scrollTop = row.offsetTop - head.offsetHeight;
    else if (row.offsetTop + row.offsetHeight > box.scrollTop + box.clientHeight)
      box.scrollTop = row.offsetTop + row.offsetHeight - box.clientHeight;
  }
}
