// The view of `labkit.step`: one recorded block of a CUDA kernel, replayed in the page.
//
// Python (labkit/widgets/step.py) writes the recording as JSON; nothing is asked of a kernel afterwards. In a
// page without a kernel the same script shows what stands there (showAll). Five parts:
//   Recording, Memory, Origins   what happened: decoded once, then asked; they know no page
//   Player                       the time (how many events have happened), what is chosen, and the verbs
//   SourceView, LanesView, MemoryView, TimelineView, OriginView   each shows the player's moment in place
//   StepView                     puts them together: buttons, keys, the sentence that is read aloud
// Time t means "after t events". The current event of a warp is its last one before t.

const LANES = 32;
const NONE = 0xffffffff;
const PAGE_CELLS = 64; // memory is indexed in pages of so many cells: large arrays are touched here and there
const WINDOW = 64; // rows and columns of an array that are shown at most
const SECTOR = 32; // bytes
const SPEEDS = [
  ["2 lines a second", 2],
  ["10 lines a second", 10],
  ["60 lines a second", 60],
  ["fast", 0],
];

// ---------------------------------------------------------------------------------------------------- helpers

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

let made = 0; // ids given
function newId() {
  return `lks-${Date.now().toString(36)}-${(made += 1)}`;
}

// Write text only where it differs: a step then costs what it changes.
function setText(element, text) {
  if (element.lksText === text) return;
  element.lksText = text;
  element.textContent = text;
}

function setClass(element, name) {
  if (element.lksClass === name) return;
  element.lksClass = name;
  element.className = name;
}

// The first place in list[from, to) whose value is at least `value`; the list is sorted.
function lowerBound(list, value, from = 0, to = list.length) {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (list[middle] < value) from = middle + 1;
    else to = middle;
  }
  return from;
}

