// Follow JupyterLab's theme live, or VS Code's, or the system's.

export function pageIsDark(doc = document) {
  const said = doc.body.getAttribute("data-jp-theme-light");
  if (said) return said === "false";
  if (doc.body.classList.contains("vscode-dark")) return true;
  if (doc.body.classList.contains("vscode-light")) return false;
  return Boolean(
    doc.defaultView.matchMedia &&
    doc.defaultView.matchMedia("(prefers-color-scheme: dark)").matches,
  );
}

/** Call `changed` whenever the page's theme may have changed; returns the function that stops. */
export function onThemeChange(changed) {
  const watcher = new MutationObserver(changed);
  watcher.observe(document.body, {
    attributes: true,
    attributeFilter: ["data-jp-theme-light", "class"],
  });
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  return () => {
    watcher.disconnect();
    system.removeEventListener("change", changed);
  };
}
