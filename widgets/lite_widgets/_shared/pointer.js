// Following the pointer from press to release: dragging lines, panning, lassos.

const LEAST_PX = 5;

/** Call `move(event)` until the pointer is released, then `done(event)`. */
export function follow(move, done) {
  const stop = (event) => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", stop);
    removeEventListener("pointercancel", stop);
    done?.(event);
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", stop);
  addEventListener("pointercancel", stop);
}

/** Draw a rectangle in `root` from where `start` was pressed; `done(rect)` unless a click. */
export function lasso(start, root, done) {
  const box = document.createElement("div");
  box.className = "lasso";
  const frame = root.getBoundingClientRect();
  let rect = null;
  const move = (event) => {
    const far = Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY);
    if (!rect && far < LEAST_PX) return;
    if (!rect) root.appendChild(box);
    event.preventDefault();
    rect = {
      left: Math.min(start.clientX, event.clientX),
      top: Math.min(start.clientY, event.clientY),
      right: Math.max(start.clientX, event.clientX),
      bottom: Math.max(start.clientY, event.clientY),
    };
    Object.assign(box.style, {
      left: `${rect.left - frame.left}px`,
      top: `${rect.top - frame.top}px`,
      width: `${rect.right - rect.left}px`,
      height: `${rect.bottom - rect.top}px`,
    });
  };
  follow(move, () => {
    box.remove();
    if (rect) done(rect);
  });
}

/** Names of the layers in `area` whose marks a rectangle of the page touches. */
export function inside(area, rect) {
  const names = new Set();
  for (const element of area.querySelectorAll("[data-k]")) {
    const b = (element.querySelector(".mark") || element).getBoundingClientRect();
    const apart =
      b.left > rect.right || b.right < rect.left || b.top > rect.bottom || b.bottom < rect.top;
    if (!apart) names.add(element.dataset.k);
  }
  return [...names];
}
