// The tooltip of a widget: one box that says what is under the pointer and stays inside the frame.

const RIGHT_PX = 14; // from the pointer
const BELOW_PX = 16;
const EDGE_PX = 8;

export class Tip {
  constructor(box, root) {
    this.box = box;
    this.root = root;
  }

  say(text) {
    this.box.textContent = text || "";
    this.box.classList.toggle("on", Boolean(text));
  }

  /** Follow the pointer; on the other side of it where the frame ends. */
  place(event) {
    if (!this.box.classList.contains("on")) return;
    const { box } = this;
    const frame = this.root.getBoundingClientRect();
    const [px, py] = [event.clientX - frame.left, event.clientY - frame.top];
    let x = px + RIGHT_PX;
    if (x + box.offsetWidth > frame.width - EDGE_PX) x = px - box.offsetWidth - 10;
    let y = py + BELOW_PX;
    if (y + box.offsetHeight > frame.height) y = py - box.offsetHeight - EDGE_PX;
    box.style.transform = `translate(${Math.max(0, x)}px, ${y}px)`;
  }
}
