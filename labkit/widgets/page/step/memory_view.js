// The colours of the page as the canvas takes them; read again when the theme changes.
class Paint {
  constructor(root) {
    this.root = root;
    this.refresh();
  }

  refresh() {
    const style = getComputedStyle(this.root);
    this.ink = channels(style.color);
    this.paper = channels(style.backgroundColor);
    this.dark = luminance(this.paper) < luminance(this.ink);
    this.root.classList.toggle("lks-dark", this.dark);
    const after = getComputedStyle(this.root);
    const named = (name) => channels(after.getPropertyValue(`--lks-${name}`).trim());
    for (const name of ["run", "part", "wait", "bad", "read", "write", "lit"]) this[name] = css(named(name));
    this.soft = css(mix(this.ink, this.paper, 0.62));
    this.faint = css(mix(this.ink, this.paper, 0.28));
    this.line = css(mix(this.ink, this.paper, 0.14));
    this.litCell = css(mix(named("lit"), this.paper, 0.4));
    this.hadRead = css(mix(named("read"), this.paper, 0.16));
    this.hadWritten = css(mix(named("write"), this.paper, 0.24));
    this.banks = Array.from({ length: 32 }, (_, bank) => css(mix(ramp(bank / 31), this.paper, this.dark ? 0.55 : 0.5)));
    [this.inkCss, this.paperCss] = [css(this.ink), css(this.paper)];
  }
}

// Lightness and hue from blue to yellow, as in cividis: every eye can tell its order.
const RAMP = [
  [0, 60, 140],
  [70, 96, 132],
  [124, 123, 120],
  [180, 164, 105],
  [253, 220, 72],
];

function ramp(at) {
  const place = Math.min(at * (RAMP.length - 1), RAMP.length - 1.001);
  const i = Math.floor(place);
  return mix(RAMP[i + 1], RAMP[i], place - i);
}

function mix(a, b, part) {
  return a.map((each, i) => each * part + b[i] * (1 - part));
}

function css([r, g, b]) {
  return `rgb(${Math.round(r)}, ${Math.round(g)}, ${Math.round(b)})`;
}

// "#0072b2", "rgb(0, 114, 178)" or "color(srgb 0 0.4 0.7)" as three numbers up to 255.
function channels(text) {
  if (text[0] === "#") {
    const long = text.length > 4 ? text.slice(1, 7) : [...text.slice(1, 4)].map((each) => each + each).join("");
    return [0, 2, 4].map((i) => parseInt(long.slice(i, i + 2), 16));
  }
  const numbers = (text.match(/-?[\d.]+(e-?\d+)?/g) ?? [255, 255, 255]).map(Number);
  return text.startsWith("color(") ? numbers.slice(0, 3).map((each) => 255 * each) : numbers.slice(0, 3);
}

function luminance([r, g, b]) {
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// A canvas of so many CSS pixels, sharp on fine screens.
function sizeCanvas(canvas, width, height) {
  const ratio = globalThis.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

function hatch(context, x, y, width, height, step, colour) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = -height; at < width; at += step) {
    context.moveTo(x + at, y + height);
    context.lineTo(x + at + height, y);
  }
  context.stroke();
  context.restore();
}

const [READ, WRITE, LIT, CHOSEN, KNOWN] = [1, 2, 4, 8, 16];
const CHARACTER = 6.05; // pixels that a character of the usual 10 pixels is wide
const MONO = "ui-monospace, Menlo, Consolas, monospace";
const TALL = 280; // pixels that a grid without text is high at most

