// A file from the page to Python, in pieces that the server lets through.
import { html } from "../_shared/markup.js";
import { widget } from "../_shared/view.js";
import { bytes } from "../_shared/format.js";

export const PIECE = 3 << 20;

/** Offsets of the pieces of a file: at least one, also for an empty file. */
export const offsets = (size, piece = PIECE) =>
  Array.from({ length: Math.max(1, Math.ceil(size / piece)) }, (_, i) => i * piece);

async function send(c, file) {
  c.local.sending = (c.local.sending || 0) + 1;
  const me = c.local.sending;
  note(c, `${file.name}, ${bytes(file.size)}`);
  if (c.get("preview") && file.type.startsWith("image/")) preview(c, file);
  for (const offset of offsets(file.size)) {
    const data = new DataView(await file.slice(offset, offset + PIECE).arrayBuffer());
    const seq = ((c.get("piece") || {}).seq || 0) + 1;
    const answer = new Promise((resolve) => {
      const heard = () => {
        if ((c.get("received") || {}).seq !== seq) return;
        c.model.off("change:received", heard);
        resolve(c.get("received"));
      };
      c.model.on("change:received", heard);
    });
    c.model.set("data", data);
    c.model.set("piece", { name: file.name, size: file.size, offset, seq });
    c.model.save_changes();
    const said = await answer;
    if (me !== c.local.sending) return;
    if (said.error) {
      note(c, said.error);
      return;
    }
    note(
      c,
      said.offset < file.size
        ? `${file.name}, ${bytes(said.offset)} of ${bytes(file.size)}`
        : `${file.name}, ${bytes(file.size)}`,
    );
  }
}

function note(c, text) {
  const box = c.root.querySelector("[data-note]");
  if (box) box.textContent = text;
  c.say(text);
}

function preview(c, file) {
  const image = c.root.querySelector("img");
  image.onerror = () => (image.hidden = true); // the run says what is wrong with it
  if (c.local.url) URL.revokeObjectURL(c.local.url);
  image.src = c.local.url = URL.createObjectURL(file);
  image.hidden = false;
  image.alt = file.name;
}

export default widget({
  name: "drop",
  frame(c) {
    const choices = c.get("choices");
    return html`<div class="zone">
      <button type="button" class="btn" data-open data-focus="open">${c.get("label")}</button
      ><input type="file" accept="${c.get("accept")}" hidden />${
        choices.length
          ? html`<label class="lbl"
              >or
              <select class="sel" data-set="picked" data-focus="picked" aria-label="Pick a file">
                <option value="">pick one</option>
                ${choices.map(
                  ([v, text]) =>
                    html`<option value="${v}" ${v === c.get("picked") ? html` selected` : ""}>
                      ${text}
                    </option>`,
                )}
              </select></label
            >`
          : ""
      }<span class="mu" data-note>or drop it here</span><img hidden alt="" />
    </div>`;
  },
  watch: { label: ["frame"], accept: ["frame"], choices: ["frame"] },
  after(c) {
    const zone = c.root.querySelector(".zone"),
      field = c.root.querySelector("input[type=file]");
    field.addEventListener("change", () => {
      if (field.files.length) send(c, field.files[0]);
    });
    zone.addEventListener("dragover", (e) => {
      e.preventDefault();
      zone.classList.add("over");
    });
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (e) => {
      e.preventDefault();
      e.stopPropagation();
      zone.classList.remove("over");
      if (e.dataTransfer.files.length) send(c, e.dataTransfer.files[0]);
    });
  },
  click(c, event) {
    if (!event.target.closest("[data-open]")) return false;
    c.root.querySelector("input[type=file]").click();
    return true;
  },
  close(c) {
    if (c.local.url) URL.revokeObjectURL(c.local.url);
  },
});
