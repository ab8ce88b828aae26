// A prediction in the page: labelled inputs, Commit, and the answer that the kernel then gives.
//
// `inputs` is [{label, unit, choices}]; the page sets `said` = {id, values}, with null for "I don't know", and
// Python (labkit/widgets/prediction.py) sets `reveal` = {verdict, text, source} or {error}.

const SIGNS = { Right: "✓", "Partly right": "≈", Close: "≈", Wrong: "✗" };
const OURS = { "data-lm-suppress-shortcuts": "true" }; // JupyterLab takes Enter and letters for its own commands
const GONE = "The kernel of this cell has ended. Run the cell again to commit a prediction.";

function render({ model, el }) {
  const said = model.get("said").values ?? [];
  const fields = model.get("inputs").map((asked, i) => makeField(asked, said[i] ?? ""));
  const commit = makeButton("submit", "Commit");
  const unknown = makeButton("button", "I don't know");
  const reveal = make("div", { class: "lk-reveal", role: "status", "aria-live": "polite", tabindex: -1 });
  const form = make("form", { "aria-label": model.get("title"), novalidate: "" });
  form.append(...fields.map(({ box }) => box), make("div", { class: "lk-buttons" }, commit, unknown));
  const box = make("div", { class: "lk-prediction" }, form, reveal);
  el.append(box);

  const send = (values) => {
    model.set("said", { id: (model.get("said").id ?? 0) + 1, values });
    model.save_changes();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const empty = fields.find(({ input }) => !input.value.trim());
    if (empty) return complain("Enter a prediction first, or choose “I don't know”.", empty.input);
    send(fields.map(({ input }) => input.value));
  });
  unknown.addEventListener("click", () => send(null));
  // JupyterLab keeps Enter from doing this by itself.
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") form.closest(".jp-Cell")?.focus();
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    if (event.target === unknown) unknown.click();
    else if (!commit.disabled) form.requestSubmit();
  });

  const complain = (text, input) => {
    reveal.replaceChildren(make("p", { class: "lk-problem" }, text));
    input.setAttribute("aria-invalid", "true");
    input.focus();
  };
  const close = () => {
    for (const { input } of fields) {
      input.removeAttribute("aria-invalid");
      // A field that is read-only keeps the focus; a menu cannot be read-only.
      if (input.tagName === "SELECT") input.disabled = true;
      else input.readOnly = true;
    }
    const button = [commit, unknown].includes(document.activeElement);
    commit.disabled = unknown.disabled = true;
    if (button) reveal.focus();
  };
  const show = () => {
    const { verdict, text, source, error } = model.get("reveal");
    if (error) return complain(error, fields[0].input);
    if (!text) return;
    const head = verdict ? make("strong", {}, `${SIGNS[verdict]} ${verdict}. `) : "";
    reveal.dataset.verdict = verdict;
    reveal.replaceChildren(make("p", {}, head, text));
    if (source) reveal.append(make("p", { class: "lk-source" }, source));
    close();
  };
  const leave = () => {
    if (model.get("reveal").text) return;
    reveal.replaceChildren(make("p", { class: "lk-problem" }, GONE));
    close();
  };
  model.on("change:reveal", show);
  model.on("comm_live_update", leave); // ipywidgets says this of all widgets of a kernel that restarts
  box.addEventListener("labkit-gone", leave); // labkit's part of JupyterLab: of one shut down
  show();
  return () => {
    model.off("change:reveal", show);
    model.off("comm_live_update", leave);
  };
}

function makeField({ label, unit, choices }, value) {
  const id = `lk-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
  const after = make("span", { id: `${id}-unit`, class: "lk-unit" }, unit);
  const input = choices.length
    ? make("select", { id, ...OURS })
    : make("input", { id, type: "text", inputmode: "decimal", autocomplete: "off", size: 10, ...OURS });
  if (choices.length) input.append(make("option", { value: "" }, "choose …"));
  input.append(...choices.map((choice) => make("option", { value: choice }, choice)));
  input.value = value;
  if (unit) input.setAttribute("aria-describedby", after.id);
  const line = make("span", { class: "lk-line" }, input, unit ? after : "");
  return { input, box: make("div", { class: "lk-field" }, make("label", { for: id }, label), line) };
}

function makeButton(type, text) {
  return make("button", { type, ...OURS }, text);
}

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export default { render };
