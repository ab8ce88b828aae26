// Each check is sent with the answer cells as they stand in the page, so that it can say whether one was changed
// after it ran. Python itself sees a cell only when it runs.

// JupyterLab breaks the lines of an output anywhere, within words too.
export const LINES = `
.jp-Notebook .jp-OutputArea-output pre { word-break: normal; overflow-wrap: anywhere; }
.jp-Notebook .jp-RenderedMarkdown pre, .jp-Notebook .jp-RenderedMarkdown pre code { white-space: pre; }
.jp-Notebook .jp-RenderedMarkdown pre { overflow-x: auto; }
`;
const CHECK = /\blabkit\s*\.\s*check\s*\(/;
const ANSWER = /^%%(cuda|c|answer|program)\s/;

export function sendAnswers(panel) {
  const { sessionContext } = panel;
  const watched = new WeakSet();
  const watch = () => {
    const kernel = sessionContext.session?.kernel;
    if (!kernel || watched.has(kernel)) return;
    watched.add(kernel);
    const send = kernel.requestExecute.bind(kernel);
    kernel.requestExecute = (content, dispose, metadata) => {
      if (CHECK.test(content.code)) metadata = { ...metadata, labkit: answers(panel) };
      return send(content, dispose, metadata);
    };
  };
  sessionContext.kernelChanged.connect(watch);
  void sessionContext.ready.then(watch);
}

function answers(panel) {
  const found = {};
  for (const cell of panel.content.model?.cells ?? []) {
    const source = cell.sharedModel.getSource();
    if (cell.type === "code" && ANSWER.test(source)) found[cell.id] = source;
  }
  return found;
}
