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
    if (site.kind !== "exit") continue;
    if (site.text.includes("trap")) did("stop the kernel", recording.mask[e]);
    else did("exit", recording.leaving(e));
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
  for (let lane = 0; lane < LANES; lane += 1) {
    if (!((mask >>> lane) & 1)) continue;
    const object = memory.objectAt(recording.low(vector, event, lane, false));
    if (!object) continue; // outside of all arrays
    if (!places.has(object.space)) places.set(object.space, { names: new Set(), lanes: 0 });
    places.get(object.space).names.add(object.name);
    places.get(object.space).lanes |= 1 << lane;
  }
}
