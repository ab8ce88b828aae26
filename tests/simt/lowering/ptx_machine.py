"""A plain interpreter of plain PTX: what lowered code does, lane by lane, with neither LLVM nor shapes."""

from ptx_kernels import module

from simt.analysis.layout import storage
from simt.ptx import TYPE_BYTES, Address, Immediate, Register, Symbol, Vector

LANES = 32
MASK = (1 << 64) - 1
MOST_STEPS = 20000
LOCAL, LOCAL_STEP = 1 << 40, 1 << 20  # where the lanes' local memories lie


class Trap(Exception):
    """A lane has come to a trap; its opcode."""


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) * (value >> bits - 1)


def prmt(x, y, pick):
    eight = (y << 32 | x).to_bytes(8, "little")
    return sum(eight[pick >> 4 * i & 7] << 8 * i for i in range(4))


COMPARE = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}
COMPUTE = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "mad": lambda x, y, z: x * y + z,
    "shl": lambda x, y: x << y if y < 64 else 0,
    "shr": lambda x, y: x >> y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "selp": lambda x, y, p: x if p else y,
    "prmt": prmt,
    "cvta": lambda x: x,
    "cvt": lambda x: x,
}


class Machine:
    """Runs a kernel's code in one warp; of the lanes that are furthest behind, all go one step."""

    def __init__(self, kernel, params=None, shared=4096, memory=4096, registers=None):
        self.kernel, self.params = kernel, params or {}
        self.local_places = storage(kernel, module("")).local
        self.memory = {"shared": bytearray(shared), "global": bytearray(memory)}
        self.local = [bytearray(1 << 14) for _ in range(LANES)]
        self.registers = [dict(registers(lane) if registers else {}) for lane in range(LANES)]
        self.atomics = []

    def run(self, lanes=LANES):
        places = dict.fromkeys(range(lanes), 0)
        for _ in range(MOST_STEPS):
            places = {lane: at for lane, at in places.items() if at < len(self.kernel.code)}
            if not places:
                return self
            at = min(places.values())
            running = [lane for lane, place in places.items() if place == at]
            self._step(self.kernel.code[at], running, places)
        raise AssertionError("the code does not end")

    def _step(self, i, running, places):
        active = [lane for lane in running if not i.guard or self._holds(i.guard, lane)]
        for lane in running:
            places[lane] += 1
        name, end = i.parts[0], len(self.kernel.code)
        if name == "bra":
            places.update(dict.fromkeys(active, self.kernel.labels[i.operands[0].name]))
        elif name in ("ret", "exit"):
            places.update(dict.fromkeys(active, end))
        elif name == "trap" and active:
            raise Trap(i.opcode)
        elif name == "shfl":
            values = {
                lane: self._value(i.operands[1], self._value(i.operands[2], lane) & 31) for lane in active
            }
            for lane, value in values.items():
                self._write(i.operands[0], value, lane)
        elif name not in ("trap", "yield", "bar", "barrier", "membar"):
            for lane in active:
                self._one(i, lane)

    def _holds(self, guard, lane):
        return bool(self._value(guard.register, lane)) != guard.negated

    def _one(self, i, lane):
        name, operands = i.parts[0], i.operands
        if name in ("ld", "st"):
            self._move(i, lane)
        elif name == "mov":
            self._move_registers(i, lane)
        elif name == "setp":
            x, y = (self._typed(i.type, operand, lane) for operand in operands[1:3])
            self._write(operands[0], int(COMPARE[i.parts[1]](x, y)), lane)
        elif name == "not":
            value = self._value(operands[1], lane)
            self._write(operands[0], 1 - value if i.parts[1] == "pred" else ~value, lane)
        elif name in ("atom", "red"):
            given = [operand for operand in operands if not isinstance(operand, Address)]
            where = self._where(next(o for o in operands if isinstance(o, Address)), lane)
            self.atomics.append((i.opcode, where, [self._value(operand, lane) for operand in given[-1:]]))
        else:
            values = [self._typed(i.type, operand, lane) for operand in operands[1:]]
            self._write(operands[0], COMPUTE[name](*values), lane, "wide" in i.parts)

    def _move_registers(self, i, lane):
        to, from_ = i.operands
        if isinstance(to, Vector):
            bits = 8 * TYPE_BYTES[i.type] // len(to.items)
            for n, item in enumerate(to.items):
                self._write(item, self._value(from_, lane) >> bits * n, lane)
        elif isinstance(from_, Vector):
            bits = 8 * TYPE_BYTES[i.type] // len(from_.items)
            values = [self._value(item, lane) & (1 << bits) - 1 for item in from_.items]
            self._write(to, sum(value << bits * n for n, value in enumerate(values)), lane)
        else:
            self._write(to, self._value(from_, lane), lane)

    def _move(self, i, lane):
        size, is_load = TYPE_BYTES[i.type], i.parts[0] == "ld"
        place = next(o for o in i.operands if isinstance(o, Address))
        value = next(o for o in i.operands if o is not place)
        items = value.items if isinstance(value, Vector) else (value,)
        if "param" in i.parts:
            data, start = self.params[place.base.name], place.offset
        else:
            data, start = self._data(i.space, self._where(place, lane), lane)
        for n, item in enumerate(items):
            at = start + n * size
            assert 0 <= at <= len(data) - size and (at % size == 0 or "param" in i.parts)
            if is_load:
                self._write(item, int.from_bytes(data[at : at + size], "little"), lane)
            else:
                word = self._value(item, lane) & (1 << 8 * size) - 1
                data[at : at + size] = word.to_bytes(size, "little")

    def _data(self, space, where, lane):
        if where >= LOCAL:
            owner, offset = divmod(where - LOCAL, LOCAL_STEP)
            assert owner == lane
            return self.local[lane], offset
        return self.memory["shared" if space == "shared" else "global"], where

    def _where(self, place, lane):
        return self._value(place.base, lane) + place.offset

    def _typed(self, type_, operand, lane):
        value = self._value(operand, lane)
        if type_ in ("pred", ""):
            return value
        bits = 8 * TYPE_BYTES[type_]
        return signed(value, bits) if type_[0] == "s" else value & (1 << bits) - 1

    def _value(self, operand, lane):
        match operand:
            case Register(name):
                unset = self.kernel.register_type(name) == "pred" or 0xDEADBEEF  # any value will do
                return self.registers[lane].get(name, int(unset))
            case Immediate(value):
                return value & MASK
            case Symbol("%laneid" | "%tid.x"):
                return lane
            case Symbol(name) if name in self.local_places:
                return LOCAL + LOCAL_STEP * lane + self.local_places[name]
        raise AssertionError(f"no value for {operand}")

    def _write(self, operand, value, lane, is_wide=False):
        if isinstance(operand, Register) and operand.name != "_":
            type_ = self.kernel.register_type(operand.name)
            bits = 1 if type_ == "pred" else 8 * TYPE_BYTES[type_]
            self.registers[lane][operand.name] = value & (1 << bits) - 1

    def column(self, name):
        """Return a register's value in each lane."""
        return [registers[name] for registers in self.registers]
