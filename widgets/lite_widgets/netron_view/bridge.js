// Runs inside netron's page, right after its own start script and before netron starts. It leans
// on private names of the pinned netron (window.exports, window.__view__) and edits no file.
(() => {
  const start = window.exports.preload;
  window.exports.preload = (done) =>
    start((value, error) => {
      if (!error) quiet(window.exports.browser.Host.prototype);
      done(value, error);
    });

  /** No age check, no question about consent, no reports to anyone. */
  function quiet(host) {
    host.view = async function view(page) {
      this._view = page;
    };
    host.exception = () => {};
    host.event = () => {};
  }

  const page = () => window.__view__;
  const nodes = () => (page() && page().activeTarget && page().activeTarget.nodes) || [];
  const tell = (message) =>
    window.parent.postMessage({ lite: 1, ...message }, window.location.origin);

  window.liteNetron = {
    /** Is netron waiting for a file? */
    idle: () => Boolean(page()?._host?._view && document.body.className.includes("welcome")),
    open(bytes, name) {
      const file = new File([bytes], name);
      return page()._host._open(file, [file]);
    },
    /** Mark the nodes of these names and scroll to the first. Returns how many there are. */
    select(names) {
      const wanted = new Set(names),
        found = nodes().filter((node) => wanted.has(node.name));
      if (page() && page().target) {
        const shown = page().target.select(found, "lite");
        if (found.length) page().target.scrollTo(shown);
      }
      return found.length;
    },
    /** {node name: colour}; nodes that are not named get netron's own colour back. */
    colour(map) {
      for (const node of nodes()) {
        const shape = document
          .getElementById(`node-name-${node.name}`)
          ?.querySelector(".node-item path");
        if (shape) shape.style.fill = map[node.name] || "";
      }
    },
    // Chromium does not hand the page's colour scheme to a frame: netron's dark rules are switched.
    dark(on) {
      for (const sheet of document.styleSheets)
        for (const rule of sheet.cssRules) {
          if (
            rule.media &&
            (rule.lite || rule.media.mediaText.includes("prefers-color-scheme: dark"))
          ) {
            rule.lite = true;
            rule.media.mediaText = on ? "all" : "not all";
          }
        }
    },
  };

  let watched = null;
  setInterval(() => {
    const target = page() && page().target;
    if (!target || target === watched) return;
    watched = target;
    target.on("selectionchange", (_, source) => {
      if (source === "lite") return;
      tell({
        event: "select",
        names: [...(target.selection || [])].map((e) => e.value && e.value.name).filter(Boolean),
      });
    });
    tell({ event: "ready", nodes: nodes().length });
  }, 100);
})();
