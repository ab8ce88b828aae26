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
