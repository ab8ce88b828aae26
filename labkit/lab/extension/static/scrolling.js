// Outputs that are wider than the page, such as tables and plots, scroll sideways: with the keyboard, too.

import { watch } from "./watch.js";

const OUTPUTS = ".jp-OutputArea-output.jp-RenderedHTML, .labkit-scroll";

export function reachOutputs(panel) {
  const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => reach(target)));
  watch(panel, () => panel.node.querySelectorAll(OUTPUTS).forEach((output) => resized.observe(output)));
  panel.disposed.connect(() => resized.disconnect());
  // For the notebook these keys fold and unfold headings.
  panel.node.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if ((key === "ArrowLeft" || key === "ArrowRight") && target.closest(".jp-OutputArea-output") && scrolls(target))
      event.stopPropagation();
  });
}

const scrolls = (element) => element.scrollWidth > element.clientWidth;

function reach(output) {
  const named = { tabindex: 0, role: "group", "aria-label": "output that scrolls sideways" };
  for (const [name, value] of Object.entries(named))
    if (scrolls(output)) output.setAttribute(name, value);
    else output.removeAttribute(name);
}
