// Calls `look` once for all that changed in a notebook's page within a frame: a picture that is drawn anew while a
// control is dragged is many changes.

export function watch(panel, look) {
  let due = false;
  const changed = new MutationObserver(() => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      look();
    });
  });
  changed.observe(panel.node, { childList: true, subtree: true });
  panel.disposed.connect(() => changed.disconnect());
}
