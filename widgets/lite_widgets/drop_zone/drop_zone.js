// A file from the page to Python, in pieces that the server lets through.
import { html, nothing } from "#template";
import { widget } from "#view";
import { bytes } from "../_shared/format.js";
import { choice } from "../_shared/parts.js";
import { tr } from "../_shared/words.js";

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
    c.set({ data, piece: { name: file.name, size: file.size, offset, seq } });
    const said = await answer;
    if (me !== c.local.sending) return;
    if (said.error) {
      note(c, said.error);
      return;
    }
    note(
      c,
      said.offset < file.size
        ? tr("{file}, {sent} of {size}", { file: file.name, sent: bytes(said.offset), size: bytes(file.size) })
        : `${file.name}, ${bytes(file.size)}`,
    );
  }
}

function note(c, text) {
  c.local.note = text;
  c.say(text);
  c.draw();
}

function preview(c, file) {
  if (c.local.picture) URL.revokeObjectURL(c.local.picture.url);
  c.local.picture = { url: URL.createObjectURL(file), name: file.name };
}

/** The run says what is wrong with an image that cannot be shown. */
const hide = (c) => {
  c.local.picture = null;
  c.draw();
};

const over = (event, on) => event.currentTarget.classList.toggle("over", on);

function dropped(c, event) {
  event.preventDefault();
  event.stopPropagation();
  over(event, false);
  if (event.dataTransfer.files.length) send(c, event.dataTransfer.files[0]);
}

export default widget({
  name: "drop",
  view(c) {
    const choices = c.get("choices"),
      { picture } = c.local;
    return html`<div
      class="zone"
      @dragover=${(event) => {
        event.preventDefault();
        over(event, true);
      }}
      @dragleave=${(event) => over(event, false)}
      @drop=${(event) => dropped(c, event)}
    >
      <button type="button" class="btn" data-open>${c.get("label")}</button
      ><input
        type="file"
        accept=${c.get("accept")}
        hidden
        @change=${({ target }) => target.files.length && send(c, target.files[0])}
      />${
        choices.length
          ? html`<label class="lbl"
              >${tr("or")}
              ${choice("picked", [["", tr("choose one")], ...choices], c.get("picked"), tr("Choose a file"))}</label
            >`
          : nothing
      }${c.local.note ? html`<span class="mu">${c.local.note}</span>` : nothing}${
        picture
          ? html`<img src=${picture.url} alt=${picture.name} @error=${() => hide(c)} />`
          : nothing
      }
    </div>`;
  },
  watch: ["label", "accept", "choices", "picked"],
  click(c, event) {
    if (!event.target.closest("[data-open]")) return false;
    c.root.querySelector("input[type=file]").click();
    return true;
  },
  close(c) {
    if (c.local.picture) URL.revokeObjectURL(c.local.picture.url);
  },
});