// One object of memory as a grid of cells. What each cell shows is one number, so that only cells that differ
// are drawn again.
class GridView {
  constructor(player, paint, object, say) {
    this.player = player;
    this.say = say;
    this.paint = paint;
    this.recording = player.recording;
    this.memory = player.recording.memory;
    this.object = object;
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.at = null; // the cell under the pointer
    this.stage = make(
      "div",
      {
        class: "lks-stage",
        role: "application",
        tabindex: "0",
        "aria-roledescription": "memory",
        "aria-label": `${object.name}, ${object.space} memory: arrow keys choose a cell`,
      },
      this.canvas,
    );
    const [type, size] = [object.shape.map((each) => `[${each}]`).join(""), plural(object.bytes, "byte")];
    this.whole = object.copies > 1 ? `a row per lane, ${size} each` : `${object.type}${type}`;
    this.extent = make("span", { class: "lks-small" });
    this.element = make(
      "details",
      { class: "lks-object", open: "" },
      make("summary", {}, make("b", {}, object.name), ` ${object.space} `, this.extent),
      this.stage,
    );
    this.element.addEventListener("toggle", () => this.element.open && this.resize(this.width));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => {
      this.at = null;
      this.player.changed();
    });
    this.canvas.addEventListener("click", (event) => {
      const index = this.under(event);
      if (index !== null) this.player.chooseCell({ object, index });
      this.stage.focus({ preventScroll: true });
    });
    this.stage.addEventListener("keydown", (event) => this.key(event));
    this.origin = null;
  }

  get isLocal() {
    return this.object.copies > 1;
  }

  // The part of the object that is shown: what the recording touches, following the access where that is large.
  window(cells) {
    const { object } = this;
    if (this.isLocal) {
      const row = this.player.warp * LANES;
      return { row, col: 0, rows: LANES, cols: Math.min(WINDOW, object.cols) };
    }
    const { box } = object;
    const rows = Math.min(WINDOW, box.rows);
    const cols = Math.min(WINDOW, box.cols);
    this.origin ??= { row: box.row, col: box.col };
    const { cell, t } = this.player;
    const chosen = cell?.object === object ? cell.index : -1;
    let index = -1; // the cell to follow: one that was just chosen, else that of a new moment's access
    if (chosen >= 0 && chosen !== this.followed) index = chosen;
    else if (cells.length && t !== this.followedAt) index = cells[0].index;
    [this.followed, this.followedAt] = [chosen, t];
    if (index >= 0) {
      this.origin.row = this.shift(this.origin.row, Math.floor(index / object.cols), rows, box.row, box.rows);
      this.origin.col = this.shift(this.origin.col, index % object.cols, cols, box.col, box.cols);
    }
    return { ...this.origin, rows, cols };
  }

  shift(origin, at, size, from, count) {
    if (count <= size || (at >= origin && at < origin + size)) return origin;
    const half = Math.max(1, size >> 1);
    return Math.max(from, Math.min(from + count - size, from + Math.floor((at - from) / half) * half - (half >> 1)));
  }

  // Cells as wide as there is room, and text in them where it fits.
  resize(width) {
    this.width = width;
    this.drawn = null;
    if (this.element.open && width) this.update(this.request ?? []);
  }

  layout(view) {
    const { object } = this;
    this.view = view;
    const last = this.label(view.row + view.rows - 1);
    this.left = Math.max(16, Math.ceil(last.length * CHARACTER) + 6);
    this.right = object.space === "shared" ? 30 : 2;
    this.top = 14;
    const room = Math.floor((this.width - this.left - this.right) / view.cols);
    this.cw = Math.max(3, Math.min(46, room));
    this.size = this.cw < 26 ? 9 : 10; // of the text
    this.room = Math.floor((this.cw - (this.cw < 26 ? 2 : 5)) / ((CHARACTER * this.size) / 10));
    if (this.room < 3 || view.rows > 20) this.room = 0; // no text
    if (!this.room) this.cw = Math.min(this.cw, 16);
    this.ch = this.room ? 15 : Math.max(4, Math.min(this.cw, 12, Math.floor(TALL / view.rows)));
    this.context = sizeCanvas(
      this.canvas,
      this.left + this.cw * view.cols + this.right,
      this.top + this.ch * view.rows + 2,
    );
    const part = view.rows * view.cols < object.rows * object.cols;
    const touched = object.box && !this.isLocal && part ? ` · ${object.box.rows} × ${object.box.cols} touched` : "";
    setText(this.extent, this.whole + touched);
    this.frame();
    this.drawn = new Int32Array(view.rows * view.cols).fill(-1);
  }

  label(row) {
    if (this.isLocal) return String(row % LANES);
    return String(this.object.wrap ? row * this.object.wrap : row);
  }

  // The numbers of rows and columns, and the banks at the right.
  frame() {
    const { context, view, paint, object } = this;
    context.fillStyle = paint.paperCss;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.font = `10px ${MONO}`;
    context.textBaseline = "middle";
    context.fillStyle = paint.soft;
    context.textAlign = "right";
    const every = Math.ceil(11 / this.ch);
    for (let row = 0; row < view.rows; row += every)
      context.fillText(this.label(view.row + row), this.left - 4, this.top + (row + 0.5) * this.ch);
    context.textAlign = "center";
    const step =
      [1, 2, 4, 8, 16].find((each) => each * this.cw >= CHARACTER * (String(view.col + view.cols).length + 1)) ?? 16;
    for (let col = 0; col < view.cols; col += step)
      context.fillText(String(view.col + col), this.left + (col + 0.5) * this.cw, 7);
    if (object.space !== "shared") return;
    context.textAlign = "left";
    const right = this.left + view.cols * this.cw + 4;
    context.fillText("bank", right, 7);
    for (let row = 0; row < view.rows; row += every)
      context.fillText(
        String(this.memory.bank(object, (view.row + row) * object.cols + view.col)),
        right,
        this.top + (row + 0.5) * this.ch,
      );
  }

  update(requests) {
    this.request = requests;
    const { object, player, memory } = this;
    if (!object.box || !this.width || !this.element.open) return;
    const cells = [];
    const flags = new Map();
    const sectors = new Set();
    for (const request of requests) {
      const flag = request.kind === "load" ? READ : WRITE;
      for (const cell of request.cells)
        if (cell.object === object) {
          cells.push(cell);
          flags.set(cell.index, (flags.get(cell.index) ?? 0) | flag);
        }
      for (const sector of request.sectors) sectors.add(sector);
    }
    const view = this.window(cells);
    const old = this.view;
    const same =
      this.drawn &&
      old &&
      old.row === view.row &&
      old.col === view.col &&
      old.rows === view.rows &&
      old.cols === view.cols;
    if (!same) this.layout(view);
    const chosen = player.cell?.object === object ? player.cell.index : -1;
    const perSector = object.space === "global" && sectors.size;
    for (let row = 0, i = 0; row < view.rows; row++)
      for (let col = 0; col < view.cols; col++, i++) {
        const index = this.index(row, col);
        if (index < 0) continue;
        let flag = flags.get(index) ?? 0;
        if (perSector && sectors.has(Math.floor((object.start + index * object.item) / SECTOR))) flag |= LIT;
        if (index === chosen) flag |= CHOSEN;
        const cell = memory.cell(object, index);
        const at = cell < 0 ? -1 : memory.lastWrite(cell, player.t);
        if (cell >= 0 && memory.firstLoad[cell] < player.t * memory.stride) flag |= KNOWN; // it has been read
        const state = (at + 1) * 32 + flag;
        if (this.drawn[i] === state) continue;
        this.drawn[i] = state;
        this.cell(row, col, index, flag, at >= 0, memory.touched(cell));
      }
    this.tell();
  }

  index(row, col) {
    const { object, view } = this;
    if (this.isLocal) return (view.row + row) * object.count + col;
    const index = (view.row + row) * object.cols + view.col + col;
    return index < object.count ? index : -1;
  }

  cell(row, col, index, flag, written, touched) {
    const { context, paint, object, cw, ch } = this;
    const [x, y] = [this.left + col * cw, this.top + row * ch];
    const isShared = object.space === "shared";
    const had = written ? paint.hadWritten : flag & KNOWN ? paint.hadRead : paint.paperCss;
    context.fillStyle = flag & LIT ? paint.litCell : isShared ? paint.banks[this.memory.bank(object, index)] : had;
    if (isShared && !written) context.fillStyle = paint.paperCss;
    context.fillRect(x, y, cw, ch);
    if (isShared && !written) {
      context.fillStyle = paint.banks[this.memory.bank(object, index)];
      context.globalAlpha = 0.25;
      context.fillRect(x, y, cw, ch);
      context.globalAlpha = 1;
      hatch(context, x, y, cw, ch, 5, paint.faint);
    } else if (!touched) {
      context.fillStyle = paint.line;
      context.fillRect(x + cw / 2 - 1, y + ch / 2 - 1, 2, 2);
    }
    context.fillStyle = paint.line;
    context.fillRect(x + cw - 1, y, 1, ch);
    context.fillRect(x, y + ch - 1, cw, 1);
    if (flag & LIT) {
      context.fillStyle = paint.lit;
      context.fillRect(x, y + ch - 2, cw - (this.endsSector(index) ? 2 : 0), 2);
    }
    if (this.room && touched) this.write(x, y, index);
    if (flag & (READ | WRITE)) this.outline(x, y, flag);
    if (flag & CHOSEN) {
      context.strokeStyle = paint.inkCss;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, cw - 2, ch - 2);
      if (cw > 8) context.strokeRect(x + 3.5, y + 3.5, cw - 8, ch - 8);
    }
  }

  endsSector(index) {
    return (this.object.start + (index + 1) * this.object.item) % SECTOR === 0;
  }

  write(x, y, index) {
    const { context, paint, object } = this;
    const found = this.memory.value(object, index, this.player.t);
    const text = found.known ? formatIn(this.room, object.shown, found.low, found.high) : "·";
    context.fillStyle = found.known ? paint.inkCss : paint.soft;
    context.font = `${this.size}px ${MONO}`;
    context.textAlign = "center";
    context.fillText(text, x + this.cw / 2 - 0.5, y + this.ch / 2 + 0.5);
  }

  // Reads are outlined with a broken line, writes with a whole one and a corner.
  outline(x, y, flag) {
    const { context, paint, cw, ch } = this;
    context.strokeStyle = context.fillStyle = flag & WRITE ? paint.write : paint.read;
    if (Math.min(cw, ch) < 8) return context.fillRect(x, y, cw - 1, Math.max(2, ch - 3)); // no room for a line
    const width = cw < 26 ? 1.5 : 2;
    context.lineWidth = width;
    if (!(flag & WRITE)) context.setLineDash([4, 2]);
    context.strokeRect(x + width / 2, y + width / 2, cw - width - 1, ch - width - 1);
    context.setLineDash([]);
    if (!(flag & WRITE)) return;
    const corner = Math.min(6, cw / 3);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + corner, y);
    context.lineTo(x, y + corner);
    context.fill();
  }

  under(event) {
    const { view } = this;
    if (!view) return null;
    const box = this.canvas.getBoundingClientRect();
    const col = Math.floor((event.clientX - box.left - this.left) / this.cw);
    const row = Math.floor((event.clientY - box.top - this.top) / this.ch);
    if (row < 0 || col < 0 || row >= view.rows || col >= view.cols) return null;
    const index = this.index(row, col);
    return index < 0 ? null : index;
  }

  point(event) {
    const index = this.under(event);
    if (index === this.at) return;
    this.at = index;
    this.tell();
  }

  key(event) {
    const by = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey || !this.view) return;
    event.preventDefault();
    event.stopPropagation();
    const { object } = this;
    const isFirst = this.player.cell?.object !== object; // the first key chooses the first cell
    const cell = isFirst ? this.index(0, 0) : this.player.cell.index;
    const box = this.isLocal ? this.view : object.box;
    const within = (at, from, count) => Math.max(from, Math.min(from + count - 1, at));
    const row = within(Math.floor(cell / object.cols) + (isFirst ? 0 : by[0]), box.row, box.rows);
    const col = within((cell % object.cols) + (isFirst ? 0 : by[1]), box.col, box.cols);
    const index = row * object.cols + col;
    if (index < object.count * object.copies) this.player.chooseCell({ object, index });
  }

  // The cell under the pointer, else the chosen one, in words.
  tell() {
    const { player, object } = this;
    const index = this.at ?? (player.cell?.object === object ? player.cell.index : null);
    if (index !== null) this.say(describeCell(this.recording, object, index, player.t));
  }
}

