// The one headline number, what it is made of, and how far to trust it.
import { html, nothing } from "#template";
import { widget } from "#view";
import { capital, fixed, ms, percent, short, THIN } from "../_shared/format.js";
import { notice } from "../_shared/parts.js";
import { totals } from "../_shared/encode.js";
import { tr, trn } from "../_shared/words.js";

/** {total, layers, rest, parts}: `layers` is what they add up to in a run, `rest` the time outside
 * them, and `parts` the medians of the types. */
export function account(profile) {
  const parts = totals(profile);
  const counted = parts.reduce((a, p) => a + p.value, 0);
  const layers = (!profile.emulated && profile.sum_ms) || counted;
  const total = profile.emulated ? layers : profile.total_ms.median;
  return { total, layers, rest: Math.max(0, total - layers), parts };
}

/** Which backends ran how many layers, as a sentence of its own; empty where nobody said. */
const ran = (profile) =>
  profile.ran ? ` ${capital(profile.ran)}.` : "";

export function sentence(profile) {
  if (profile.emulated)
    return (
      tr("**Emulated**: results and instruction counts are exact, times are not. To measure times, add a board in Target.") +
      ran(profile)
    );
  const a = account(profile),
    t = profile.total_ms;
  const rest = a.total - a.layers;
  const gap =
    rest >= 0
      ? profile.busy
        ? tr("the other {time} include the work of other programs", { time: short(rest) })
        : tr("{time} are outside them", { time: short(rest) })
      : tr("{time} more than the whole run", {
          time: short(-rest),
        });
  const said = [
    tr("{median} without the profiler, min {min}, p90 {p90}.", {
      median: profile.runs
        ? trn("Median of {n} run", "Median of {n} runs", profile.runs)
        : tr("Median"),
      min: ms(t.min),
      p90: ms(t.p90),
    }),
    tr("Layers add up to {time} ({share}), {gap}.", {
      time: `${ms(a.layers)}${THIN}ms`,
      share: percent((100 * a.layers) / a.total),
      gap,
    }),
  ];
  if (profile.overhead_ms > 0)
    said.push(tr("The profiler adds {share}.", { share: percent((100 * profile.overhead_ms) / a.total) }));
  if (profile.rankable_us > 0)
    said.push(
      tr("Layers closer than {time} cannot be ranked.", {
        time: `${+profile.rankable_us.toPrecision(2)}${THIN}µs`,
      }),
    );
  return said.join(" ") + ran(profile);
}

/** In steps of a power of ten, at least one of them, as `rounded` of the engine. */
export const rounded = (v, step) =>
  fixed(Math.max(Math.round(v / step), 1) * step, Math.max(0, -Math.round(Math.log10(step))));

/** Types get paler with their rank: the bar is structure, not data. */
const grey = (i) => `color-mix(in srgb,var(--ink) ${Math.max(6, 20 - i * 3)}%,var(--bg))`;

export default widget({
  name: "timing",
  empty: { title: tr("Nothing measured yet") },
  ready: (c) => Boolean(c.get("profile") && c.get("profile").layers.length),
  view(c) {
    const profile = c.get("profile"),
      a = account(profile),
      whole = Math.max(a.total, a.parts.reduce((sum, p) => sum + p.value, 0)) || 1;
    const unit = profile.emulated ? tr("M instructions") : "ms";
    // Under emulation the sentence says all of it.
    const warnings = profile.emulated ? [] : (profile.warnings || []).filter((text) => text !== profile.busy);
    const [first, bold, last] = sentence(profile).split("**");
    return html`${profile.busy ? notice({ kind: "warn", what: `**${capital(profile.busy)}.**` }) : nothing}
    <div class="honest">
      <div>
        <span class="big">${profile.step_ms ? rounded(a.total, profile.step_ms) : ms(a.total)}<small>${THIN}${unit}</small></span>
      </div>
      <div class="right">
        <div class="tot" role="img" aria-label=${tr("Share of each layer type")}>
          ${a.parts.map((p, i) => {
            const share = (100 * p.value) / whole;
            return html`<i
              data-tip="${`${p.type}\n${ms(p.value)}${THIN}${unit} · ${percent(share)}`}"
              style="width:${share.toFixed(2)}%;background:${grey(i)}"
              >${share > 5 ? html`<span>${p.type} <b>${percent(share, 0)}</b></span>` : nothing}</i
            >`;
          })}
        </div>
        <p class="mu">${first}${bold ? html`<b class="ink">${bold}</b>` : nothing}${last || ""}</p>
        ${warnings.map((text) => html`<p class="mu">${capital(text)}${/[.!?]$/.test(text) ? "" : "."}</p>`)}
      </div>
    </div>`;
  },
  watch: ["profile"],
});
