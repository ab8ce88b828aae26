// Constants, and small functions for elements, sorted lists and words.

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