function describeCell(recording, object, index, t) {
  const { memory } = recording;
  const found = memory.value(object, index, t);
  const value = found.known ? ` = ${format(object.shown, found.low, found.high)}` : ": not known";
  const bank = object.space === "shared" ? ` · bank ${memory.bank(object, index)}` : "";
  let writer = object.space === "global" ? "not written so far" : "never written so far";
  if (found.event >= 0) {
    const warp = recording.warp[found.event];
    const thread = recording.threadName(warp, found.lane);
    writer = `written by thread ${thread}, warp ${warp}, at line ${recording.line[found.event]}`;
  }
  const [, cols] = object.space === "global" ? object.shape : [];
  const where = cols && object.shape.length === 2 ? ` (row ${Math.floor(index / cols)}, column ${index % cols})` : "";
  return `${memory.cellName(object, index)}${where}${value}${bank} · ${writer}`;
}

// The grids of some objects side by side, and a line that reads a cell of theirs.
class ObjectsPanel {
  constructor(title, objects, player, paint, kinds) {
    this.readout = make("p", { class: "lks-readout", role: "status" });
    const say = (text) => setText(this.readout, text);
    this.grids = objects.map((object) => new GridView(player, paint, object, say));
    this.objects = make("div", { class: "lks-objects" }, ...this.grids.map((grid) => grid.element));
    this.head = make("div", { class: "lks-head" }, make("h4", {}, title), legend(kinds));
    this.element = make("div", { class: "lks-panel lks-memory" }, this.head, this.objects, this.readout);
  }

