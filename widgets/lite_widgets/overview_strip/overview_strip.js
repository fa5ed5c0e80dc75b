// Every layer once, top to bottom.
import { html } from "#template";
import { widget } from "#view";
import { keyed } from "../_shared/parts.js";
import { overview } from "../_shared/overview.js";
import { graphStyle } from "../graph_view/graph_style.js";
import { tr } from "../_shared/words.js";

const rows = (c) => (c.get("comparison") || c.get("profile")).layers;

const style = (c) =>
  graphStyle({
    profile: c.get("profile"),
    comparison: c.get("comparison"),
    tolerance: c.get("tolerance"),
    by: c.get("colour_by"),
    hidden: c.get("hidden_types"),
    paint: c.paint,
  });

export default widget({
  name: "overview",
  empty: { title: tr("No layers yet") },
  ready: (c) => Boolean(c.get("comparison") || c.get("profile")),
  view(c) {
    const s = style(c);
    return html`<div ${keyed(tr("Every layer. Arrow keys select."))}>
      ${overview(rows(c), {
        height: c.get("height"),
        weight: s.marked ? (r) => s.at.get(r.name)?.acc ?? 0 : s.share,
        fill: s.solid,
        flag: s.first,
        hatch: s.hatch,
        paint: c.paint,
      })}
    </div>`;
  },
  watch: ["profile", "comparison", "tolerance", "colour_by", "hidden_types", "height"],
  order: (c) => rows(c).map((r) => r.name),
  tip: (c, name) => style(c).tip(name),
});
