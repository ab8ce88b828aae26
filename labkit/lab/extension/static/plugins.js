// The plugins: what JupyterLab and Notebook 7 get from labkit.

import { LINES, sendAnswers } from "./answers.js";
import { colourCells } from "./cells.js";
import { keepPictures, tellGone } from "./pictures.js";
import { tellOrder } from "./order.js";
import { reachOutputs } from "./scrolling.js";
import { Course, courseOf, STYLE } from "./course.js";

export async function plugins(load) {
  const { INotebookTracker, NotebookActions } = await load("@jupyterlab/notebook");
  const { ICommandPalette } = await load("@jupyterlab/apputils");
  const { ServerConnection } = await load("@jupyterlab/services");
  const { URLExt } = await load("@jupyterlab/coreutils");
  const { Widget } = await load("@lumino/widgets");
  const ask = (path) => {
    const settings = ServerConnection.makeSettings();
    return ServerConnection.makeRequest(URLExt.join(settings.baseUrl, path), {}, settings);
  };

  const style = document.createElement("style");
  style.textContent = STYLE + LINES;
  document.head.append(style);

  const notebooks = {
    id: "labkit:notebooks",
    description: "C++ in cells of %%cuda and %%c; answers sent with checks; pictures of explorers without a kernel.",
    autoStart: true,
    requires: [INotebookTracker],
    activate(app, tracker) {
      tellOrder(NotebookActions, tracker);
      tracker.widgetAdded.connect((_, panel) => {
        colourCells(panel);
        sendAnswers(panel);
        keepPictures(panel);
        tellGone(panel);
        reachOutputs(panel);
      });
    },
  };

  const course = {
    id: "labkit:course",
    description: "The page Course: the notebooks, what is done and what is next.",
    autoStart: true,
    optional: [ICommandPalette],
    activate(app, palette) {
      let page;
      const open = () => {
        if (!page || page.isDisposed) page = new Course(app, ask, Widget).widget;
        if (!page.isAttached) app.shell.add(page, "main", { activate: false, mode: "tab-before" });
        app.shell.activateById(page.id);
      };
      const toCourse = (event) => {
        if (!event.target.closest?.("a.labkit-course-link")) return;
        event.preventDefault(); // elsewhere the link leads to notebook 00, which lists the course
        event.stopPropagation();
        open();
      };
      if (app.name === "JupyterLab") document.addEventListener("click", toCourse, true);
      app.commands.addCommand("labkit:course", { label: "Open the Course", execute: open });
      palette?.addItem({ command: "labkit:course", category: "labkit" });
      if (app.name !== "JupyterLab") return; // Notebook 7 has one document per page
      void app.restored.then(async () => {
        if (!(await courseOf(ask)).notebooks?.length) return;
        const main = [...app.shell.widgets("main")];
        const launchers = main.filter((widget) => widget.id.startsWith("launcher"));
        const document = main.find((widget) => widget.context);
        open();
        launchers.forEach((launcher) => launcher.close());
        if (document) app.shell.activateById(document.id); // its address was asked for, or it was open before
      });
    },
  };

  return [notebooks, course];
}
