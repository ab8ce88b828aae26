// Cells that begin with %%cuda, %%program or %%c hold C++ or C: they are coloured as that.

const C_LIKE = /^%%(cuda|c|program)(\s|$)/;
const CPP = "text/x-c++src";

export function colourCells(panel) {
  const watched = new WeakSet();
  const watch = () => {
    for (const cell of panel.content.model?.cells ?? []) {
      if (cell.type !== "code" || watched.has(cell)) continue;
      watched.add(cell);
      const other = cell.mimeType; // the kernel's language
      const colour = () => {
        const isC = C_LIKE.test(cell.sharedModel.getSource());
        if (isC && cell.mimeType !== CPP) cell.mimeType = CPP;
        else if (!isC && cell.mimeType === CPP) cell.mimeType = panel.content.codeMimetype ?? other;
      };
      cell.mimeTypeChanged.connect(colour); // a kernel that starts sets the language of all cells
      cell.contentChanged.connect(colour);
      colour();
    }
  };
  void panel.context.ready.then(() => {
    watch();
    panel.content.model.cells.changed.connect(watch);
  });
}