function bitCount(mask) {
  mask -= (mask >>> 1) & 0x55555555;
  mask = (mask & 0x33333333) + ((mask >>> 2) & 0x33333333);
  return (((mask + (mask >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}

const grouped = new Intl.NumberFormat("en");

function plural(count, one, many = `${one}s`) {
  return `${grouped.format(count)} ${count === 1 ? one : many}`;
}

// A message of Python, with what stands between backticks as code.
function message(text) {
  return text.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part));
}

// [0, 1, 2, 5] -> "0–2, 5"
function ranges(numbers, comma = ", ") {
  const parts = [];
  for (let i = 0; i < numbers.length; i++) {
    const from = i;
    while (numbers[i + 1] === numbers[i] + 1) i += 1;
    parts.push(
      i === from
        ? `${numbers[i]}`
        : i === from + 1
          ? `${numbers[from]}${comma}${numbers[i]}`
          : `${numbers[from]}–${numbers[i]}`,
    );
  }
  return parts.join(comma);
}

function listed(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

// ----------------------------------------------------------------------------------------- values and their types

const C_TYPES = {
  float: "f32",
  double: "f64",
  int: "s32",
  signed: "s32",
  "signed int": "s32",
  unsigned: "u32",
  "unsigned int": "u32",
  char: "s8",
  "signed char": "s8",
  "unsigned char": "u8",
  short: "s16",
  "short int": "s16",
  "unsigned short": "u16",
  "short unsigned int": "u16",
  long: "s64",
  "long int": "s64",
  "long long": "s64",
  "long long int": "s64",
  "unsigned long": "u64",
  "long unsigned int": "u64",
  "unsigned long long": "u64",
  "long long unsigned int": "u64",
  size_t: "u64",
  bool: "bool",
  _Bool: "bool",
  half: "f16",
  __half: "f16",
  __nv_bfloat16: "bf16",
  uint32_t: "u32",
  float32: "f32",
  float64: "f64",
  float16: "f16",
  int8: "s8",
  int16: "s16",
  int32: "s32",
  int64: "s64",
  uint8: "u8",
  uint16: "u16",
  uint32: "u32",
  uint64: "u64",
  int32_t: "s32",
  uint8_t: "u8",
  int8_t: "s8",
  uint16_t: "u16",
  int16_t: "s16",
  uint64_t: "u64",
  int64_t: "s64",
};

const TYPES = new Set(Object.values(C_TYPES));

// How to write a value: the variable's C++ type says it better than the register's.
function shownType(cType, registerType) {
  const plain = cType
    .replace(/\b(const|volatile|__restrict__|restrict|struct)\b/g, "")
    .replace(/\s+/g, " ")
    .trim();
  if (/[*&]$/.test(plain)) return "pointer";
  return C_TYPES[plain] ?? registerType;
}

const bits = new DataView(new ArrayBuffer(8));

function halfToNumber(half) {
  const [sign, exponent, fraction] = [half & 0x8000 ? -1 : 1, (half >>> 10) & 31, half & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

// The number that the bits stand for; null for bits that are only bits.
function toNumber(type, low, high) {
  switch (type) {
    case "f32":
      bits.setUint32(0, low);
      return bits.getFloat32(0);
    case "f64":
      bits.setUint32(0, high);
      bits.setUint32(4, low);
      return bits.getFloat64(0);
    case "f16":
      return halfToNumber(low & 0xffff);
    case "bf16":
      bits.setUint32(0, low << 16);
      return bits.getFloat32(0);
    case "s32":
      return low | 0;
    case "s16":
      return (low << 16) >> 16;
    case "s8":
      return (low << 24) >> 24;
    case "u32":
      return low;
    case "u16":
      return low & 0xffff;
    case "u8":
      return low & 0xff;
    default:
      return null;
  }
}

function isFloat(type) {
  return type === "f32" || type === "f64" || type === "f16" || type === "bf16";
}

function digits(number, count) {
  if (Number.isNaN(number)) return "NaN";
  if (!Number.isFinite(number)) return number < 0 ? "-inf" : "inf";
  return String(Number(number.toPrecision(count)));
}

function hex(low, high) {
  return high ? `0x${high.toString(16)}${low.toString(16).padStart(8, "0")}` : `0x${low.toString(16)}`;
}

function format(type, low, high = 0) {
  const number = toNumber(type, low, high);
  if (number !== null) return isFloat(type) ? digits(number, 5) : String(number);
  if (type === "pred" || type === "bool") return low & 0xff ? "true" : "false";
  if (type === "s64") return String(BigInt.asIntN(64, (BigInt(high) << 32n) | BigInt(low)));
  if (type === "u64") return String((BigInt(high) << 32n) | BigInt(low));
  return hex(low, high);
}

// The same in at most `room` characters, with fewer digits if need be; "" where it does not fit.
function formatIn(room, type, low, high) {
  const number = toNumber(type, low, high);
  if (number === null || !isFloat(type)) {
    const whole = format(type, low, high);
    return whole.length <= room ? whole : "";
  }
  for (let count = 4; count; count--) {
    const text = digits(number, count).replace(/^(-?)0\./, "$1.");
    if (text.length <= room) return text;
  }
  return Math.abs(number) < 0.01 ? "~0" : "…";
}

function itemName(type, bytes, count) {
  const name = {
    f32: "float",
    f64: "double",
    f16: "half",
    bf16: "bfloat16",
    s32: "int",
    u32: "unsigned int",
    b32: "word",
  }[type];
  if (name) return plural(count, name);
  return `${plural(count, "item")} of ${plural(bytes, "byte")}`;
}

// -------------------------------------------------------------------------------------------------- the recording

// Unpack base64 of gzip. Old browsers cannot: they are told.
async function unpack(data) {
  if (typeof DecompressionStream === "undefined")
    throw new Error("This browser cannot unpack the recording. Use a newer one: Chrome 80, Firefox 113, Safari 16.4.");
  const text = atob(data);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

const WIDE = new Set(["b64", "f64", "s64", "u64"]); // types of two words

// What happened, decoded into typed arrays. Vectors of 32 lanes stay packed as they came; `low` and `high` read
// one lane. Everything that a step asks is an index made here and a binary search in it.
class Recording {
  static async open(text) {
    const head = JSON.parse(text);
    if (head.version !== 1)
      throw new Error(`This page shows recordings of version 1, not ${head.version}. Run the cell again.`);
    return new Recording(head, await unpack(head.data));
  }

  constructor(head, buffer) {
    const { data, ...rest } = head;
    this.head = rest;
    this.n = head.events;
    this.warps = head.warps;
    this.sites = head.sites;
    this.registers = head.registers;
    this.variables = head.variables;
    this.wideRegister = this.registers.map((each) => WIDE.has(each.type));
    this.threads = head.block[0] * head.block[1] * head.block[2];
    this.columns(buffer);
    this.vectors();
    this.writesOfRegisters();
    this.eventsOfWarps();
    this.lineSteps();
    this.livesOfLanes();
    this.memory = new Memory(this);
    this.origins = new Origins(this);
  }

  columns(buffer) {
    let at = 0;
    const take = (type, count) => {
      const column = new type(buffer, at, count);
      at += Math.ceil((count * type.BYTES_PER_ELEMENT) / 8) * 8;
      return column;
    };
    this.site = take(Uint16Array, this.n);
    this.warp = take(Uint8Array, this.n);
    this.mask = take(Uint32Array, this.n);
    this.forms = take(Uint8Array, this.head.forms_count);
    this.words = take(Uint32Array, this.head.words_count);
  }

  // Where each event's vectors begin (`vector`), and where each vector's words begin (`word`).
  vectors() {
    const plans = this.sites.map((site) => {
      const access = isAccess(site.kind);
      const words = access ? [1] : [];
      for (const register of site.writes) words.push(this.wideRegister[register] ? 2 : 1);
      if (access && site.kind !== "load") for (let i = 0; i < site.items; i++) words.push(site.bytes > 4 ? 2 : 1);
      return Uint8Array.from(words);
    });
    this.vector = new Uint32Array(this.n + 1);
    this.word = new Uint32Array(this.forms.length + 1);
    let vector = 0;
    let word = 0;
    for (let event = 0; event < this.n; event++) {
      this.vector[event] = vector;
      for (const width of plans[this.site[event]]) {
        this.word[vector] = word;
        const form = this.forms[vector++];
        if (form === 1) word += width;
        else if (form === 2) word += 2;
        else if (form === 3) word += LANES * width;
        else if (form === 4) word += bitCount(this.mask[event]) * width;
      }
    }
    this.vector[this.n] = vector;
    this.word[this.forms.length] = word;
  }

  // One list per warp and register: the events that write it, and the vectors that they write.
  writesOfRegisters() {
    const count = this.registers.length;
    const first = new Uint32Array(this.warps * count + 1);
    for (let event = 0; event < this.n; event++)
      for (const register of this.sites[this.site[event]].writes) first[this.warp[event] * count + register + 1] += 1;
    for (let i = 1; i < first.length; i++) first[i] += first[i - 1];
    const place = first.slice();
    this.writeFirst = first;
    this.writeEvent = new Uint32Array(first.at(-1));
    this.writeVector = new Uint32Array(first.at(-1));
    this.writeLanes = new Uint32Array(first.at(-1)); // all lanes that were written up to here
    for (let event = 0; event < this.n; event++) {
      const { writes, kind } = this.sites[this.site[event]];
      let vector = this.vector[event] + (isAccess(kind) ? 1 : 0);
      for (const register of writes) {
        const key = this.warp[event] * count + register;
        const at = place[key]++;
        this.writeEvent[at] = event;
        this.writeVector[at] = vector++;
        this.writeLanes[at] = this.mask[event] | (at > first[key] ? this.writeLanes[at - 1] : 0);
      }
    }
  }

  eventsOfWarps() {
    this.warpFirst = new Uint32Array(this.warps + 1);
    for (let event = 0; event < this.n; event++) this.warpFirst[this.warp[event] + 1] += 1;
    for (let i = 1; i <= this.warps; i++) this.warpFirst[i] += this.warpFirst[i - 1];
    const place = this.warpFirst.slice();
    this.warpEvents = new Uint32Array(this.n);
    for (let event = 0; event < this.n; event++) this.warpEvents[place[this.warp[event]]++] = event;
  }

  // A line step: the events of one warp at one line, until the warp or the line changes, or the line begins
  // anew: an instruction comes that the step has executed already. So a loop written in one line has a step per
  // round, and the head of a loop one step for its sum and its condition, though a backward branch lies between.
  // An instruction without a line belongs to the one before it.
  lineSteps() {
    this.line = new Uint16Array(this.n);
    this.step = new Uint32Array(this.n);
    const starts = [];
    const lineOf = new Uint16Array(this.warps);
    const executed = new Int32Array(this.sites.length).fill(-1); // in which step each site was last
    for (let event = 0; event < this.n; event++) {
      const warp = this.warp[event];
      const line = this.sites[this.site[event]].line || lineOf[warp];
      const anew =
        event === 0 ||
        warp !== this.warp[event - 1] ||
        line !== this.line[event - 1] ||
        executed[this.site[event]] === starts.length - 1;
      if (anew) starts.push(event);
      executed[this.site[event]] = starts.length - 1;
      this.line[event] = lineOf[warp] = line;
      this.step[event] = starts.length - 1;
    }
    this.stepStart = Uint32Array.from(starts);
    this.linesSeen = new Map(); // "warp line" -> sorted starts of steps; filled when asked
  }

  // When each lane was last seen, and in which events a part of the warp's living lanes takes no part.
  livesOfLanes() {
    this.lastOfThread = new Int32Array(this.warps * LANES).fill(-1);
    this.diverged = new Uint8Array(this.n);
    const guarded = this.sites.map((site) => site.text.startsWith("@"));
    const living = new Uint32Array(this.warps);
    for (let event = this.n - 1; event >= 0; event--) {
      const warp = this.warp[event];
      const mask = this.mask[event];
      let ended = mask & ~living[warp];
      for (; ended; ended &= ended - 1) this.lastOfThread[warp * LANES + 31 - Math.clz32(ended & -ended)] = event;
      living[warp] |= mask;
      if (!guarded[this.site[event]] && mask !== living[warp]) this.diverged[event] = 1;
    }
  }

  // One lane of a vector of an event: the lower 32 bits, and the upper ones of a wide type.
  low(vector, event, lane, wide) {
    const at = this.word[vector];
    switch (this.forms[vector]) {
      case 1:
        return this.words[at];
      case 2:
        return (this.words[at] + Math.imul(lane, this.words[at + 1])) >>> 0;
      case 3:
        return this.words[at + (wide ? 2 * lane : lane)];
      case 4:
        return this.words[at + bitCount(this.mask[event] & ((1 << lane) - 1)) * (wide ? 2 : 1)];
      default:
        return 0;
    }
  }

  high(vector, event, lane) {
    const at = this.word[vector] + 1;
    switch (this.forms[vector]) {
      case 1:
        return this.words[at];
      case 3:
        return this.words[at + 2 * lane];
      case 4:
        return this.words[at + 2 * bitCount(this.mask[event] & ((1 << lane) - 1))];
      default:
        return 0;
    }
  }

  known(vector) {
    return this.forms[vector] !== 0;
  }

  // The register's values of all lanes after t events, into `out`; an event of -1 says that nobody wrote it.
  values(warp, register, t, out) {
    const key = warp * this.registers.length + register;
    const wide = this.wideRegister[register];
    const first = this.writeFirst[key];
    let at = lowerBound(this.writeEvent, t, first, this.writeFirst[key + 1]) - 1;
    out.event.fill(-1);
    if (at < first) return out;
    const wanted = this.writeLanes[at];
    for (let found = 0; at >= first && (wanted & ~found) !== 0; at--) {
      const event = this.writeEvent[at];
      let fresh = this.mask[event] & ~found;
      found |= fresh;
      const vector = this.writeVector[at];
      const known = this.known(vector);
      for (; fresh; fresh &= fresh - 1) {
        const lane = 31 - Math.clz32(fresh & -fresh);
        out.event[lane] = event;
        out.known[lane] = known;
        out.low[lane] = this.low(vector, event, lane, wide);
        out.high[lane] = wide ? this.high(vector, event, lane) : 0;
      }
    }
    return out;
  }

  // The last event before t that writes the register in this lane, as a place in `writeEvent`; -1 if none.
  lastWrite(warp, register, lane, t) {
    const key = warp * this.registers.length + register;
    const first = this.writeFirst[key];
    let at = lowerBound(this.writeEvent, t, first, this.writeFirst[key + 1]) - 1;
    while (at >= first && !((this.mask[this.writeEvent[at]] >>> lane) & 1)) at--;
    return at < first ? -1 : at;
  }

  // The warp's last event before t and its first from t on; -1 if there is none.
  lastEvent(warp, t) {
    const at = lowerBound(this.warpEvents, t, this.warpFirst[warp], this.warpFirst[warp + 1]);
    return at > this.warpFirst[warp] ? this.warpEvents[at - 1] : -1;
  }

  nextEvent(warp, t) {
    const at = lowerBound(this.warpEvents, t, this.warpFirst[warp], this.warpFirst[warp + 1]);
    return at < this.warpFirst[warp + 1] ? this.warpEvents[at] : -1;
  }

  kind(event) {
    return this.sites[this.site[event]].kind;
  }

  startOf(event) {
    return this.stepStart[this.step[event]];
  }

  // The time after the line step of an event: where a step by lines comes to rest.
  endOf(event) {
    const step = this.step[event] + 1;
    return step < this.stepStart.length ? this.stepStart[step] : this.n;
  }

  // The starts of the steps at a line, of one warp or (null) of all.
  stepsAt(warp, line) {
    const key = `${warp} ${line}`;
    if (!this.linesSeen.has(key)) {
      const found = this.stepStart.filter(
        (start) => this.line[start] === line && (warp === null || this.warp[start] === warp),
      );
      this.linesSeen.set(key, found);
    }
    return this.linesSeen.get(key);
  }

  // How often the warp has come to each line: the sorted starts, by line. One pass for all lines.
  visits(warp) {
    this.visited ??= [];
    if (!this.visited[warp]) {
      const lists = this.head.source.map(() => []);
      for (const start of this.stepStart)
        if (this.warp[start] === warp && this.line[start]) lists[this.line[start] - 1]?.push(start);
      this.visited[warp] = lists;
    }
    return this.visited[warp];
  }

  // The events at which another warp begins to run, or those of a kind; of one warp or (null) of all.
  events(what, warp) {
    this.chosen ??= new Map();
    const key = `${what} ${warp}`;
    if (!this.chosen.has(key)) {
      const found = [];
      for (let event = 0; event < this.n; event++) {
        if (warp !== null && this.warp[event] !== warp) continue;
        if (what === "warp" ? event === 0 || this.warp[event] !== this.warp[event - 1] : this.kind(event) === what)
          found.push(event);
      }
      this.chosen.set(key, Uint32Array.from(found));
    }
    return this.chosen.get(key);
  }

  // True while the warp stands at a barrier and others run.
  waits(warp, t) {
    const event = this.lastEvent(warp, t);
    return (
      event >= 0 && this.kind(event) === "barrier" && this.nextEvent(warp, t) !== t && this.nextEvent(warp, t) >= 0
    );
  }

  // All its lanes have exited; not so where the recording breaks off.
  finished(warp, t) {
    const last = this.lastEvent(warp, t);
    return (
      last >= 0 && this.nextEvent(warp, t) < 0 && (this.kind(last) === "exit" || !(this.head.stopped || this.head.cut))
    );
  }

  // The instructions nearest to time t, back (-1) or on (1), of the lanes that have one: [{mask, site}]. One or
  // two events tell where the lanes are together.
  nearest(warp, t, by) {
    const [first, end] = [this.warpFirst[warp], this.warpFirst[warp + 1]];
    let missing = 0;
    for (let lane = 0; lane < LANES; lane++) {
      const last = this.lastOfThread[warp * LANES + lane];
      if (by < 0 ? last >= 0 : last >= t) missing |= 1 << lane;
    }
    const found = [];
    let at = lowerBound(this.warpEvents, t, first, end) - (by < 0 ? 1 : 0);
    for (let tries = 0; missing && at >= first && at < end && tries < 20000; at += by, tries++) {
      const event = this.warpEvents[at];
      const mask = this.mask[event] & missing;
      if (mask) found.push({ mask, site: this.site[event] });
      missing &= ~mask;
    }
    return found;
  }

  // Where the variables live at time t: for each [{mask, registers}]. Each lane asks for the instruction that it
  // comes to and for its last one, as lanes on different paths of a branch have them in different registers.
  // Compilers tell the places by the order of the code, not by the paths through it: at a jump the first may be
  // wrong. So of two registers the one that was written last counts.
  located(warp, t) {
    const after = this.nearest(warp, t, 1);
    const places = [];
    for (const { mask, site } of this.nearest(warp, t, -1)) {
      let rest = mask;
      for (const next of after) {
        if (rest & next.mask) places.push({ mask: rest & next.mask, sites: [next.site, site] });
        rest &= ~next.mask;
      }
      if (rest) places.push({ mask: rest, sites: [site] });
    }
    return this.variables.map((variable) => {
      const found = [];
      for (const { mask, sites } of places) {
        const registers = registersAt(variable, sites);
        const same = found.find((each) => String(each.registers) === String(registers));
        if (same) same.mask |= mask;
        else if (registers.length) found.push({ mask, registers });
      }
      return found;
    });
  }

  // The values of a variable that lives in these places, of all lanes.
  valuesIn(places, warp, t, out) {
    if (places.length === 1 && places[0].registers.length === 1)
      return this.values(warp, places[0].registers[0], t, out);
    out.event.fill(-1);
    this.part ??= laneValues();
    for (const { registers, mask } of places)
      for (const register of registers) {
        this.values(warp, register, t, this.part);
        for (let lane = 0; lane < LANES; lane++)
          if ((mask >>> lane) & 1 && this.part.event[lane] > out.event[lane])
            for (const name of ["low", "high", "event", "known"]) out[name][lane] = this.part[name][lane];
      }
    return out;
  }

  // The variables with their values at time t, and the lanes in which the line step has changed them. A
  // variable may move from register to register: both times ask where it lives then.
  states(warp, t) {
    if (this.stated?.warp === warp && this.stated.t === t) return this.stated.list;
    const event = this.lastEvent(warp, t);
    const start = event < 0 ? 0 : this.startOf(event);
    let took = 0;
    for (let e = event; e >= start && event >= 0; e--) took |= this.mask[e];
    const before = this.located(warp, start);
    this.pool ??= this.variables.map(() => laneValues());
    this.former ??= laneValues();
    const list = this.located(warp, t).map((places, i) => {
      const variable = this.variables[i];
      if (!places.length) return { variable, places, now: null, changed: 0 };
      const now = this.valuesIn(places, warp, t, this.pool[i]);
      const former = this.valuesIn(before[i], warp, start, this.former);
      let changed = 0;
      for (let lane = 0; lane < LANES; lane++) {
        const isNew = former.event[lane] < 0 && now.event[lane] >= start;
        if (isNew || (former.event[lane] >= 0 && differ(now, former, lane))) changed |= 1 << lane;
      }
      return { variable, places, now, changed: changed & took };
    });
    this.stated = { warp, t, list };
    return list;
  }

  // The variable that lives in a register when an event has written it; "" if there is none.
  variableOf(register, event) {
    const site = this.site[event];
    for (const at of [site + 1, site])
      for (const variable of this.variables)
        if (variable.ranges.some(([from, to, held]) => held === register && from <= at && at < to)) return variable;
    return null;
  }

  thread(warp, lane) {
    const [x, y] = this.head.block;
    const number = warp * LANES + lane;
    return [number % x, Math.floor(number / x) % y, Math.floor(number / (x * y))];
  }

  // "(5, 3)" in as many dimensions as the block has.
  threadName(warp, lane) {
    const last = this.head.block.reduce((found, size, i) => (size > 1 ? i : found), 0);
    const at = this.thread(warp, lane).slice(0, last + 1);
    return last ? `(${at.join(", ")})` : `${at[0]}`;
  }

  // A pointer as "&A[17]" where it points into an object, else in hexadecimal: registers hold addresses of the
  // run, which each object's `host` tells.
  pointer(low, high) {
    const raw = high * 2 ** 32 + low;
    for (const object of this.memory.objects) {
      const offset = raw - object.host;
      if (object.host && offset >= 0 && offset < object.bytes)
        return `&${this.memory.cellName(object, Math.floor(offset / object.item))}`;
    }
    return raw ? hex(low, high) : "null";
  }

  // A value of a variable or register, in words.
  text(type, low, high) {
    return type === "pointer" ? this.pointer(low, high) : format(type, low, high);
  }

  // What each lane of a warp does at time t: [{state, why}]; the state is one word of a few.
  laneStates(warp, t) {
    const event = this.lastEvent(warp, t);
    let took = 0; // lanes that took part in the line step
    if (event >= 0) for (let e = event; e >= this.startOf(event); e--) took |= this.mask[e];
    return Array.from({ length: LANES }, (_, lane) => this.laneState(warp, lane, t, event, took));
  }

  laneState(warp, lane, t, event, took) {
    const thread = warp * LANES + lane;
    const on = (mask) => ((mask >>> lane) & 1) === 1;
    if (thread >= this.threads) return { state: "none", word: "no thread", why: "not a thread: the block ends before" };
    if (event < 0) return { state: "idle", word: "not begun", why: "its warp has not run yet" };
    const last = this.lastOfThread[thread];
    if (last < t) {
      const broken = last >= 0 && this.kind(last) !== "exit" && (this.head.stopped || this.head.cut);
      if (!broken)
        return {
          state: "exited",
          word: "exited",
          why: last >= 0 ? `exited at line ${this.line[last]}` : "it never ran",
        };
    }
    if (on(this.kind(event) === "branch" ? took : this.mask[event])) {
      if (this.waits(warp, t) || (last < t && this.kind(event) === "barrier")) return this.waiting(this.line[event]);
      return { state: "active", word: "active", why: "takes part in this instruction" };
    }
    if (on(took)) return { state: "skips", word: "skips", why: "took part in this line, but not in this instruction" };
    const before = this.eventOfLane(warp, lane, event, -1);
    if (before >= 0 && this.kind(before) === "barrier") return this.waiting(this.line[before]);
    const again = this.eventOfLane(warp, lane, event + 1, 1);
    const where = again >= 0 ? `, comes again at line ${this.line[again]}` : "";
    return { state: "other", word: "other path", why: `on another path of a branch${where}` };
  }

  waiting(line) {
    return { state: "waits", word: `waits, ${line}`, why: `waits at the barrier of line ${line}` };
  }

  // The nearest event of a lane from `event` on, forward or back; the search gives up after a while.
  eventOfLane(warp, lane, event, by) {
    const [first, end] = [this.warpFirst[warp], this.warpFirst[warp + 1]];
    let at = lowerBound(this.warpEvents, event, first, end) - (by < 0 ? 1 : 0);
    for (let tries = 0; at >= first && at < end && tries < 20000; at += by, tries++)
      if ((this.mask[this.warpEvents[at]] >>> lane) & 1) return this.warpEvents[at];
    return -1;
  }
}

function isAccess(kind) {
  return kind === "load" || kind === "store" || kind === "atomic";
}

// The registers in which a variable lives at some instructions.
function registersAt(variable, sites) {
  const found = [];
  for (const site of sites)
    for (const [from, to, register] of variable.ranges)
      if (from <= site && site < to && !found.includes(register)) found.push(register);
  return found;
}

function differ(a, b, lane) {
  if (a.event[lane] < 0) return false;
  return b.event[lane] < 0 || a.low[lane] !== b.low[lane] || a.high[lane] !== b.high[lane];
}

// A place for the values of 32 lanes, to be filled again and again.
function laneValues() {
  return {
    low: new Uint32Array(LANES),
    high: new Uint32Array(LANES),
    event: new Int32Array(LANES),
    known: new Uint8Array(LANES),
  };
}

// --------------------------------------------------------------------------------------------------------- memory

// Who wrote and read which cell. A cell is one item of an object; touched cells have compact numbers, given by
// pages. Writes are codes, event * stride + lane * items + item, in one array sorted by cell and time.
class Memory {
  constructor(recording) {
    this.recording = recording;
    this.items = recording.sites.reduce((most, site) => Math.max(most, site.items || 1), 1);
    this.stride = LANES * this.items;
    this.objects = recording.head.objects.map((each, number) => this.object(each, number));
    this.lastFound = null;
    this.itemsOfBytes();
    this.index();
    for (const object of this.objects) object.box = this.box(object);
    this.found = { known: false, low: 0, high: 0, event: -1, lane: 0 }; // what `value` fills
    this.accesses = new Map();
  }

  object(each, number) {
    const item = [1, 2, 4, 8].includes(each.item) ? each.item : 4;
    const { objects } = this.recording.head;
    const end = Math.min(each.start + each.bytes, objects[number + 1]?.start ?? Infinity);
    each = { ...each, bytes: end - each.start, end };
    const count = Math.max(1, Math.floor(each.bytes / item));
    const copies = each.space === "local" ? this.recording.warps * LANES : 1;
    let shape = (each.shape ?? []).filter((size) => size > 0);
    if (shape.reduce((a, b) => a * b, 1) !== count) shape = [count];
    const wrap = shape.length === 1 && copies === 1 && count > 32 ? 32 : 0; // a long row is shown in lines of 32
    const cols = copies > 1 ? count : wrap || shape.at(-1) || 1;
    const rows = copies > 1 ? copies : Math.ceil(count / cols);
    const pages = new Int32Array(Math.ceil((count * copies) / PAGE_CELLS)).fill(-1);
    return {
      ...each,
      number,
      item,
      count,
      copies,
      shape,
      wrap,
      cols,
      rows,
      pages,
      shown: shownType(each.type ?? "", each.type ?? ""),
    };
  }

  // Of local arrays only the bytes are known, and a type may have a name of the kernel's own: the first access
  // tells what the items are.
  itemsOfBytes() {
    const { recording } = this;
    const seen = new Set();
    const unknown = new Set(this.objects.filter((each) => each.type === "b8" || !TYPES.has(each.shown)));
    if (!unknown.size) return;
    for (let event = 0; event < recording.n; event++) {
      const number = recording.site[event];
      if (seen.has(number)) continue;
      seen.add(number);
      const site = recording.sites[number];
      const mask = recording.mask[event];
      if (!isAccess(site.kind) || !mask || !recording.known(recording.vector[event])) continue;
      const found = this.objectAt(recording.low(recording.vector[event], event, 31 - Math.clz32(mask & -mask), false));
      if (!unknown.has(found)) continue;
      unknown.delete(found);
      const head = recording.head.objects[found.number];
      if (found.type === "b8")
        Object.assign(found, this.object({ ...head, type: site.type, item: site.bytes, shape: [] }, found.number));
      else if (found.item === site.bytes) found.shown = site.type;
    }
  }

  // The object that an address lies in, or null. Objects of a thread may end behind the next one's start.
  objectAt(address) {
    const last = this.lastFound;
    if (last && address >= last.start && address < last.end) return last;
    let [from, to] = [0, this.objects.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (this.objects[middle].start <= address) from = middle + 1;
      else to = middle;
    }
    const found = this.objects[from - 1];
    if (!found || address >= found.end) return null;
    return (this.lastFound = found);
  }

  // Call visit(object, first cell, last cell, code) for each item that an event touches.
  each(event, visit) {
    const recording = this.recording;
    const site = recording.sites[recording.site[event]];
    const vector = recording.vector[event];
    if (!recording.known(vector)) return;
    const warp = recording.warp[event];
    for (let mask = recording.mask[event]; mask; mask &= mask - 1) {
      const lane = 31 - Math.clz32(mask & -mask);
      const address = recording.low(vector, event, lane, false);
      const object = this.objectAt(address);
      if (!object) continue;
      const base = object.copies > 1 ? (warp * LANES + lane) * object.count : 0;
      for (let item = 0; item < site.items; item++) {
        const from = address - object.start + item * site.bytes;
        if (from + site.bytes > object.bytes) break;
        const code = event * this.stride + lane * this.items + item;
        visit(
          object,
          base + Math.floor(from / object.item),
          base + Math.floor((from + site.bytes - 1) / object.item),
          code,
        );
      }
    }
  }

  // One pass over the accesses: give touched cells their numbers, note first loads, collect writes; then sort.
  index() {
    const { n } = this.recording;
    let cells = 0;
    let firstLoad = new Uint32Array(1024).fill(NONE);
    let counts = new Uint32Array(1024);
    let writes = 0;
    let [cellOf, codeOf] = [new Uint32Array(4096), new Uint32Array(4096)];
    const number = (object, index) => {
      const page = Math.floor(index / PAGE_CELLS);
      if (object.pages[page] < 0) {
        object.pages[page] = cells;
        cells += PAGE_CELLS;
        if (cells > counts.length) {
          counts = grown(counts);
          firstLoad = grown(firstLoad, NONE);
        }
      }
      return object.pages[page] + (index % PAGE_CELLS);
    };
    let kind;
    const visit = (object, from, to, code) => {
      for (let index = from; index <= to; index++) {
        const cell = number(object, index);
        if (kind === "load") {
          if (!counts[cell] && firstLoad[cell] === NONE) firstLoad[cell] = code;
          continue;
        }
        counts[cell] += 1;
        if (writes === cellOf.length) [cellOf, codeOf] = [grown(cellOf), grown(codeOf)];
        cellOf[writes] = cell;
        codeOf[writes++] = code;
      }
    };
    for (let event = 0; event < n; event++) {
      kind = this.recording.kind(event);
      if (isAccess(kind)) this.each(event, visit);
    }
    this.firstLoad = firstLoad;
    this.first = new Uint32Array(cells + 1);
    for (let cell = 0; cell < cells; cell++) this.first[cell + 1] = this.first[cell] + counts[cell];
    this.codes = new Uint32Array(writes);
    const place = this.first.slice();
    for (let i = 0; i < writes; i++) this.codes[place[cellOf[i]]++] = codeOf[i];
  }

  cell(object, index) {
    const page = object.pages[Math.floor(index / PAGE_CELLS)];
    return page === undefined || page < 0 ? -1 : page + (index % PAGE_CELLS);
  }

  touched(cell) {
    return cell >= 0 && (this.firstLoad[cell] !== NONE || this.first[cell + 1] > this.first[cell]);
  }

  // The rectangle of cells that the recording touches: {row, col, rows, cols}, or null.
  box(object) {
    let [top, left, bottom, right] = [Infinity, Infinity, -1, -1];
    for (let page = 0; page < object.pages.length; page++) {
      if (object.pages[page] < 0) continue;
      for (let i = 0; i < PAGE_CELLS; i++) {
        if (!this.touched(object.pages[page] + i)) continue;
        const index = page * PAGE_CELLS + i;
        const [row, col] = [Math.floor(index / object.cols), index % object.cols];
        top = Math.min(top, row);
        bottom = Math.max(bottom, row);
        left = Math.min(left, col);
        right = Math.max(right, col);
      }
    }
    if (bottom < 0) return null;
    if (object.space === "shared" && object.rows <= WINDOW && object.cols <= WINDOW)
      return { row: 0, col: 0, rows: object.rows, cols: object.cols };
    if (object.space === "global" && !object.wrap) {
      const whole = Math.max(1, SECTOR / object.item); // whole sectors, where rows begin with one
      left -= left % whole;
      right = Math.min(object.cols - 1, right - (right % whole) + whole - 1);
    }
    if (object.wrap) [left, right] = [0, object.cols - 1];
    return { row: top, col: left, rows: bottom - top + 1, cols: right - left + 1 };
  }

  // The place of the last write to a cell before t in `codes`; -1 if there was none.
  lastWrite(cell, t) {
    const at = lowerBound(this.codes, t * this.stride, this.first[cell], this.first[cell + 1]) - 1;
    return at < this.first[cell] ? -1 : at;
  }

  eventOf(code) {
    return Math.floor(code / this.stride);
  }

  laneOf(code) {
    return Math.floor((code % this.stride) / this.items);
  }

  // A cell's value after t events, into `this.found`: of the last write, else what its first load saw.
  value(object, index, t) {
    const found = this.found;
    const cell = this.cell(object, index);
    found.known = false;
    found.event = -1;
    if (cell < 0) return found;
    const at = this.lastWrite(cell, t);
    if (at >= 0) {
      found.event = this.eventOf(this.codes[at]);
      found.lane = this.laneOf(this.codes[at]);
      this.compose(object, index, cell, at);
    } else if (this.firstLoad[cell] !== NONE) this.take(object, index, this.firstLoad[cell]);
    return found;
  }

  // Accesses that are smaller than the cell, or larger: take the bytes from as many writes as it needs.
  compose(object, index, cell, at) {
    if (this.take(object, index, this.codes[at])) return;
    const bytes = new Uint8Array(8);
    const have = new Uint8Array(8);
    const wanted = object.item;
    let missing = wanted;
    const put = (code) => {
      const { low, high, from, size, known } = this.item(object, index, code);
      for (let i = 0; i < size; i++) {
        const to = from + i;
        if (to < 0 || to >= wanted || have[to]) continue;
        have[to] = 1;
        missing -= known ? 1 : 0;
        bytes[to] = i < 4 ? low >>> (8 * i) : high >>> (8 * (i - 4));
      }
    };
    for (; at >= this.first[cell] && missing; at--) put(this.codes[at]);
    if (missing && this.firstLoad[cell] !== NONE) put(this.firstLoad[cell]);
    const view = new DataView(bytes.buffer);
    this.found.known = missing === 0;
    this.found.low = view.getUint32(0, true);
    this.found.high = view.getUint32(4, true);
  }

  // What one access holds: its value, and where it begins, counted in bytes from the cell's first.
  item(object, index, code) {
    const recording = this.recording;
    const event = this.eventOf(code);
    const lane = this.laneOf(code);
    const item = code % this.items;
    const site = recording.sites[recording.site[event]];
    const address = recording.low(recording.vector[event], event, lane, false) + item * site.bytes;
    const inCell = (index % object.count) * object.item;
    const isLoad = site.kind === "load";
    const vector = recording.vector[event] + 1 + item + (isLoad ? 0 : site.writes.length);
    const wide = isLoad ? recording.wideRegister[site.writes[item]] : site.bytes > 4;
    const known = recording.known(vector) && (!isLoad || item < site.writes.length);
    return {
      known,
      low: known ? recording.low(vector, event, lane, wide) : 0,
      high: known && wide ? recording.high(vector, event, lane) : 0,
      from: address - object.start - inCell,
      size: site.bytes,
    };
  }

  // The short way: the access is the cell.
  take(object, index, code) {
    const { low, high, from, size, known } = this.item(object, index, code);
    if (from > 0 || from + size < object.item) return false;
    const skip = -8 * from; // bits of a larger access that lie before the cell
    const wholeLow =
      skip >= 32
        ? high >>> (skip - 32)
        : skip
          ? ((low >>> skip) | (skip < 32 && high ? high << (32 - skip) : 0)) >>> 0
          : low;
    this.found.known = known;
    this.found.low = object.item < 4 ? wholeLow & (2 ** (8 * object.item) - 1) : wholeLow;
    this.found.high = object.item > 4 ? high : 0;
    return true;
  }

  // All events that touch a cell, in order; found by a search, once per cell.
  eventsAt(object, index) {
    const key = `${object.number} ${index}`;
    if (!this.accesses.has(key)) {
      const events = [];
      for (let event = 0; event < this.recording.n; event++) {
        if (!isAccess(this.recording.kind(event))) continue;
        let hit = false;
        this.each(event, (found, from, to) => (hit ||= found === object && from <= index && index <= to));
        if (hit) events.push(event);
      }
      this.accesses.set(key, Uint32Array.from(events));
    }
    return this.accesses.get(key);
  }

  writesAt(object, index) {
    const cell = this.cell(object, index);
    if (cell < 0) return new Uint32Array(0);
    return this.codes.slice(this.first[cell], this.first[cell + 1]).map((code) => this.eventOf(code));
  }

  // "a[3][5]", as the source would write it.
  cellName(object, index) {
    let at = index % object.count;
    const places = [];
    for (let i = object.shape.length - 1; i >= 0; i--) {
      places.unshift(`[${at % object.shape[i]}]`);
      at = Math.floor(at / object.shape[i]);
    }
    if (object.space === "global") places.splice(0, places.length, `[${index}]`); // the source has a pointer
    if (object.count === 1) places.length = 0;
    const owner = object.copies > 1 ? Math.floor(index / object.count) : -1;
    const whose = owner < 0 ? "" : ` of thread ${this.recording.threadName(Math.floor(owner / LANES), owner % LANES)}`;
    return `${object.name}${places.join("")}${whose}`;
  }

  bank(object, index) {
    return ((object.start + index * object.item - this.recording.head.shared_start) >>> 2) & 31;
  }

  // The cell of an address: {object, index}, or null.
  place(address) {
    const object = this.objectAt(address);
    return object ? { object, index: Math.floor((address - object.start) / object.item) } : null;
  }

  // What one event asks of memory: its cells by object, its sectors or its passes, and a sentence.
  request(event) {
    const recording = this.recording;
    const site = recording.sites[recording.site[event]];
    const cells = [];
    const objects = new Set();
    this.each(event, (object, from, to) => {
      objects.add(object);
      for (let index = from; index <= to; index++) cells.push({ object, index });
    });
    const request = { event, kind: site.kind, cells, objects: [...objects], sectors: new Set() };
    const space = request.objects[0]?.space ?? "";
    const lanes = bitCount(recording.mask[event]);
    const inside = new Set();
    this.each(event, (object, from, to, code) => inside.add(this.laneOf(code)));
    const verb = { load: "reads", store: "writes", atomic: "updates" }[site.kind];
    const names = listed(request.objects.map((object) => object.name));
    const [object] = request.objects; // it knows better than b32 or u32 what its items are
    const type = object?.item === site.bytes ? object.shown : site.type;
    const what = itemName(type, site.bytes, lanes * site.items);
    let text = `${verb} ${what}${names ? ` of ${names}` : ""}`;
    if (space === "shared") text += `: ${this.passes(event, site)}`;
    else if (space === "global") {
      this.sectors(event, site, request.sectors);
      text += ` in ${plural(request.sectors.size, "sector")} of ${SECTOR} bytes`;
    } else if (request.objects.length) text += ` in ${space} memory`;
    const outside = lanes - inside.size;
    if (outside) text += `${request.objects.length ? ";" : ":"} ${plural(outside, "lane")} outside every array`;
    request.text = `${text}.`;
    return request;
  }

  sectors(event, site, into) {
    const recording = this.recording;
    const size = site.items * site.bytes;
    for (let mask = recording.mask[event]; mask; mask &= mask - 1) {
      const lane = 31 - Math.clz32(mask & -mask);
      const address = recording.low(recording.vector[event], event, lane, false);
      for (let sector = Math.floor(address / SECTOR); sector * SECTOR < address + size; sector++) into.add(sector);
    }
  }

  // Shared memory serves each bank's words one after the other: in passes. Accesses of 8 bytes go by half
  // warps, of 16 by quarters.
  passes(event, site) {
    const recording = this.recording;
    const size = site.items * site.bytes;
    const group = size > 8 ? 8 : size > 4 ? 16 : 32;
    const touched = new Set();
    let passes = 0;
    let worst = { words: 0, bank: 0 };
    for (let first = 0; first < LANES; first += group) {
      const banks = new Map();
      for (let lane = first; lane < first + group; lane++) {
        if (!((recording.mask[event] >>> lane) & 1)) continue;
        const address = recording.low(recording.vector[event], event, lane, false) - recording.head.shared_start;
        for (let word = address >>> 2; word * 4 < address + size; word++) {
          const bank = word & 31;
          touched.add(bank);
          if (!banks.has(bank)) banks.set(bank, new Set());
          banks.get(bank).add(word);
        }
      }
      let most = 0;
      for (const [bank, words] of banks) {
        most = Math.max(most, words.size);
        if (words.size > worst.words) worst = { words: words.size, bank };
      }
      passes += most;
    }
    const list = [...touched].sort((a, b) => a - b);
    const parts = { 32: "", 16: " (2 half warps)", 8: " (4 quarter warps)" }[group];
    const conflict = worst.words > 1 ? `: bank ${worst.bank} has ${worst.words} different words` : "";
    const banks = `${list.length === 1 ? "bank" : "banks"} ${ranges(list)}`;
    return `${banks}; ${plural(passes, "pass", "passes")}${parts}${conflict}`;
  }
}

function grown(array, fill = 0) {
  const larger = new array.constructor(array.length * 2);
  larger.set(array);
  if (fill) larger.fill(fill, array.length);
  return larger;
}

// -------------------------------------------------------------------------------------- where values come from

// Follows a value back: through the registers of its line, through memory, to the lines, arguments and arrays
// that it came from. Moves and addresses are passed over: the reader wants elements and variables.
class Origins {
  constructor(recording) {
    this.recording = recording;
    this.registerOf = new Map(recording.registers.map((each, number) => [each.name, number]));
    this.parameters = parametersOf(recording.head);
  }

  // The value of a variable in a lane at time t: of the register that was written last; null if none was.
  ofRegisters(warp, registers, lane, t) {
    const { recording } = this;
    let best = null;
    for (const register of registers) {
      const at = recording.lastWrite(warp, register, lane, t);
      if (at >= 0 && (!best || recording.writeEvent[at] > recording.writeEvent[best[0]])) best = [at, register];
    }
    return best && this.node(...this.settle(...best, lane), lane);
  }

  // Pass over moves that only carry a variable from register to register: back to where it got the value.
  settle(at, register, lane) {
    const { recording } = this;
    for (let moves = 0; moves < 1000; moves++) {
      const event = recording.writeEvent[at];
      const site = recording.sites[recording.site[event]];
      if (!isMove(site) || site.reads.length !== 1) break;
      const source = recording.lastWrite(recording.warp[event], site.reads[0], lane, event);
      if (source < 0) break;
      const variable = recording.variableOf(register, event);
      if (variable && recording.variableOf(site.reads[0], recording.writeEvent[source]) !== variable) break;
      [at, register] = [source, site.reads[0]];
    }
    return [at, register];
  }

  // The value of a memory cell at time t.
  ofCell(object, index, t) {
    const { recording } = this;
    const memory = recording.memory;
    const cell = memory.cell(object, index);
    const where = `${memory.cellName(object, index)}${said(memory, object, index, t)} in ${object.space} memory`;
    const at = cell < 0 ? -1 : memory.lastWrite(cell, t);
    if (at < 0) {
      const isNew = object.space === "shared" || object.space === "local";
      return {
        text: `${where}, ${isNew ? "never written" : "from before the launch"}`,
        event: -1,
        lane: 0,
        inputs: () => [],
      };
    }
    const code = memory.codes[at];
    const [event, lane] = [memory.eventOf(code), memory.laneOf(code)];
    const thread = recording.threadName(recording.warp[event], lane);
    return {
      text: `${where}, written by thread ${thread} at line ${recording.line[event]}`,
      event,
      lane,
      inputs: () => this.inputs(event, lane, this.stored(event, code % memory.items)),
    };
  }

  // The value that a write left in a lane, in the type of the variable that it belongs to; "" if not known.
  written(at, register, lane) {
    const { recording } = this;
    const [event, vector] = [recording.writeEvent[at], recording.writeVector[at]];
    if (!recording.known(vector)) return "";
    const variable = recording.variableOf(register, event);
    const type = shownType(variable?.type ?? "", recording.registers[register].type);
    const wide = recording.wideRegister[register];
    const high = wide ? recording.high(vector, event, lane) : 0;
    return recording.text(type, recording.low(vector, event, lane, wide), high);
  }

  // One write of a register: what to say of it, and its own inputs when they are asked for.
  node(at, register, lane) {
    const { recording } = this;
    const event = recording.writeEvent[at];
    const variable = recording.variableOf(register, event);
    const value = this.written(at, register, lane);
    const name = variable ? variable.name : recording.variables.length ? "a value" : recording.registers[register].name;
    return {
      text: `${name}${value && ` = ${value}`}, line ${recording.line[event]}`,
      code: (recording.head.source[recording.line[event] - 1] ?? "").trim(),
      event,
      lane,
      inputs: () => this.inputs(event, lane, [register]),
    };
  }

  // The inputs of an event: variables, elements and constants, found by going back within its line.
  inputs(event, lane, registers) {
    const { recording } = this;
    const step = recording.step[event];
    const found = [];
    const seen = new Set();
    const add = (node) => {
      if (!seen.has(node.text) && found.length < 24) found.push(node);
      seen.add(node.text);
    };
    const write = (start, read) => {
      const [at, register] = this.settle(start, read, lane);
      const from = recording.writeEvent[at];
      const key = `${from} ${register}`;
      if (seen.has(key)) return;
      seen.add(key);
      const site = recording.sites[recording.site[from]];
      if (isAccess(site.kind)) return add(this.loaded(from, lane, site));
      if (recording.step[from] !== step) return add(this.node(at, register, lane));
      if (!site.reads.length) return add(this.given(site, at, lane, register));
      for (const read of site.reads) go(read, from);
    };
    const go = (register, before) => {
      const at = recording.lastWrite(recording.warp[event], register, lane, before);
      if (at >= 0) write(at, register);
    };
    const isStore = recording.kind(event) === "store"; // what it writes was there before it
    for (const register of registers) go(register, isStore ? event : event + 1);
    return found;
  }

  // The element that a load or an atomic operation read.
  loaded(event, lane, site) {
    const { recording } = this;
    const address = recording.low(recording.vector[event], event, lane, false);
    const known = recording.known(recording.vector[event]);
    const object = known ? recording.memory.objectAt(address) : null;
    if (!object) return this.given(site, -1, lane, -1, event);
    const own = object.copies > 1 ? (recording.warp[event] * LANES + lane) * object.count : 0;
    const node = this.recording.origins.ofCell(object, own + Math.floor((address - object.start) / object.item), event);
    return { ...node, place: true, reader: event, event: node.event < 0 ? event : node.event };
  }

  // What has no inputs: an argument, an index of the thread, a constant.
  given(site, at, lane, register, loader = -1) {
    const { recording } = this;
    const event = at >= 0 ? recording.writeEvent[at] : loader;
    const value = at >= 0 ? this.written(at, register, lane) : "";
    const isSaid = value && ` = ${value}`;
    const special = SPECIAL.find(([name]) => site.text.includes(name));
    const parameter = /\[\w*?_?param_(\d+)/.exec(site.text);
    let text = value ? `the constant ${value}` : site.text;
    if (special) text = `${special[1]}${isSaid}`;
    else if (parameter) {
      const name = this.parameters[parameter[1]] ?? `number ${Number(parameter[1]) + 1}`;
      text = `the argument ${name}${isSaid}`;
    }
    return { text, event, lane, inputs: () => [] };
  }

  // The registers that a store writes to memory: those behind the address.
  stored(event, item) {
    const site = this.recording.sites[this.recording.site[event]];
    const behind = site.text.slice(site.text.indexOf("]") + 1);
    const named = [...behind.matchAll(/%[a-z]+\d+/g)]
      .map(([name]) => this.registerOf.get(name))
      .filter((each) => each !== undefined);
    if (named.length > 1 && named.length === site.items) return [named[item]];
    return named.length ? named : site.reads.slice(1);
  }
}

const SPECIAL = [
  ["%tid.x", "threadIdx.x"],
  ["%tid.y", "threadIdx.y"],
  ["%tid.z", "threadIdx.z"],
  ["%ctaid.x", "blockIdx.x"],
  ["%ctaid.y", "blockIdx.y"],
  ["%ctaid.z", "blockIdx.z"],
  ["%ntid.x", "blockDim.x"],
  ["%ntid.y", "blockDim.y"],
  ["%ntid.z", "blockDim.z"],
  ["%nctaid.x", "gridDim.x"],
  ["%nctaid.y", "gridDim.y"],
  ["%nctaid.z", "gridDim.z"],
  ["%laneid", "the lane"],
];

function isMove(site) {
  return /^(@!?%\w+ )?(mov|cvta)\b/.test(site.text);
}

function said(memory, object, index, t) {
  const found = memory.value(object, index, t);
  return found.known ? ` = ${format(object.shown, found.low, found.high)}` : "";
}

// The names of the kernel's parameters, from its source.
function parametersOf(head) {
  const text = head.source.join("\n").replace(/\/\/.*|\/\*[^]*?\*\//g, "");
  const list = new RegExp(`\\b${head.kernel.replace(/\W.*/, "")}\\s*\\(([^)]*)\\)`).exec(text);
  return list ? list[1].split(",").map((each) => /(\w+)\s*(\[[^\]]*\])?\s*$/.exec(each)?.[1]) : [];
}

// --------------------------------------------------------------------------------------------------------- player

// The time, what is chosen, and the verbs. Each verb is a jump to another time; whoever listens shows it.
// While it follows the running warp, steps are those of the block; with a warp chosen they are this warp's,
// and the others run between.
class Player {
  constructor(recording) {
    this.recording = recording;
    this.t = Math.min(recording.head.start ?? 0, recording.n);
    this.chosenWarp = null; // null: follow the one that runs
    this.line = 0; // the chosen line
    this.lane = 0;
    this.variable = null; // the chosen variable or register: a column of the lanes
    this.cell = null; // the chosen cell: {object, index}
    this.asking = "variable"; // or "cell": which of the two was chosen last
    this.speed = 2;
    this.playing = false;
    this.side = -1; // of the findings, while one jumps through them
    this.listeners = [];
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  changed() {
    for (const listener of this.listeners) listener();
  }

  // The warp that the views show.
  get warp() {
    if (this.chosenWarp !== null) return this.chosenWarp;
    return this.recording.n ? this.recording.warp[Math.max(0, this.t - 1)] : 0;
  }

  // The last event of the shown warp, -1 before its first.
  get event() {
    return this.recording.lastEvent(this.warp, this.t);
  }

  go(t) {
    const to = Math.max(0, Math.min(this.recording.n, Math.round(t)));
    if (to === this.t) return false;
    this.t = to;
    this.changed();
    return true;
  }

  goTo(event, lane) {
    if (event < 0) return false;
    if (lane !== undefined) this.lane = lane;
    if (this.chosenWarp !== null) this.chosenWarp = this.recording.warp[event];
    const moved = this.go(event + 1);
    if (!moved) this.changed();
    return true;
  }

  follow(warp) {
    this.chosenWarp = warp;
    this.changed();
  }

  stepLine(by) {
    const { recording, t } = this;
    const warp = this.chosenWarp;
    if (by > 0) {
      const event = warp === null ? t : recording.nextEvent(warp, t);
      return event >= 0 && event < recording.n && this.go(recording.endOf(event));
    }
    const event = warp === null ? t - 1 : recording.lastEvent(warp, t);
    if (event < 0) return false;
    const start = recording.startOf(event);
    if (warp === null) return this.go(start);
    const before = recording.lastEvent(warp, start);
    return this.go(before < 0 ? 0 : recording.endOf(before));
  }

  stepInstruction(by) {
    const { recording, t } = this;
    const warp = this.chosenWarp;
    if (warp === null) return this.go(t + by);
    const event = by > 0 ? recording.nextEvent(warp, t) : recording.lastEvent(warp, recording.lastEvent(warp, t));
    return by > 0 ? event >= 0 && this.go(event + 1) : this.go(event + 1);
  }

  // To the next or previous of some events, each shown with its line step complete.
  toOneOf(events, by) {
    const { recording, t } = this;
    const arrive = (i) => recording.endOf(events[i]);
    let [from, to] = [0, events.length]; // the first that arrives after t
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (arrive(middle) <= t) from = middle + 1;
      else to = middle;
    }
    if (by > 0) return from < events.length && this.go(arrive(from));
    while (from > 0 && arrive(from - 1) >= t) from -= 1;
    return from > 0 && this.go(arrive(from - 1));
  }

  toWarp(by) {
    return this.toOneOf(this.recording.events("warp", null), by);
  }

  toBarrier(by) {
    return this.toOneOf(this.recording.events("barrier", this.chosenWarp), by);
  }

  toLine(by, line = this.line) {
    return line > 0 && this.toOneOf(this.recording.stepsAt(this.chosenWarp, line), by);
  }

  // To the next or previous event of a list, exactly.
  toEvent(events, by) {
    const at = by > 0 ? lowerBound(events, this.t) : lowerBound(events, this.t - 1) - 1;
    return at >= 0 && at < events.length && this.goTo(events[at]);
  }

  toWrite(by) {
    if (!this.cell) return false;
    return this.toEvent(this.recording.memory.writesAt(this.cell.object, this.cell.index), by);
  }

  toAccess(by) {
    if (!this.cell) return false;
    return this.toEvent(this.recording.memory.eventsAt(this.cell.object, this.cell.index), by);
  }

  toFinding(number, side) {
    const finding = this.recording.head.findings[number];
    if (!finding || finding.events[side] === undefined) return false;
    const place =
      finding.address === null || finding.address === undefined ? null : this.recording.memory.place(finding.address);
    if (place) {
      this.cell = place;
      this.asking = "cell";
    }
    return this.goTo(finding.events[side], finding.lanes?.[side]);
  }

  // The next side of a finding, round and round.
  nextFinding() {
    const sides = this.recording.head.findings.flatMap((finding, number) =>
      finding.events.map((_, side) => [number, side]),
    );
    if (!sides.length) return false;
    this.side = (this.side + 1) % sides.length;
    return this.toFinding(...sides[this.side]);
  }

  chooseCell(cell) {
    this.cell = cell;
    this.asking = "cell";
    this.changed();
  }

  chooseValue(lane, variable) {
    this.lane = lane;
    this.variable = variable;
    this.asking = "variable";
    this.changed();
  }

  chooseLine(line) {
    this.line = line;
    this.changed();
  }

  // Play: so many lines a second, or as many a frame as bring the end within about ten seconds.
  play() {
    if (this.playing) return this.pause();
    if (this.t === this.recording.n) this.go(0);
    this.playing = true;
    this.changed();
    let last = performance.now();
    let due = 1;
    const frame = (now) => {
      if (!this.playing) return;
      due += this.speed ? ((now - last) / 1000) * this.speed : 0;
      last = now;
      if (!this.speed) this.leap(Math.max(2, Math.ceil(this.recording.stepStart.length / 600)));
      else if (due >= 1) {
        const count = Math.floor(due);
        due -= count;
        if (count === 1 || this.chosenWarp !== null) this.stepLine(1);
        else this.leap(count);
      }
      if (!this.playing) return;
      if (this.ended()) return this.pause();
      this.frame = requestAnimationFrame(frame);
    };
    this.frame = requestAnimationFrame(frame);
  }

  // Many line steps at once.
  leap(count) {
    const { recording } = this;
    if (this.chosenWarp !== null) {
      let t = this.t;
      for (let i = 0; i < count; i++) {
        const event = recording.nextEvent(this.chosenWarp, t);
        if (event < 0) break;
        t = recording.endOf(event);
      }
      return this.go(t);
    }
    const step = this.t < recording.n ? recording.step[this.t] + count : recording.stepStart.length;
    return this.go(step < recording.stepStart.length ? recording.stepStart[step] : recording.n);
  }

  ended() {
    if (this.t >= this.recording.n) return true;
    return this.chosenWarp !== null && this.recording.nextEvent(this.chosenWarp, this.t) < 0;
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    cancelAnimationFrame(this.frame);
    this.changed();
  }
}

// One sentence for the moment: what the shown warp has just done, and what comes next.
function sentence(player) {
  const { recording, t } = player;
  const { warp, event } = player;
  if (event < 0) return `Warp ${warp} has not begun. ${plural(recording.n, "event")} were recorded.`;
  const line = recording.line[event];
  const done = deeds(player, event);
  const next = recording.nextEvent(warp, t);
  let then = "";
  if (next < 0) then = recording.head.stopped || recording.head.cut ? "the recording ends here" : "it has finished";
  else if (recording.waits(warp, t)) then = "it waits there for the other warps";
  else if (recording.kind(next) === "barrier") then = "the barrier is next";
  return `Warp ${warp}, line ${line}: ${done}${then ? `; ${then}` : ""}.`;
}

// "32 lanes read shared memory a and b and set sum"; what fewer lanes do is counted apart.
function deeds(player, event) {
  const { recording } = player;
  const verbs = new Map(); // what was done -> the lanes that did it
  let all = 0;
  const did = (what, mask) => mask && verbs.set(what, (verbs.get(what) ?? 0) | mask);
  const places = { load: new Map(), store: new Map(), atomic: new Map() };
  for (let e = recording.startOf(event); e <= event; e++) {
    const site = recording.sites[recording.site[e]];
    all |= recording.mask[e];
    if (isAccess(site.kind)) note(recording, e, places[site.kind]);
    if (site.kind === "barrier") did("come to the barrier", recording.mask[e]);
    if (site.kind === "exit") did(site.text.includes("trap") ? "stop the kernel" : "exit", recording.mask[e]);
  }
  const first = new Map();
  for (const [kind, verb] of [
    ["load", "read"],
    ["store", "write"],
    ["atomic", "update"],
  ])
    for (const [space, { names, lanes }] of places[kind])
      first.set(`${verb} ${space} memory ${listed([...names])}`, lanes);
  const set = recording.states(player.warp, player.t).filter((each) => each.changed);
  if (set.length) first.set(`set ${listed(set.map((each) => each.variable.name))}`, all);
  const groups = [];
  for (const [what, lanes] of [...first, ...verbs]) {
    if (groups.at(-1)?.lanes === lanes) groups.at(-1).what.push(what);
    else groups.push({ lanes, what: [what] });
  }
  if (!groups.length) groups.push({ lanes: all, what: ["compute"] });
  return groups.map(({ lanes, what }) => phrase(bitCount(lanes), what)).join(", ");
}

function phrase(lanes, what) {
  if (lanes !== 1) return `${lanes} lanes ${listed(what)}`;
  return `1 lane ${listed(what.map((each) => each.replace(/^\w+/, "$&s")))}`;
}

function note(recording, event, places) {
  const { memory } = recording;
  const site = recording.sites[recording.site[event]];
  const vector = recording.vector[event];
  const mask = recording.mask[event];
  if (!mask || !recording.known(vector)) return;
  const lane = 31 - Math.clz32(mask & -mask);
  const object = memory.objectAt(recording.low(vector, event, lane, false));
  if (!object) return;
  if (!places.has(object.space)) places.set(object.space, { names: new Set(), lanes: 0 });
  places.get(object.space).names.add(object.name);
  places.get(object.space).lanes |= mask;
}

// --------------------------------------------------------------------------------------------------- source view

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

// ---------------------------------------------------------------------------------------------------- lanes view

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
    const isNew = key !== this.key || !this.lanes;
    if (isNew) this.build(columns);
    this.key = key;
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

// --------------------------------------------------------------------------------------------------- memory view

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

// ------------------------------------------------------------------------------------------------------ time line

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

// --------------------------------------------------------------------------------------------------- origin view

// The tree of where a value comes from. A branch is found when it is opened; the first levels are open.
class OriginView {
  constructor(player) {
    this.player = player;
    this.recording = player.recording;
    this.title = make("h4", { tabindex: "-1" }, "Where a value comes from");
    this.tree = make("div", { class: "lks-tree" });
    const close = make("button", { type: "button" }, "Close");
    close.addEventListener("click", () => (this.element.hidden = true));
    this.element = make(
      "div",
      { class: "lks-panel lks-origin", hidden: "" },
      make("div", { class: "lks-head" }, this.title, close),
      this.tree,
    );
  }

  // Of the cell or the variable that was chosen last.
  ask() {
    const { player, recording } = this;
    const { t, warp, lane, cell, variable } = player;
    let node = null;
    let name = "";
    if (player.asking === "cell" && cell) {
      node = recording.origins.ofCell(cell.object, cell.index, t);
      name = recording.memory.cellName(cell.object, cell.index);
    } else if (variable?.places?.length) {
      const place = variable.places.find(({ mask }) => (mask >>> lane) & 1) ?? variable.places[0];
      node = recording.origins.ofRegisters(warp, place.registers, lane, t);
      name = `${variable.name} of thread ${recording.threadName(warp, lane)} (warp ${warp}, lane ${lane})`;
    } else name = "nothing is chosen yet";
    setText(this.title, `Where a value comes from: ${name}`);
    this.tree.replaceChildren(
      node
        ? make("ul", {}, this.branch(node, 3))
        : make(
            "p",
            {},
            name ? "Choose a value in the table of lanes, or a cell of memory, that has been written." : "",
          ),
    );
    this.element.hidden = false;
    this.title.focus({ preventScroll: true });
    this.element.scrollIntoView?.({ block: "nearest" });
  }

  // One node; `open` levels below it are opened.
  branch(node, open) {
    const item = make("li");
    const go = make(
      "button",
      { type: "button", class: "lks-go", ...(node.event < 0 ? { disabled: "" } : { title: "go to this event" }) },
      node.text,
    );
    go.addEventListener("click", () => this.player.goTo(node.event, node.lane));
    const line = make("span", { class: "lks-node" }, go, node.code ? make("code", {}, node.code) : "");
    const inputs = open > 0 ? node.inputs() : null;
    if (inputs?.length === 0) {
      item.append(make("span", { class: "lks-twig", "aria-hidden": "true" }, "·"), line);
      return item;
    }
    const twig = make(
      "button",
      {
        type: "button",
        class: "lks-twig",
        "aria-expanded": String(Boolean(inputs)),
        "aria-label": `inputs of ${node.text}`,
      },
      inputs ? "▾" : "▸",
    );
    item.append(twig, line);
    let list = null;
    const show = (nodes) => {
      list = make("ul", {}, ...nodes.map((each) => this.branch(each, open - 1)));
      if (!nodes.length) list.append(make("li", {}, "nothing further"));
      item.append(list);
    };
    if (inputs) show(inputs);
    twig.addEventListener("click", () => {
      if (!list) show(node.inputs());
      else list.hidden = !list.hidden;
      twig.textContent = list.hidden ? "▸" : "▾";
      twig.setAttribute("aria-expanded", String(!list.hidden));
    });
    return item;
  }
}

// ------------------------------------------------------------------------------------------------------- the whole

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
  ["r", "jump to the race"],
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
