// Linked code in the page: columns whose lines belong together, a menu of GPUs, and a comparison.
//
// Python (labkit/widgets/code_columns.py) writes the columns as HTML; `data-k` holds a line's keys, the closest
// first. `asked` is {id, gpu}; `code` is {id, gpu, html, error}. In a page without a kernel the same script
// links what stands there (linkAll).

const BUSY_MS = 150; // an answer that takes longer is announced
const PAGE_LINES = 20;

function render({ model, el }) {
  const root = make("section", { class: "lkc", "aria-label": model.get("title") });
  const id = `lkc-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
  const select = make("select", { id });
  select.append(...model.get("gpus").map((name) => make("option", { value: name }, name)));
  const busy = make("span", { class: "lkc-busy", role: "status" });
  const error = make("p", { class: "lkc-error", role: "status", hidden: "" });
  const body = make("div");
  root.append(make("div", { class: "lkc-bar" }, make("label", { for: id }, "GPU"), select, busy), error, body);
  el.append(root);
  let asked = model.get("code").id;
  let waiting = null;
  let gone = false;
  const ready = () => {
    clearTimeout(waiting);
    busy.textContent = "";
    root.removeAttribute("aria-busy");
  };
  const show = () => {
    const code = model.get("code");
    if (code.id < asked) return;
    ready();
    select.value = code.gpu;
    error.textContent = code.error;
    error.hidden = !code.error;
    if (code.error) return;
    body.innerHTML = code.html;
    link(body);
  };
  const leave = () => {
    gone = true;
    ready();
    select.disabled = true;
    error.hidden = false;
    error.textContent = "The kernel that compiled this has ended: run the cell again to choose another GPU.";
  };
  select.addEventListener("change", () => {
    if (gone) return;
    asked = Math.max(asked, model.get("code").id) + 1;
    model.set("asked", { id: asked, gpu: select.value });
    model.save_changes();
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      busy.textContent = "at work …";
      root.setAttribute("aria-busy", "true");
    }, BUSY_MS);
  });
  root.addEventListener("keydown", keepKey);
  model.on("change:code", show);
  model.on("comm_live_update", leave); // ipywidgets says this of all widgets of a kernel that restarts
  root.addEventListener("labkit-gone", leave); // labkit's part of JupyterLab: of one shut down
  show();
  return () => {
    ready();
    model.off("change:code", show);
    model.off("comm_live_update", leave);
  };
}

function linkAll() {
  for (const root of document.querySelectorAll(".lkc-still:not([data-linked])")) {
    root.dataset.linked = "";
    root.setAttribute("role", "region");
    root.setAttribute("aria-label", root.dataset.title);
    link(root);
  }
}

// Link the lines of the columns in `root`.
function link(root) {
  const lists = [...root.querySelectorAll(".lkc-lines")];
  if (!lists.length) return;
  const readout = make("p", { class: "lkc-readout", role: "status" });
  const hint = "Point at a line, click it, or move with the arrow keys: the other columns mark what belongs to it.";
  readout.textContent = hint;
  root.querySelector(".lkc-columns").before(readout);
  const columns = lists.map((list) => new Column(list));
  let marked = [];
  let pointer = ""; // where it was
  let chosen = null; // [column, row] that a click or a key chose: pointing is a preview

  const mark = (column, row, scroll) => {
    for (const each of marked) each.classList.remove("lkc-on");
    marked = [];
    if (!row) return void (readout.textContent = hint);
    row.classList.add("lkc-on");
    marked.push(row);
    const said = [`${column.name}, ${row.textContent.trim().replace(/\s+/g, " ").slice(0, 90)}`];
    for (const other of columns) {
      if (other === column) continue;
      const found = other.matches(row);
      for (const each of found) each.classList.add("lkc-on");
      marked.push(...found);
      if (found.length && scroll) other.reveal(found);
      said.push(`${other.name}: ${found.length === 1 ? "1 line" : `${found.length || "no"} lines`}`);
    }
    readout.textContent = said.join(" · ");
  };
  const choose = (column, row) => {
    chosen = row ? [column, row] : null;
    column.go(row);
    mark(column, row, true);
  };
  for (const column of columns) {
    const { list } = column;
    list.addEventListener("pointermove", (event) => {
      const place = `${event.clientX} ${event.clientY}`;
      if (place === pointer) return; // the lines moved, not the pointer
      pointer = place;
      const row = event.target.closest(".lkc-lines > [data-k]");
      if (row && row !== marked[0]) mark(column, row, true);
    });
    list.addEventListener("pointerleave", () => (chosen ? mark(...chosen, false) : mark()));
    list.addEventListener("click", (event) => {
      const row = event.target.closest(".lkc-lines > [data-k]");
      if (row) choose(column, row);
    });
    list.addEventListener("focus", () => column.at || choose(column, column.rows[0]));
    list.addEventListener("keydown", (event) => {
      const at = column.rows.indexOf(column.at);
      const to = {
        ArrowDown: at + 1,
        ArrowUp: at - 1,
        PageDown: at + PAGE_LINES,
        PageUp: at - PAGE_LINES,
        Home: 0,
        End: column.rows.length - 1,
      }[event.key];
      if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      choose(column, column.rows[Math.max(0, Math.min(column.rows.length - 1, to))]);
    });
  }
}

let lines = 0; // that have an id

class Column {
  constructor(list) {
    this.list = list;
    this.box = list.parentElement;
    this.name = list.dataset.name;
    this.rows = [...list.querySelectorAll(":scope > [data-k]")];
    this.byKey = new Map();
    this.letters = new Set();
    this.at = null;
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", this.name);
    list.tabIndex = this.rows.length ? 0 : -1;
    for (const row of list.children) {
      row.setAttribute("role", row.dataset.k ? "option" : "presentation");
      if (!row.dataset.k) continue;
      row.id = `lkc-line-${Date.now().toString(36)}-${(lines += 1)}`;
      row.setAttribute("aria-selected", "false");
      if (!row.textContent.trim()) row.setAttribute("aria-label", "nothing here");
      for (const key of row.dataset.k.split(" ")) {
        this.letters.add(key[0]);
        if (!this.byKey.has(key)) this.byKey.set(key, []);
        this.byKey.get(key).push(row);
      }
    }
  }

  // The rows that belong to a row of another column: by its closest key that this column knows.
  matches(row) {
    const key = row.dataset.k.split(" ").find((each) => this.letters.has(each[0]));
    return this.byKey.get(key) ?? [];
  }

  go(row) {
    this.at?.setAttribute("aria-selected", "false");
    this.at?.classList.remove("lkc-at");
    this.at = row;
    if (!row) return;
    row.setAttribute("aria-selected", "true");
    row.classList.add("lkc-at");
    this.list.setAttribute("aria-activedescendant", row.id);
    this.reveal([row]);
  }

  // Scroll the column, never the page, until one of the rows is in view.
  reveal(rows) {
    const top = this.list.offsetTop;
    const [from, to] = [this.box.scrollTop + top, this.box.scrollTop + this.box.clientHeight];
    if (rows.some((row) => row.offsetTop >= from && row.offsetTop + row.offsetHeight <= to)) return;
    this.box.scrollTop = rows[0].offsetTop - this.box.clientHeight / 3;
  }
}

// The notebook has keys of its own. Escape leaves the columns for their cell.
function keepKey(event) {
  if (event.key === "Escape") event.currentTarget.closest(".jp-Cell")?.focus();
  const theirs = event.ctrlKey || event.metaKey || event.altKey || event.key === "Escape";
  if (!theirs && !(event.shiftKey && event.key === "Enter")) event.stopPropagation();
}

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export default { render };
