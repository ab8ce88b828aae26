// A cell that fails because labkit is not loaded, as after a restart of Python, is told which cells to run first.
// Once it is loaded the kernel tells of missing names itself: labkit/course/missing_name_hint.py.

const LOADS = /labkit\.start\(|%load_ext labkit/;
const LOADED = "'labkit' in get_ipython().extension_manager.loaded";
const TOLD =
  "labkit is not loaded: the notebook's first cells have not run since Python started. " +
  "Run them, or all cells above this one: Run > Run All Above Selected Cell.";

export function tellOrder(actions, tracker) {
  actions.executed.connect(async (_, { notebook, cell, success }) => {
    const sources = notebook.widgets.map((each) => each.model.sharedModel.getSource());
    if (success || !cell.outputArea || !sources.some((source) => LOADS.test(source))) return;
    const { outputs } = cell.model;
    const missing = (output) =>
      (output.output_type === "error" && output.ename === "NameError") ||
      (output.output_type === "stream" && /magic `%%\w+` not found/.test(String(output.text)));
    const kernel = tracker.find((panel) => panel.content === notebook)?.sessionContext.session?.kernel;
    if (!kernel || !outputs.toJSON().some(missing)) return;
    const asked = kernel.requestExecute({ code: "", silent: true, store_history: false, user_expressions: { LOADED } });
    const found = (await asked.done).content.user_expressions?.LOADED;
    if (found?.data?.["text/plain"] === "True") return;
    const html = `<div style="margin: 0.4em 0">${TOLD.replace(">", "&gt;")}</div>`;
    outputs.add({ output_type: "display_data", data: { "text/html": html, "text/plain": TOLD }, metadata: {} });
  });
}
