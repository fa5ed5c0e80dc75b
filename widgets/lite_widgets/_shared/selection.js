// One selection everywhere: a list of names, in the order in which they were selected.

/** The selection after a click on `name`; `add` is true with Shift, Ctrl or Cmd. */
export function afterClick(selected, name, add) {
  if (!add) return selected.length === 1 && selected[0] === name ? [] : [name];
  return selected.includes(name) ? selected.filter((n) => n !== name) : [...selected, name];
}

/** The name that an arrow, Home or End leads to in `order`, or null when the key means nothing. */
export function afterKey(order, current, pressed) {
  const at = order.indexOf(current);
  const last = order.length - 1;
  if (last < 0) return null;
  switch (pressed) {
    case "ArrowRight":
    case "ArrowDown":
      return order[Math.min(at + 1, last)];
    case "ArrowLeft":
    case "ArrowUp":
      return order[at < 0 ? last : Math.max(at - 1, 0)];
    case "PageDown":
      return order[Math.min(at + 10, last)];
    case "PageUp":
      return order[Math.max(at - 10, 0)];
    case "Home":
      return order[0];
    case "End":
      return order[last];
    default:
      return null;
  }
}
