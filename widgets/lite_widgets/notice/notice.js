// What is wrong, where, and the fix.
import { html } from "../_shared/markup.js";
import { widget } from "../_shared/view.js";
import { notice } from "../_shared/parts.js";

const TRAITS = ["kind", "what", "where", "detail", "fix", "again", "tried", "actions"];

export default widget({
  name: "notice",
  frame: (c) =>
    c.get("what") ? notice(Object.fromEntries(TRAITS.map((n) => [n, c.get(n)]))) : html``,
  watch: Object.fromEntries(TRAITS.map((n) => [n, ["frame"]])),
});
