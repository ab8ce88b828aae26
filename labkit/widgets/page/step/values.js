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
