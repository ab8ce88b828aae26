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
