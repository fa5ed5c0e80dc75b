// What is wrong, where, and the fix.
import { nothing } from "#template";
import { widget } from "#view";
import { notice } from "../_shared/parts.js";

const TRAITS = ["kind", "what", "where", "detail", "fix", "again", "tried", "actions"];

export default widget({
  name: "notice",
  view: (c) =>
    c.get("what") ? notice(Object.fromEntries(TRAITS.map((n) => [n, c.get(n)]))) : nothing,
  watch: TRAITS,
});
