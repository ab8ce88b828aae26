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

  // The lanes that leave at a return: with a guard, it is executed by others, too.
  leaving(event) {
    let left = 0;
    for (let lane = 0; lane < LANES; lane += 1)
      if (this.lastOfThread[this.warp[event] * LANES + lane] === event) left |= 1 << lane;
    return left & this.mask[event];
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
