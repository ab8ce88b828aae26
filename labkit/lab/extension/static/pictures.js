// An explorer's output holds a picture and a text beside the widget. Where the widget's model is gone, as after
// a notebook was closed and opened again, ipywidgets shows an error: these stand in its place.
// A picture alone is an image for JupyterLab: it would have the colours of the light theme, and no alt text.

import { watch } from "./watch.js";

const GONE = "Error displaying widget: model not found";
const NOTE = "The picture is from when the cell ran. Run the cell to use its controls.";

export function keepPictures(panel) {
  const look = () => {
    for (const error of panel.node.querySelectorAll(".jp-OutputArea-output.jupyter-widgets"))
      if (error.textContent === GONE) replace(panel, error);
    for (const image of panel.node.querySelectorAll(".jp-RenderedSVG img"))
      if (image.src.slice(0, 200).includes("lk-svg")) // JupyterLab shows no SVG in a notebook that is not trusted
        image.replaceWith(inPage(decodeURIComponent(image.src.slice(image.src.indexOf(",") + 1))));
  };
  watch(panel, look);
  look();
}

// ipywidgets tells its widgets of a kernel that restarts, but not of one that is shut down or changed.
export function tellGone(panel) {
  const tell = () => {
    for (const each of panel.node.querySelectorAll(".lk, .lk-prediction")) each.dispatchEvent(new Event("labkit-gone"));
  };
  panel.sessionContext.kernelChanged.connect((_, { oldValue }) => oldValue && tell());
  panel.sessionContext.statusChanged.connect((_, status) => status === "dead" && tell());
}

function replace(panel, error) {
  const cell = panel.content.widgets.find((each) => each.node.contains(error));
  const outputs = cell?.outputArea;
  const index = outputs?.widgets.findIndex((each) => each.node.contains(error)) ?? -1;
  if (index < 0) return;
  const { data, trusted } = outputs.model.get(index);
  const text = String(data["text/plain"] ?? "");
  const shown = document.createElement("div");
  shown.className = "labkit-saved";
  const svg = data["image/svg+xml"];
  if (svg) shown.append(picture([svg].flat().join(""), trusted, text));
  const [conclusion, ...rest] = text.split("\n");
  const words = rest.map((line) => paragraph(line));
  const note = svg ? NOTE : "Run the cell to see the rest.";
  shown.append(paragraph(conclusion, "strong"), ...words);
  if (!text.includes("Run the cell")) shown.append(paragraph(note, "em")); // an open prediction says so itself
  error.replaceChildren(shown);
}

function paragraph(text, tag = "span") {
  const made = document.createElement("p");
  const inner = document.createElement(tag);
  inner.textContent = text;
  made.append(inner);
  return made;
}

// In a trusted notebook the SVG is part of the page and takes the theme's colours; else it is an image.
function picture(svg, trusted, text) {
  if (trusted) return inPage(svg);
  const box = document.createElement("div");
  const image = document.createElement("img");
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  image.alt = text.split("\n")[0];
  image.style.background = "white";
  box.append(image);
  return box;
}

// On a narrow page it becomes smaller, and scrolls where its text would be too small to read.
function inPage(svg) {
  const box = document.createElement("div");
  box.className = "labkit-scroll";
  box.style.overflowX = "auto";
  box.innerHTML = svg;
  const { style, width } = box.firstElementChild;
  Object.assign(style, { maxWidth: "100%", height: "auto", minWidth: `${Math.min(0.85 * width.baseVal.value, 600)}px` });
  return box;
}
