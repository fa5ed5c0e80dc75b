// Places for words in a chart: beside what they name, and clear of everything else.

const LETTER = 6.6; // how wide a letter is at most
const HIGH = 11; // of a letter above its base line
const DEEP = 3; // below it
/** How far from a dot its label may stand, and in which directions, the best first. */
const FAR = [5, 12, 22, 36, 54, 76, 102];
const TURNS = [0, 180, -40, 40, -140, 140, -90, 90].map((degrees) => (degrees * Math.PI) / 180);

/** The box of a text whose base line is at (x, y). */
export function boxOf(text, x, y, anchor) {
  const w = text.length * LETTER;
  return { x: x - { start: 0, middle: w / 2, end: w }[anchor], y: y - HIGH, w, h: HIGH + DEEP };
}

export const aroundDot = ({ x, y, r }) => ({ x: x - r, y: y - r, w: 2 * r, h: 2 * r });

/** A line from one point to another as small boxes, which are all that words must not touch. */
export function along([x0, y0], [x1, y1], size = 3) {
  const steps = Math.max(Math.ceil(Math.hypot(x1 - x0, y1 - y0) / (2 * size)), 1);
  return Array.from({ length: steps + 1 }, (_, i) => ({
    x: x0 + ((x1 - x0) * i) / steps - size,
    y: y0 + ((y1 - y0) * i) / steps - size,
    w: 2 * size,
    h: 2 * size,
  }));
}

const overlap = (a, b) =>
  a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

export const isFree = (box, taken) => !taken.some((other) => overlap(box, other));

/** {x, y, anchor, far}: the nearest free place for a dot's label inside `area`; null where there
 * is none near enough to belong to it. */
export function placeBeside(dot, text, taken, area) {
  for (const far of FAR)
    for (const turn of TURNS) {
      const x = dot.x + (dot.r + far) * Math.cos(turn),
        y = dot.y + (dot.r + far) * Math.sin(turn) + 4;
      const anchor = Math.cos(turn) > 0.3 ? "start" : Math.cos(turn) < -0.3 ? "end" : "middle";
      const box = boxOf(text, x, y, anchor);
      const inside =
        box.x >= area.x && box.x + box.w <= area.x + area.w &&
        box.y >= area.y && box.y + box.h <= area.y + area.h;
      if (inside && isFree(box, taken)) return { x, y, anchor, far, box };
    }
  return null;
}
