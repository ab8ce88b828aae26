// The page Course: the notebooks in order, what is earned, and where to go on.

export const STYLE = `
.labkit-course { overflow: auto; padding: 24px; color: var(--jp-ui-font-color1); background: var(--jp-layout-color0);
  font: 15px/1.5 var(--jp-ui-font-family); outline: none; }
.labkit-course .page { max-width: 860px; margin: 0 auto; }
.labkit-course h1 { font-size: 26px; margin: 0 0 8px; }
.labkit-course h2 { font-size: 17px; margin: 0; }
.labkit-course a { color: var(--jp-content-link-color); text-decoration: none; }
.labkit-course a:hover, .labkit-course a:focus-visible { text-decoration: underline; }
.labkit-course :focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: 2px; }
.labkit-course ol { list-style: none; padding: 0; margin: 20px 0; }
.labkit-course li.notebook { border-top: 1px solid var(--jp-border-color2); padding: 12px 0; }
.labkit-course .head { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 4px 16px; }
.labkit-course .soft { color: var(--jp-ui-font-color2); }
.labkit-course p { margin: 2px 0; }
.labkit-course ul { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 18px; padding: 0; margin: 4px 0 0; }
.labkit-course .go { display: inline-block; margin: 12px 0 0; padding: 6px 18px; border-radius: 4px;
  background: var(--jp-brand-color0, #0d47a1); color: white; }
.labkit-saved p { margin: 4px 0; overflow-wrap: break-word; word-break: normal; }
.labkit-saved svg { max-width: 100%; height: auto; }
.labkit-course progress { width: 100%; height: 12px; accent-color: var(--jp-success-color1, #2e7d32); }
`;
const STATES = { solved: ["✓", "solved"], begun: ["◐", "begun"], open: ["○", "open"] };

let asked; // the newest answer of the server

// Asks the server for the course and what is earned; {notebooks: []} where labkit's server part is missing.
export function courseOf(ask, again = false) {
  if (again || !asked)
    asked = ask("labkit/course").then(
      (reply) => (reply.ok ? reply.json() : { notebooks: [], missing: true }),
      () => ({ notebooks: [], missing: true }),
    );
  return asked;
}

export class Course {
  constructor(app, ask, Widget) {
    this.app = app;
    this.ask = ask;
    this.widget = new Widget();
    this.widget.id = "labkit-course";
    this.widget.title.label = "Course";
    this.widget.title.closable = true;
    this.widget.addClass("labkit-course");
    this.widget.node.tabIndex = -1;
    this.main = element("div", { class: "page" });
    this.widget.node.append(this.main);
    this.refresh();
    this.widget.onActivateRequest = () => {
      this.widget.node.focus(); // or JupyterLab takes the document before for the current one
      this.refresh();
    };
  }

  async refresh() {
    const course = await courseOf(this.ask, true);
    const text = JSON.stringify(course);
    if (text === this.drawn) return;
    this.drawn = text;
    const focused = document.activeElement?.dataset?.path;
    this.main.replaceChildren(...this.draw(course));
    if (focused) this.main.querySelector(`[data-path="${CSS.escape(focused)}"]`)?.focus();
  }

  draw({ notebooks, last, missing }) {
    const heading = element("h1", {}, "CUDA matrix kernels");
    if (!notebooks.length) {
      const why = missing
        ? "labkit's server part does not run here, so this page has no map. The notebooks are in the file browser."
        : "There are no notebooks of the course in this folder.";
      return [heading, element("p", {}, why)];
    }
    const all = notebooks.flatMap((each) => each.exercises);
    const [earned, points] = [sum(all, "earned"), sum(all, "points")];
    const solved = all.filter((each) => state(each) === "solved").length;
    const words = `${number(earned)} of ${points} points, ${solved} of ${all.length} exercises solved`;
    const open = (each) => each.exercises.some((exercise) => state(exercise) !== "solved");
    const next =
      notebooks.find((each) => each.path === last && open(each)) ??
      (earned ? notebooks.find((each) => each.exercises.length && open(each)) : notebooks[0]);
    const parts = [heading, element("p", { id: "labkit-earned" }, words)];
    parts.push(element("progress", { max: points, value: earned, "aria-labelledby": "labkit-earned" }));
    if (next) {
      const verb = earned || last ? "Continue" : "Start";
      parts.push(this.link(next, `${verb}: ${next.number} · ${next.title}`, "go"));
    }
    parts.push(element("ol", {}, ...notebooks.map((each) => this.row(each))));
    return parts;
  }

  row(notebook) {
    const { exercises, concept, minutes, part } = notebook;
    const points = exercises.length ? `${number(sum(exercises, "earned"))} of ${sum(exercises, "points")} points` : "";
    const facts = [part, minutes ? `about ${minutes} minutes` : "", points].filter(Boolean).join(" · ");
    const title = element("h2", {}, this.link(notebook, `${notebook.number} · ${notebook.title}`));
    const head = element("div", { class: "head" }, title, element("span", { class: "soft" }, facts));
    const marks = exercises.map((each) => {
      const [mark, word] = STATES[state(each)];
      const sign = element("span", { role: "img", "aria-label": word, title: word }, mark);
      return element("li", {}, sign, ` ${each.id} ${each.title}`);
    });
    const item = element("li", { class: "notebook" }, head, element("p", { class: "soft" }, concept ?? ""));
    if (marks.length) item.append(element("ul", { "aria-label": `exercises of ${notebook.number}` }, ...marks));
    return item;
  }

  link({ path }, text, look = "") {
    const made = element("a", { href: "#", class: look, "data-path": path }, text);
    made.addEventListener("click", (event) => {
      event.preventDefault();
      void this.app.commands.execute("docmanager:open", { path });
    });
    return made;
  }
}

const state = ({ earned, points, solved }) => (solved || earned >= points ? "solved" : earned > 0 ? "begun" : "open");
const sum = (all, name) => all.reduce((total, each) => total + each[name], 0);
const number = (value) => String(Math.round(100 * value) / 100);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== "") made.setAttribute(name, value);
  made.append(...children);
  return made;
}