  // Columns as many as the style allows; a grid fills its column.
  resize() {
    const width = this.objects.clientWidth - 12;
    const most = Number(getComputedStyle(this.objects).getPropertyValue("--lks-columns")) || 1;
    const columns = Math.max(1, Math.min(most, this.grids.length));
    this.objects.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    for (const grid of this.grids) grid.resize(Math.floor((width - 16 * (columns - 1)) / columns));
  }
}

// All objects, the requests of the shown line in words, and the verbs of the chosen cell.
class MemoryView {
  constructor(player, paint, ask) {
    this.player = player;
    this.recording = player.recording;
    const { objects } = player.recording.memory;
    const touched = objects.filter((each) => each.box);
    const shared = touched.filter((each) => each.space === "shared");
    const others = touched.filter((each) => each.space !== "shared");
    this.requests = make("ul", { class: "lks-requests" });
    this.bar = this.verbs(ask);
    this.panels = [];
    const never = shared.length ? ["never"] : [];
    if (shared.length)
      this.panels.push(new ObjectsPanel("Shared memory", shared, player, paint, ["read", "write", ...never]));
    if (others.length || !shared.length)
      this.panels.push(
        new ObjectsPanel(
          others.every((each) => each.space === "global") ? "Global memory" : "Global and local memory",
          others,
          player,
          paint,
          ["read", "write", "lit", "had-read", "had-written"],
        ),
      );
    const [first, second] = this.panels;
    first.element.classList.add("lks-first");
    first.head.after(this.requests);
    first.element.append(this.bar);
    const untouched = objects
      .filter((each) => !each.box && ["shared", "global"].includes(each.space))
      .map((each) => each.name);
    if (untouched.length)
      (second ?? first).objects.after(make("p", { class: "lks-small" }, `Not touched: ${listed(untouched)}.`));
    this.elements = this.panels.map((each) => each.element);
  }

