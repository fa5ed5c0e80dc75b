import assert from "node:assert/strict";
import { test } from "node:test";
import { Outbox } from "../../../widgets/lite_widgets/_shared/outbox.js";

/** The kernel deals with one message at a time, in the order of their coming. */
const kernel = () => {
  const messages = [];
  const heard = [];
  return {
    heard,
    receive: (values, status) => messages.push([values, status]),
    answer() {
      const [values, status] = messages.shift();
      heard.push(values);
      status({ content: { execution_state: "idle" } });
    },
    answerAll() {
      while (messages.length) this.answer();
    },
  };
};

/** A model of ipywidgets: one message under way, one buffer for what comes after it. */
const modelOf = (to, name, manager = { callbacks: () => ({ iopub: {} }) }) => {
  const state = { layout: { of: name } }, handlers = new Map();
  let unsaved = {}, buffer = null, pending = 0;
  const send = (values, callbacks) => {
    pending++;
    to.receive({ [name]: values }, (message) => {
      pending--;
      if (buffer && !pending) {
        const [next, of] = buffer;
        buffer = null;
        send(next, of);
      }
      callbacks.iopub.status(message);
    });
  };
  return {
    widget_manager: manager,
    get: (key) => state[key],
    set(key, value) {
      if (JSON.stringify(state[key]) === JSON.stringify(value)) return;
      state[key] = unsaved[key] = value;
      handlers.get(`change:${key}`)?.();
    },
    on: (event, handler) => handlers.set(event, handler),
    off: (event) => handlers.delete(event),
    save_changes(callbacks) {
      const values = unsaved;
      unsaved = {};
      if (!Object.keys(values).length) return;
      if (pending) buffer = [{ ...buffer?.[0], ...values }, callbacks];
      else send(values, callbacks);
    },
  };
};

const press = (outbox, model, id) => outbox.act(() => outbox.put(model, [["action", id]]));

test("an action waits for what was set before it in another widget", () => {
  const to = kernel(), outbox = new Outbox();
  const cards = modelOf(to, "cards"), header = modelOf(to, "header");
  outbox.put(cards, [["chosen", ["x86"]]]);
  outbox.put(cards, [["chosen", []]]);
  press(outbox, header, "use");
  to.answerAll();
  assert.deepEqual(to.heard, [
    { cards: { chosen: ["x86"] } },
    { cards: { chosen: [] } },
    { header: { action: "use" } },
  ]);
});

test("two views of one widget wait for each other's messages", () => {
  const to = kernel(), outbox = new Outbox();
  const first = modelOf(to, "cards"), second = { ...first };
  outbox.put(first, [["chosen", [1]]]);
  outbox.put(second, [["chosen", [2]]]);
  outbox.put(first, [["chosen", [3]]]); // takes the place of the one before
  press(outbox, modelOf(to, "header"), "use");
  to.answerAll();
  assert.deepEqual(to.heard.at(-2), { cards: { chosen: [3] } });
  assert.deepEqual(to.heard.at(-1), { header: { action: "use" } });
});

test("no press is lost while the kernel is busy", () => {
  const to = kernel(), outbox = new Outbox(), header = modelOf(to, "header");
  for (const id of ["a", "b", "c"]) press(outbox, header, id);
  to.answerAll();
  assert.deepEqual(to.heard.map((message) => message.header.action), ["a", "b", "c"]);
});

test("what is set after an action waits for it", () => {
  const to = kernel(), outbox = new Outbox();
  const cards = modelOf(to, "cards"), header = modelOf(to, "header");
  outbox.put(cards, [["chosen", [1]]]);
  press(outbox, header, "use");
  assert.ok(outbox.busy);
  outbox.later(() => outbox.put(cards, [["chosen", [2]]]));
  to.answerAll();
  assert.deepEqual(to.heard.map((message) => Object.keys(message)[0]), ["cards", "header", "cards"]);
});

test("a value that a drag keeps back goes before the action", () => {
  const to = kernel(), outbox = new Outbox(), strip = modelOf(to, "strip");
  const view = { save: () => outbox.put(strip, [["tolerance", 0.1]]) };
  outbox.keep(view);
  press(outbox, modelOf(to, "header"), "run");
  to.answerAll();
  assert.deepEqual(to.heard, [{ strip: { tolerance: 0.1 } }, { header: { action: "run" } }]);
});

test("values that change nothing are not waited for, nor a widget whose kernel has gone", () => {
  const to = kernel(), outbox = new Outbox();
  const cards = modelOf(to, "cards"), header = modelOf(to, "header");
  outbox.put(cards, [["chosen", [1]]]);
  to.answerAll();
  outbox.put(cards, [["chosen", [1]]]);
  press(outbox, header, "use");
  to.answerAll();
  assert.equal(to.heard.at(-1).header.action, "use");
  outbox.put(cards, [["chosen", [2]]]);
  press(outbox, header, "again");
  assert.ok(outbox.busy);
  outbox.forget(cards);
  assert.ok(!outbox.busy);
});

test("a host that does not say when it has dealt with a message gets everything at once", () => {
  const outbox = new Outbox(), said = [];
  const report = { get: () => undefined, set: (key, value) => said.push([key, value]), on() {}, off() {}, save_changes() {} };
  outbox.put(report, [["selected", ["a"]]]);
  press(outbox, report, "use");
  assert.deepEqual(said, [["selected", ["a"]], ["action", "use"]]);
});
