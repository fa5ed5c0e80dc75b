// Every layer once, top to bottom.
import { html } from "../_shared/markup.js";
import { widget } from "../_shared/view.js";
import { keyed } from "../_shared/parts.js";
import { overview } from "../_shared/overview.js";
import { graphStyle } from "../graph_view/graph_style.js";

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
  empty: { title: "No layers yet" },
  ready: (c) => Boolean(c.get("comparison") || c.get("profile")),
  frame: () =>
    html`<div
      data-part="strip"
      ${keyed("strip", "Every layer. Arrow keys select.")}
    ></div>`,
  parts: {
    strip(c) {
      const s = style(c);
      return overview(rows(c), {
        height: c.get("height"),
        weight: s.judged ? (r) => s.at.get(r.name)?.acc ?? 0 : s.share,
        fill: s.solid,
        flag: s.first,
        hatch: s.hatch,
        paint: c.paint,
      });
    },
  },
  watch: {
    profile: ["frame"],
    comparison: ["frame"],
    tolerance: ["strip"],
    colour_by: ["strip"],
    hidden_types: ["strip"],
    height: ["strip"],
  },
  order: (c) => rows(c).map((r) => r.name),
  tip: (c, name) => style(c).tip(name),
});
