// Whole names of layers, without what all of them begin with.

/** What all names begin with, up to and with a slash or dot; "" for one name. */
export function commonPrefix(names) {
  if (names.length < 2) return "";
  let [common] = names;
  for (const name of names) {
    let i = 0;
    while (i < common.length && common[i] === name[i]) i++;
    common = common.slice(0, i);
  }
  return common.slice(0, Math.max(common.lastIndexOf("/"), common.lastIndexOf(".")) + 1);
}

/** The largest end of a name that fits `width` pixels: its last parts tell layers apart. */
export function fitEnd(text, width, charWidth) {
  const room = Math.floor(width / charWidth);
  return text.length <= room ? text : `…${text.slice(text.length - room + 1)}`;
}
