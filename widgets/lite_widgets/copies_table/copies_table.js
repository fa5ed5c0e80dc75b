// What copies cost, why they are there, and the fix.
import { html, nothing } from "#template";
import { widget } from "#view";
import { BACKENDS, backendName } from "../_shared/colour.js";
import { bytes, fixed, ms, percent, THIN } from "../_shared/format.js";
import { dot, empty, keyed, link } from "../_shared/parts.js";
import { isCopy } from "../_shared/encode.js";
import { tr, trn } from "../_shared/words.js";

const side = (name, dark) =>
  BACKENDS[name] ? html`${dot(name, dark)} ${backendName(name)}` : name || "–";

function advice(info) {
  if (!info.fix) return nothing;
  const gain = info.gain_ms > 0 ? tr(": saves about {time}", { time: `${info.gain_ms.toFixed(2)}${THIN}ms` }) : "";
  return /[(=]/.test(info.fix)
    ? html`<br /><span class="mu"
          >${link("apply", tr("Apply"), { code: info.fix }, info.fix)}${gain}</span
        >`
    : html`<br /><span class="mu">${info.fix}${gain}</span>`;
}

export default widget({
  name: "copies",
  empty: { title: tr("Nothing measured yet") },
  ready: (c) => Boolean(c.get("profile")),
  view(c) {
    const profile = c.get("profile"),
      rows = profile.layers.filter(isCopy);
    const layers = profile.layers.length - rows.length;
    if (!rows.length)
      return html`<div class="card pad">
        ${empty({
          title: tr("No copies, casts or fallbacks on {backend}", { backend: backendName(profile.backend) }),
          text: tr("All {layers} layers run on {backend}.", {
            layers,
            backend: backendName(profile.backend),
          }),
        })}
      </div>`;
    const total = rows.reduce((a, r) => a + r.median_ms, 0),
      all = profile.layers.reduce((a, r) => a + (r.median_ms || 0), 0);
    const away = profile.layers.filter((r) => !isCopy(r) && r.backend !== profile.backend).length;
    const copies = trn("{n} copy", "{n} copies", rows.length);
    const because = away
      ? trn(
          ", because {n} layer of {layers} runs on another backend",
          ", because {n} layers of {layers} run on another backend",
          away,
          { layers },
        )
      : "";
    return html`<div class="card pad">
      <p>
        <b
          >${tr("{time} ({share}) are spent on {copies}", {
            time: `${ms(total)}${THIN}ms`,
            share: percent((100 * total) / all),
            copies,
          })}</b
        >${because}.
      </p>
      <div class="tw" ${keyed(tr("Copies. Arrow keys select."))}>
        <table>
          <thead>
            <tr>
              <th>${tr("Where")}</th>
              <th>${tr("From → to")}</th>
              <th class="num">${tr("Size")}</th>
              <th class="num">ms</th>
              <th>${tr("Reason and alternative")}</th>
            </tr>
          </thead>
          <tbody>
            ${rows.map((r) => {
              const info = r.copy || {};
              return html`<tr data-k="${r.name}">
                <td>${r.name.replace(/^copy /, "").split(" →")[0]}</td>
                <td>${side(info.source, c.dark)} → ${side(info.target, c.dark)}</td>
                <td class="num">${bytes(info.bytes)}</td>
                <td class="num">${fixed(r.median_ms)}</td>
                <td class="wrap">${info.why || r.why || "–"}${advice(info)}</td>
              </tr>`;
            })}
          </tbody>
        </table>
      </div>
    </div>`;
  },
  watch: ["profile"],
  order: (c) =>
    c
      .get("profile")
      .layers.filter(isCopy)
      .map((r) => r.name),
});
