// What a picture says of an element that is pointed at, or reached with the Tab key: its sentence (data-tip), and
// what belongs together (data-link). In Jupyter explorer.js does the same, and more, with a kernel.

const HINT = "Point at the picture to read what its parts are.";

for (const explorer of document.querySelectorAll(".lk")) {
  const pictures = explorer.querySelector(".lk-pictures");
  if (!pictures?.querySelector("[data-tip], [data-link]")) continue;
  const readout = document.createElement("p");
  readout.className = "lk-readout";
  readout.setAttribute("aria-live", "polite");
  readout.textContent = HINT;
  explorer.querySelector(".lk-conclusion").after(readout);
  const point = (element) => {
    const links = element?.dataset.link?.split(" ") ?? [];
    explorer.classList.toggle("lk-linking", links.length > 0);
    for (const each of pictures.querySelectorAll("[data-link]"))
      each.classList.toggle("lk-linked", each.dataset.link.split(" ").some((one) => links.includes(one)));
    readout.textContent = element?.dataset.tip ?? HINT;
  };
  for (const event of ["pointerover", "focusin"])
    pictures.addEventListener(event, ({ target }) => point(target.closest("[data-link], [data-tip]")));
  for (const event of ["pointerleave", "focusout"]) pictures.addEventListener(event, () => point(null));
}

// A picture or a table that scrolls can be reached with the keyboard.
const boxes = document.querySelectorAll(".lk-scroll");
const fitted = new ResizeObserver(() => {
  for (const box of boxes)
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
});
for (const box of boxes) fitted.observe(box);
