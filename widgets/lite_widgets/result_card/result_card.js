// The result of a model on one backend.
import { html, nothing, svg } from "#template";
import { widget } from "#view";
import { backendName } from "../_shared/colour.js";
import { fixed } from "../_shared/format.js";
import { bar, dot } from "../_shared/parts.js";
import { tr } from "../_shared/words.js";

const wrong = (x, y, text) =>
  svg`<text x="${x}" y="${y}" text-anchor="middle" class="tbad">${text}</text>`;

function textSvg(items) {
  const step = 37,
    width = Math.max(480, 30 + items.length * step);
  const marks = items.map((item, i) => {
    const x = 28 + i * step,
      v = Math.max(0, Math.min(1, item.score ?? 0)),
      ink = item.bad ? "var(--bad)" : "var(--ink)";
    return svg`<rect
        x="${x}"
        y="${60 - 40 * v}"
        width="24"
        height="${40 * v}"
        fill="${item.bad ? "var(--bad)" : "var(--ink2)"}"
        fill-opacity="${item.bad ? 1 : 0.45}"
      />
      <text x="${x + 12}" y="82" text-anchor="middle" style="font:600 17px var(--mono);fill:${ink}"
        >${item.label}</text
      >${item.bad ? wrong(x + 12, 54 - 40 * v, item.label === "∅" ? tr("missing") : tr("differs")) : nothing}`;
  });
  return html`<svg
    class="chart"
    height="92"
    viewBox="0 0 ${width} 92"
    preserveAspectRatio="xMinYMid meet"
    role="img"
    aria-label=${tr("Read as {text}", { text: items.map((i) => i.label).join("") })}
  >
    <text x="0" y="62">0</text>
    <text x="0" y="24">1</text>
    <line class="grid" x1="20" x2="${width}" y1="20" y2="20" />
    <line class="ax" x1="20" x2="${width}" y1="60" y2="60" />
    ${marks}
  </svg>`;
}

/** What a full bar stands for: 1, or the best score of a model that gives no probabilities. */
export const fullScore = (items) => Math.max(1, ...items.map((i) => i.score ?? 0));

const topTable = (items) =>
  html`<table>
    <tbody>
      ${items.map(
        (i) =>
          html`<tr>
            <td class="cut${i.bad ? " bad" : ""}">${i.label}</td>
            <td>
              ${bar((i.score ?? 0) / fullScore(items), i.bad ? "var(--bad)" : "var(--accent)", 160)}
            </td>
            <td class="num">${fixed(i.score, 3)}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;

const valuesTable = (items) =>
  html`<table>
    <tbody>
      ${items.map(
        (i) =>
          html`<tr>
            <td class="mono">${i.label}</td>
            <td>${i.shape || ""}</td>
            <td class="wrap mu">${i.text || ""}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;

/** About how much of a picture a label takes: [width, height] in parts of it. */
const LABEL = [0.22, 0.07];

/** Labels would cover each other: they are then shown for the box that the mouse is on. */
function crowded(boxes) {
  const meet = ([ax, ay], [bx, by]) =>
    Math.abs(ax - bx) < LABEL[0] && Math.abs(ay - by) < LABEL[1];
  return boxes.some((a, i) => boxes.slice(0, i).some((b) => meet(a, b)));
}

function picture(c) {
  const url = c.imageUrl("image");
  if (!url) return nothing;
  const found = c.get("kind") === "boxes" ? c.get("items").filter((i) => i.box) : [];
  const boxes = found.map((i) => {
            const [x0, y0, x1, y1] = i.box.map((v) => 100 * v);
            return html`<div
              class="box${i.bad ? " bad" : ""}"
              style="left:${x0}%;top:${y0}%;width:${x1 - x0}%;height:${y1 - y0}%"
            >
              <span>${i.label} ${fixed(i.score, 2)}</span>
            </div>`;
          });
  return html`<div
    class="pic${boxes.length ? " boxed" : ""}${crowded(found.map((i) => i.box)) ? " crowded" : ""}"
  >
    <img src=${url} alt=${tr("input")} />${boxes}
  </div>`;
}

export default widget({
  name: "result",
  view(c) {
    const items = c.get("items");
    const nothingFound = html`<p class="mu">${tr("Nothing was recognized.")}</p>`;
    const body = items.length === 0 ? nothingFound : {
      text: () => textSvg(items),
      top: () => topTable(items),
      boxes: () => topTable(items),
      values: () => valuesTable(items),
    }[c.get("kind")]();
    return html`<div class="card">
      <div class="ch">
        <h3>${dot(c.get("backend"), c.dark)} ${c.get("title") || backendName(c.get("backend"))}</h3>
        <span class="mu">${c.get("note")}</span><span class="sp"></span
        ><span class="mu">${c.get("aside")}</span>
      </div>
      <div class="cb">${picture(c)}${body}</div>
    </div>`;
  },
  watch: ["backend", "title", "note", "aside", "kind", "items", "image"],
});
