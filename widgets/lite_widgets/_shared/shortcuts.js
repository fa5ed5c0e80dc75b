// JupyterLab's shortcuts of one key, such as b and d d, work on the notebook while anything in an
// output has the focus. It lets those elements alone that say so, each for itself.
const LEAVE_ALONE = "data-lm-suppress-shortcuts";

/**
 * Keys pressed in `root` are the widget's own; those with Ctrl or Cmd, such as Ctrl+S, stay
 * JupyterLab's. It listens at the document: at the window we are before it, whatever has the focus.
 * Returns the function that stops.
 */
export function keepKeys(root) {
  const before = (event) => {
    if (!root.contains(event.target)) return;
    if (event.ctrlKey || event.metaKey) event.target.removeAttribute(LEAVE_ALONE);
    else event.target.setAttribute(LEAVE_ALONE, "true");
  };
  window.addEventListener("keydown", before, true);
  return () => window.removeEventListener("keydown", before, true);
}
