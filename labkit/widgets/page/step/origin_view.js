// The tree of where a value comes from. A branch is found when it is opened; the first levels are open.
class OriginView {
  constructor(player) {
    this.player = player;
    this.recording = player.recording;
    this.title = make("h4", { tabindex: "-1" }, "Where a value comes from");
    this.tree = make("div", { class: "lks-tree" });
    const close = make("button", { type: "button" }, "Close");
    close.addEventListener("click", () => (this.element.hidden = true));
    this.element = make(
      "div",
      { class: "lks-panel lks-origin", hidden: "" },
      make("div", { class: "lks-head" }, this.title, close),
      this.tree,
    );
  }

  // Of the cell or the variable that was chosen last.
  ask() {
    const { player, recording } = this;
    const { t, warp, lane, cell, variable } = player;
    let node = null;
    let name = "";
    if (player.asking === "cell" && cell) {
      node = recording.origins.ofCell(cell.object, cell.index, t);
      name = recording.memory.cellName(cell.object, cell.index);
    } else if (variable?.places?.length) {
      const place = variable.places.find(({ mask }) => (mask >>> lane) & 1) ?? variable.places[0];
      node = recording.origins.ofRegisters(warp, place.registers, lane, t);
      name = `${variable.name} of thread ${recording.threadName(warp, lane)} (warp ${warp}, lane ${lane})`;
    } else name = "nothing is chosen yet";
    setText(this.title, `Where a value comes from: ${name}`);
    this.tree.replaceChildren(
      node
        ? make("ul", {}, this.branch(node, 3))
        : make(
            "p",
            {},
            name ? "Choose a value in the table of lanes, or a cell of memory, that has been written." : "",
          ),
    );
    this.element.hidden = false;
    this.title.focus({ preventScroll: true });
    this.element.scrollIntoView?.({ block: "nearest" });
  }

  // One node; `open` levels below it are opened.
  branch(node, open) {
    const item = make("li");
    const go = make(
      "button",
      { type: "button", class: "lks-go", ...(node.event < 0 ? { disabled: "" } : { title: "go to this event" }) },
      node.text,
    );
    go.addEventListener("click", () => this.player.goTo(node.event, node.lane));
    const line = make("span", { class: "lks-node" }, go, node.code ? make("code", {}, node.code) : "");
    const inputs = open > 0 ? node.inputs() : null;
    if (inputs?.length === 0) {
      item.append(make("span", { class: "lks-twig", "aria-hidden": "true" }, "·"), line);
      return item;
    }
    const twig = make(
      "button",
      {
        type: "button",
        class: "lks-twig",
        "aria-expanded": String(Boolean(inputs)),
        "aria-label": `inputs of ${node.text}`,
      },
      inputs ? "▾" : "▸",
    );
    item.append(twig, line);
    let list = null;
    const show = (nodes) => {
      list = make("ul", {}, ...nodes.map((each) => this.branch(each, open - 1)));
      if (!nodes.length) list.append(make("li", {}, "nothing further"));
      item.append(list);
    };
    if (inputs) show(inputs);
    twig.addEventListener("click", () => {
      if (!list) show(node.inputs());
      else list.hidden = !list.hidden;
      twig.textContent = list.hidden ? "▸" : "▾";
      twig.setAttribute("aria-expanded", String(!list.hidden));
    });
    return item;
  }
}
