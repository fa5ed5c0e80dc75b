// A JupyterLab extension without a bundler: the container that module federation expects, by hand.
// Two plugins. `cells` gives the page window.liteWorkbench with what a widget alone cannot do,
// because widgets do not see the notebook that shows them: insertCells(element, sources),
// runBelow(element, source) and keepPicture(element, html); where no kernel holds a widget any more, its output shows the saved
// static image. `models` opens model files: by double click, menu, launcher and command palette.
(() => {
  const OURS = "application/vnd.lite-workbench.view+json"; // lite_widgets/_base.py
  const WIDGET = "application/vnd.jupyter.widget-view+json";
  const HTML = "text/html";
  const RANK = -20; // before ipywidgets' -10
  const GONE = "Static image: no running kernel. Run the cell to use it.";
  const ICON =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" width="16"><g fill="none" ' +
    'stroke="#0b7285" stroke-width="1.4"><rect x="5" y="1.5" width="6" height="3.4" rx="1"/>' +
    '<rect x="1" y="11" width="6" height="3.4" rx="1"/><rect x="9" y="11" width="6" height="3.4" ' +
    'rx="1"/><path d="M8 5v3M4 11V8h8v3"/></g></svg>';
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

  /** Runs `source` in a cell after the one that shows `element`, in a console as its next line. */
  async function runBelow(app, tracker, element, source) {
    if (insertCells(tracker, element, [source])) {
      await app.commands.execute("notebook:run-cell");
      const { activeCell } = tracker.currentWidget.content;
      activeCell.node.scrollIntoView({ block: "start" });
      return;
    }
    const panel = app.shell.currentWidget;
    if (panel?.console && panel.node.contains(element)) await panel.console.inject(source);
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

  async function cells() {
    const { INotebookTracker } = await load("@jupyterlab/notebook");
    return {
      id: "lite-workbench:cells",
      description: "Inserts the session as cells, and shows static images of widgets without a kernel.",
      autoStart: true,
      requires: [INotebookTracker],
      activate: (app, tracker) => {
        window.liteWorkbench = {
          insertCells: (element, sources) => insertCells(tracker, element, sources),
          runBelow: (element, source) => runBelow(app, tracker, element, source),
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
  }

  const NAME = "Lite Workbench";
  const OPEN = "lite-workbench:open";
  const MODEL = "lite-model";
  const EXTENSIONS = [
    ".onnx", ".tflite", ".lite", ".nb", ".pdmodel", ".pb", ".caffemodel", ".pt2", ".liteproject",
  ];
  const isModel = (path) => EXTENSIONS.some((end) => path.toLowerCase().endsWith(end));

  /** A console whose kernel works in the model's folder and shows the Workbench: nothing is written
   * beside the model. A model that is open already is shown again. */
  function opener(app) {
    const open = new Map(); // path → promise of its panel

    async function start(path) {
      const local = app.serviceManager.contents.localPath(path);
      const at = local.lastIndexOf("/");
      const name = local.slice(at + 1);
      const panel = await app.commands.execute("console:create", {
        basePath: local.slice(0, Math.max(at, 0)),
        name,
        kernelPreference: { language: "python", autoStartDefault: true },
        activate: true,
      });
      panel.disposed.connect(() => open.delete(path));
      await panel.sessionContext.ready;
      const lines = [
        "import lite_workbench as lw",
        `workbench = lw.Workbench(${JSON.stringify(name)})`, // of JSON, a literal in Python, too
        "workbench",
      ];
      void panel.console.inject(lines.join("\n"));
      return panel;
    }

    return async (path) => {
      if (!open.has(path)) open.set(path, start(path));
      try {
        app.shell.activateById((await open.get(path)).id);
      } catch (error) {
        open.delete(path);
        throw error;
      }
    };
  }

  async function models() {
    const { ABCWidgetFactory, DocumentModel, DocumentWidget } = await load("@jupyterlab/docregistry");
    const { IFileBrowserFactory, FileDialog } = await load("@jupyterlab/filebrowser");
    const { IDocumentManager } = await load("@jupyterlab/docmanager");
    const { ICommandPalette } = await load("@jupyterlab/apputils");
    const { ILauncher } = await load("@jupyterlab/launcher");
    const { LabIcon } = await load("@jupyterlab/ui-components");
    const { Widget } = await load("@lumino/widgets");

    const icon = new LabIcon({ name: "lite-workbench:model", svgstr: ICON });

    /** Knows only where the file lies: its content, which may be large, is for the kernel. What is
     * collaborative is not saved, so JupyterLab makes no checkpoint, a copy of the file, either. */
    const unread = {
      name: MODEL, contentType: "file", fileFormat: null, collaborative: false, isDisposed: false,
      preferredLanguage: () => "", dispose: () => undefined,
      createNew: (options) => new DocumentModel({ ...options, collaborationEnabled: true }),
    };

    /** What the document manager asks for on a double click: stands in until the console is there. */
    class Factory extends ABCWidgetFactory {
      createNewWidget(context) {
        const content = new Widget();
        content.node.textContent = `Opening ${context.path} …`;
        const widget = new DocumentWidget({ content, context });
        context.ready
          .then(() => this.open(context.path))
          .then(
            () => widget.close(),
            (error) => {
              content.node.textContent = `${context.path} could not be opened: ${error.message}`;
            },
          );
        return widget;
      }
    }

    function activate(app, documents, browsers, palette, launcher) {
      const open = opener(app);
      app.docRegistry.addFileType({
        name: MODEL, displayName: "Model", extensions: EXTENSIONS, icon,
        mimeTypes: ["application/octet-stream"], contentType: "file", fileFormat: "base64",
      });
      app.docRegistry.addModelFactory(unread);
      const factory = new Factory({
        name: NAME, modelName: MODEL, fileTypes: [MODEL], defaultFor: [MODEL], readOnly: true,
      });
      factory.open = open;
      app.docRegistry.addWidgetFactory(factory);

      /** The given path, what is selected in the file browser, or what is chosen in a dialog. */
      async function chosen({ path, ask }) {
        if (path) return [path];
        const browser = browsers?.tracker.currentWidget;
        const selected = [...(browser?.selectedItems() ?? [])].map((item) => item.path);
        if (!ask) return selected;
        const { value } = await FileDialog.getOpenFiles({
          manager: documents,
          title: "Choose a model",
          defaultPath: browser?.model.path,
          filter: (item) => (isModel(item.path) ? {} : null),
        });
        return (value ?? []).map((item) => item.path);
      }

      app.commands.addCommand(OPEN, {
        label: ({ menu }) => (menu ? `Open with ${NAME}` : NAME),
        caption: "Show a model in the Lite Workbench",
        icon,
        execute: async (args) => {
          for (const path of (await chosen(args)).filter(isModel)) await open(path);
        },
      });
      const selector = `.jp-DirListing-item[data-file-type="${MODEL}"]`;
      app.contextMenu.addItem({ command: OPEN, args: { menu: true }, selector, rank: 1 });
      palette?.addItem({ command: OPEN, args: { ask: true }, category: "Machine learning" });
      launcher?.add({ command: OPEN, args: { ask: true }, category: "Other", rank: 1 });
    }

    return {
      id: "lite-workbench:models",
      description: "Opens model files in the Lite Workbench.",
      autoStart: true,
      requires: [IDocumentManager],
      optional: [IFileBrowserFactory, ICommandPalette, ILauncher],
      activate,
    };
  }

  async function extension() {
    const plugins = await Promise.all([cells(), models()]);
    return () => ({ __esModule: true, default: plugins });
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
