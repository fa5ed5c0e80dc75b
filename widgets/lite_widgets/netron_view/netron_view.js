// Netron in a frame of the same origin; see bridge.js for what runs inside of it.
import { html, nothing, repeat } from "#template";
import { widget } from "#view";
import { notice } from "../_shared/parts.js";
import { tr } from "../_shared/words.js";

const ENABLE = "jupyter server extension enable lite_widgets.netron_view.extension";
const WAIT_MS = 20000;

/** Where Jupyter serves from, also under /user/NAME/. */
export function baseUrl(doc) {
  const config = doc.getElementById("jupyter-config-data");
  const base = config ? JSON.parse(config.textContent).baseUrl : doc.body.dataset.baseUrl;
  return (base || "/").replace(/\/?$/, "/");
}

/** Names of nodes in the file for these layers. */
export const nodesOf = (layers, sources) => layers.flatMap((name) => sources[name] || [name]);

/** Layers that came from these nodes; a node that belongs to none stands for itself. */
export function layersOf(names, sources) {
  const made = new Map();
  for (const [layer, list] of Object.entries(sources))
    for (const node of list) made.set(node, layer);
  return [...new Set(names.map((n) => made.get(n) || n))];
}

const inside = (c) => c.root.querySelector("iframe")?.contentWindow?.liteNetron;

/** Colours and selection, where they changed since netron heard of them. */
function tell(c) {
  const netron = inside(c),
    { ready, loads } = c.local;
  if (!netron || !ready) return;
  const colours = c.get("colours"),
    { selected } = c,
    sources = c.get("sources");
  if (c.changed("colours", [loads, c.dark, colours])) {
    netron.dark(c.dark);
    netron.colour(colours);
  }
  // what netron told us need not be told to netron
  if (c.changed("selected", [loads, selected, sources]) && selected !== c.local.told)
    netron.select(nodesOf(selected, sources));
}

function fail(c, problem) {
  c.local.problem = problem;
  c.draw();
}

async function load(c) {
  const url = `${baseUrl(document)}lite/netron/embed.html`,
    loads = (c.local.loads || 0) + 1;
  clearInterval(c.local.timer);
  Object.assign(c.local, { loads, ready: false, problem: null, url: null });
  let answer = null;
  try {
    answer = await fetch(url, { method: "GET", credentials: "same-origin" });
  } catch {
    answer = null; // no server at all: an exported page
  }
  if (loads !== c.local.loads) return;
  if (!answer || !answer.ok) {
    fail(c, {
      what: tr("**Netron is not available here.**"),
      where: answer
        ? tr("{url} answers {status}.", { url, status: answer.status })
        : tr("This page has no Jupyter server."),
      fix: answer ? ENABLE : "",
    });
    return;
  }
  c.local.url = url;
  c.draw();
  const began = Date.now();
  c.local.timer = setInterval(() => {
    if (inside(c)?.idle()) {
      clearInterval(c.local.timer);
      const data = c.get("model");
      inside(c).dark(c.dark);
      inside(c).open(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), c.get("name"));
    } else if (Date.now() - began > WAIT_MS) {
      clearInterval(c.local.timer);
      fail(c, {
        what: tr("**Netron did not start.**"),
        where: tr("Its page has changed or is blocked."),
        fix: "pip install netron==9.3.3",
      });
    }
  }, 60);
}

function heard(c, event) {
  const page = c.root.querySelector("iframe")?.contentWindow;
  if (event.origin !== window.location.origin || event.source !== page || event.data?.lite !== 1)
    return;
  if (event.data.event === "ready") {
    c.set({ nodes: event.data.nodes });
    setTimeout(() => {
      c.local.ready = true;
      tell(c);
    }, 200);
  } else if (event.data.event === "select") {
    c.local.told = layersOf(event.data.names, c.get("sources"));
    c.select(c.local.told);
  }
}

export default widget({
  name: "netron",
  empty: { title: tr("No file yet"), text: tr("The file as it was read, before any optimization.") },
  ready: (c) => Boolean(c.get("model") && c.get("model").byteLength),
  view(c) {
    const { problem, url, loads } = c.local;
    const frame = () => html`<iframe tabindex="0" title="Netron: ${c.get("name")}" src=${url}></iframe>`;
    return html`<div class="card">
      <div class="ch">
        <h3>${c.get("name")}</h3>
        <span class="mu">${tr("as read, drawn by netron")}</span>
      </div>
      <div data-part="netron" style="height:${c.get("height")}px">
        ${problem ? notice(problem) : url ? repeat([loads], (turn) => turn, frame) : nothing}
      </div>
    </div>`;
  },
  watch: ["model", "name", "height", "colours", "sources", "selected"],
  after(c) {
    if (!c.local.hear) {
      c.local.hear = (event) => heard(c, event);
      window.addEventListener("message", c.local.hear);
    }
    if (c.changed("file", [c.get("model"), c.get("name")])) load(c);
    tell(c);
  },
  close(c) {
    clearInterval(c.local.timer);
    window.removeEventListener("message", c.local.hear);
  },
});
