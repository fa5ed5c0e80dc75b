// A JupyterLab extension without a bundler: the container that module federation expects, by hand.
// It gives the page window.liteWorkbench with what a widget alone cannot do, because widgets do not
// see the notebook that shows them: insertCells(element, sources) and keepPicture(element, html).
// Where no kernel holds a widget any more, its output shows the saved static image.
(() => {
  const OURS = "application/vnd.lite-workbench.view+json"; // lite_widgets/_base.py
  const WIDGET = "application/vnd.jupyter.widget-view+json";
  const HTML = "text/html";
  const RANK = -20; // before ipywidgets' -10
  const GONE = "Static image: no running kernel. Run the cell to use it.";
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

  /** Makes `picture` the static HTML of the output that shows `element`. */
  function keepPicture(tracker, element, picture) {
    const panel = tracker.find((p) => p.node.contains(element));
    const cell = panel?.content.widgets.find((w) => w.node.contains(element));
    const at = cell?.outputArea?.widgets.findIndex((w) => w.node.contains(element)) ?? -1;
    const output = at < 0 ? null : cell.outputArea.model.get(at);
    if (!output?.data[OURS] || output.data[HTML] === picture) return;
    output.setData({ data: { ...output.data, [HTML]: picture } });
  }

  /** ipywidgets' own renderer, which shows the static picture when its widget is gone. */
  function renderer(registry) {
    const view = registry.createRenderer(WIDGET);
    const render = view.renderModel.bind(view);
    let shown = null; // model_id of the widget on show
    let still = null;
    view.renderModel = async (model) => {
      const id = model.data[WIDGET]?.model_id;
      if (id && id === shown && view.widgets.length) return; // only the picture is new
      still?.dispose();
      still = null;
      await render(model);
      shown = id;
      if (view.node.firstElementChild || !view.node.textContent.startsWith("Error")) return;
      shown = null;
      still = registry.createRenderer(HTML);
      await still.renderModel(model);
      view.node.textContent = "";
      view.addWidget(still);
      still.node.insertAdjacentHTML("afterbegin", `<p><em>${GONE}</em></p>`);
    };
    return view;
  }

  async function extension() {
    const { INotebookTracker } = await load("@jupyterlab/notebook");
    const plugin = {
      id: "lite-workbench:cells",
      description: "Inserts the session as cells, and shows static images of widgets without a kernel.",
      autoStart: true,
      requires: [INotebookTracker],
      activate: (app, tracker) => {
        window.liteWorkbench = {
          insertCells: (element, sources) => insertCells(tracker, element, sources),
          keepPicture: (element, picture) => keepPicture(tracker, element, picture),
        };
        app.docRegistry.addWidgetExtension("Notebook", {
          createNew: (panel) => {
            const registry = panel.content.rendermime;
            const factory = {
              safe: false,
              mimeTypes: [OURS],
              createRenderer: () => renderer(registry),
            };
            registry.addFactory(factory, RANK);
          },
        });
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