  verbs(ask) {
    const { player } = this;
    const bar = make("div", { class: "lks-foot" });
    this.buttons = [];
    for (const [label, title, action] of [
      ["◀\ufe0e write", "previous write to the chosen cell ([)", () => player.toWrite(-1)],
      ["write ▶\ufe0e", "next write to the chosen cell (])", () => player.toWrite(1)],
      ["◀\ufe0e access", "previous access to the chosen cell ({)", () => player.toAccess(-1)],
      ["access ▶\ufe0e", "next access to the chosen cell (})", () => player.toAccess(1)],
      [
        "Where from?",
        "where does the value of the chosen cell come from? (f)",
        () => ((player.asking = "cell"), ask()),
      ],
    ]) {
      const button = make("button", { type: "button", title, "aria-label": title }, label);
      button.addEventListener("click", action);
      this.buttons.push(button);
      bar.append(button);
    }
    return bar;
  }

  resize() {
    for (const panel of this.panels) panel.resize();
  }

  update() {
    const { recording, player } = this;
    const { event } = player;
    const requests = [];
    if (event >= 0)
      for (let e = recording.startOf(event); e <= event; e++)
        if (isAccess(recording.kind(e)) && recording.mask[e]) requests.push(recording.memory.request(e));
    for (const panel of this.panels) for (const grid of panel.grids) grid.update(requests);
    this.say(requests);
    const { cell } = player;
    for (const button of this.buttons) button.disabled = !cell;
    const panel = this.panels.find(({ grids }) => grids.some((grid) => grid.object === cell?.object));
    this.panels.forEach((each, i) => {
      if (each !== panel) setText(each.readout, i ? "" : "Choose a cell: with a click, or the arrow keys.");
    });
  }

  // A few lines that stay, so that nothing below jumps.
  say(requests) {
    const most = 3;
    const texts = requests.slice(-most).map((each) => `Warp ${this.player.warp} ${each.text}`);
    if (requests.length > most) texts[0] = `${requests.length - most + 1} earlier requests of this line. ${texts[0]}`;
    if (!texts.length) texts.push("This line asks nothing of memory.");
    while (this.requests.children.length < Math.max(2, texts.length)) this.requests.append(make("li"));
    [...this.requests.children].forEach((item, i) => {
      setText(item, texts[i] ?? "");
      item.hidden = i >= 2 && !texts[i];
    });
  }
}

const LEGEND = {
  read: "read now",
  write: "written now",
  lit: "sector of the request",
  never: "never written",
  "had-read": "read before",
  "had-written": "written before",
  runs: "runs",
  part: "runs with a part of its lanes",
  waits: "waits at a barrier",
  ready: "others run",
};

function legend(kinds) {
  const entries = kinds.map((kind) => [kind, LEGEND[kind]]);
  return make(
    "span",
    { class: "lks-legend" },
    ...entries.map(([kind, text]) =>
      make("span", {}, make("i", { class: `lks-key lks-key-${kind}`, "aria-hidden": "true" }), text),
    ),
  );
}
