// Texts in the person's language. Python puts the translations before the bundle (lite_messages).

const words = globalThis.liteWords ?? {};

const filled = (text, fields) =>
  text.replace(/\{\{|\}\}|\{(\w+)\}/g, (found, name) =>
    name === undefined ? found[0] : name in fields ? fields[name] : found,
  );

/** `tr("{done} of {all}", { done, all })`: the text with its fields. Called with literals only. */
export const tr = (text, fields = {}) => filled(words[text] ?? text, fields);

/** `trn("{n} layer", "{n} layers", n)`: the form of the text for `n` things. */
export function trn(one, many, n, fields = {}) {
  const forms = words[one];
  const form = forms?.[words[""][n < 200 ? n : 100 + (n % 100)]];
  return filled(form ?? (n === 1 ? one : many), { n, ...fields });
}
