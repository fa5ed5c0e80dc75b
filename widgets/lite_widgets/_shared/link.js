// Widgets with the same `link` follow each other in the page: no kernel is needed for that, so a
// selection made in a saved report still reaches every view.

const EVENT = "lite-link";

export function announce(link, from, values) {
  if (link) document.dispatchEvent(new CustomEvent(EVENT, { detail: { link, from, values } }));
}

/** `hear(values)` is called with what others of the same link announce. */
export function listen(linkNow, me, hear) {
  const handler = ({ detail }) => {
    if (detail.from !== me && detail.link && detail.link === linkNow()) hear(detail.values);
  };
  document.addEventListener(EVENT, handler);
  return () => document.removeEventListener(EVENT, handler);
}
