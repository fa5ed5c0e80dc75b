// Netron in a frame of the same origin; see bridge.js for what runs inside of it.
import { html } from "../_shared/markup.js";
import { widget } from "../_shared/view.js";
import { notice } from "../_shared/parts.js";

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

const inside = (c) => c.local.frame?.contentWindow?.liteNetron;

function paint(c) {
  const netron = inside(c);
  if (!netron || !c.local.ready) return;
  netron.dark(c.dark);
  netron.colour(c.get("colours"));
}

function mark(c) {
  if (inside(c) && c.local.ready && !c.local.telling)
    inside(c).select(nodesOf(c.selected, c.get("sources")));
}

async function load(c) {
  const url = `${baseUrl(document)}lite/netron/embed.html`,
    box = c.part("netron");
  clearInterval(c.local.timer);
  c.local.ready = false;
  let answer = null;
  try {
    answer = await fetch(url, { method: "GET", credentials: "same-origin" });
  } catch {
    answer = null; // no server at all: an exported page
  }
  if (!answer || !answer.ok) {
    box.innerHTML = notice({
      what: "**Netron is not served here.**",
      where: answer
        ? `${url} answers ${answer.status}.`
        : "There is no Jupyter server behind this page.",
      fix: answer ? ENABLE : "",
    }).text;
    return;
  }
  const frame = document.createElement("iframe");
  frame.title = `Netron: ${c.get("name")}`;
  frame.src = url;
  box.replaceChildren(frame);
  c.local.frame = frame;
  const began = Date.now();
  c.local.timer = setInterval(() => {
    if (inside(c)?.idle()) {
      clearInterval(c.local.timer);
      const data = c.get("model");
      inside(c).dark(c.dark);
      inside(c).open(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), c.get("name"));
    } else if (Date.now() - began > WAIT_MS) {
      clearInterval(c.local.timer);
      box.innerHTML = notice({
        what: "**Netron did not start.**",
        where: "Its page changed or was blocked.",
        fix: "pip install netron==9.3.3",
      }).text;
    }
  }, 60);
}

export default widget({
  name: "netron",
  empty: { title: "No file yet", text: "The file as it was read, before any optimisation." },
  ready: (c) => Boolean(c.get("model") && c.get("model").byteLength),
  frame: (c) =>
    html`<div class="card">
      <div class="ch">
        <h3>${c.get("name")}</h3>
        <span class="mu">as read, drawn by netron</span>
      </div>
      <div data-part="netron" style="height:${c.get("height")}px"></div>
    </div>`,
  acts: { paint, mark },
  watch: {
    model: ["frame"],
    name: ["frame"],
    height: ["frame"],
    colours: ["paint"],
    sources: ["mark"],
  },
  selection: ["mark"],
  after(c) {
    c.local.hear ??= (event) => {
      if (
        event.origin !== window.location.origin ||
        event.source !== c.local.frame?.contentWindow ||
        event.data?.lite !== 1
      )
        return;
      if (event.data.event === "ready") {
        c.local.ready = true;
        c.set({ nodes: event.data.nodes });
        setTimeout(() => {
          paint(c);
          mark(c);
        }, 200);
      } else if (event.data.event === "select") {
        c.local.telling = true; // what netron told us need not be told to netron
        c.select(layersOf(event.data.names, c.get("sources")));
        setTimeout(() => {
          c.local.telling = false;
        }, 100);
      }
    };
    window.addEventListener("message", c.local.hear);
    load(c);
  },
  close(c) {
    clearInterval(c.local.timer);
    window.removeEventListener("message", c.local.hear);
  },
});
