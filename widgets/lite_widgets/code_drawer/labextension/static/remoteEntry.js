// A JupyterLab extension without a bundler: the container that module federation expects, by hand.
// It gives the page one function, window.liteWorkbench.insertCells(element, sources), which a widget
// alone cannot have: widgets do not see the notebook that shows them.
(() => {
  let shared = null;

  /** A module that JupyterLab shares, in the version that it runs. */
  async function load(name) {
    const versions = Object.values(shared[name]);
    return (await versions[versions.length - 1].get())();
  }

  /** Code cells after the one that shows `element`. Returns how many; 0 outside a notebook. */
  function insertCells(tracker, element, sources) {
    const panel = tracker.find((p) => p.node.contains(element));
    const book = panel?.content;
    const at = book ? book.widgets.findIndex((cell) => cell.node.contains(element)) : -1;
    if (at < 0 || !book.model) return 0;
    const cells = sources.map((source) => ({ cell_type: "code", source, metadata: {} }));
    book.model.sharedModel.insertCells(at + 1, cells);
    book.activeCellIndex = at + 1;
    return cells.length;
  }

  async function extension() {
    const { INotebookTracker } = await load("@jupyterlab/notebook");
    const plugin = {
      id: "lite-workbench:cells",
      description: "Inserts the walk as cells.",
      autoStart: true,
      requires: [INotebookTracker],
      activate: (app, tracker) => {
        window.liteWorkbench = {
          insertCells: (element, sources) => insertCells(tracker, element, sources),
        };
      },
    };
    return () => ({ __esModule: true, default: plugin });
  }

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB["lite-workbench"] = {
    init: (scope) => {
      shared = scope;
    },
    get: (name) =>
      name === "./extension"
        ? extension()
        : Promise.reject(new Error(`lite-workbench has no module ${name}`)),
  };
})();
