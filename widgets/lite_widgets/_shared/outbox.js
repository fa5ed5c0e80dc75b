// What a person does reaches Python in the order in which it was done, whichever widget it was
// done in.
//
// ipywidgets sends a change of a model at once, but keeps the next one back until the kernel has
// dealt with the first; what another widget sends meanwhile overtakes it. Two ticks and a press of
// another widget's button would be a press with one tick. So an action waits until everything that
// was set before it has been dealt with, and what is set after it waits for the action.
//
// Each widget is a module of its own: the page's one outbox is kept where all of them find it.

const PLACE = Symbol.for("lite-workbench.outbox");

export class Outbox {
  #counts = new Map(); // widget → {sent, heard}: numbers of its last message and of the last answer
  #queue = []; // {send, waits}; an action waits for all that is under way
  #soft = new Set(); // views that keep a value back while a person drags

  /** Whether what is set now has to wait. */
  get busy() {
    return this.#queue.length > 0;
  }

  keep(view) {
    this.#soft.add(view);
  }

  unkeep(view) {
    this.#soft.delete(view);
  }

  /** Send an action: after all that was set before it, in whichever widget. */
  act(send) {
    for (const view of [...this.#soft]) view.save();
    this.#queue.push({ send, waits: true });
    this.#next();
  }

  /** Send what was set while an action waits: after that action. */
  later(send) {
    this.#queue.push({ send, waits: false });
  }

  /** Set these values in a model and send them. */
  put(model, values) {
    let changed = false;
    const note = () => (changed = true);
    for (const [name, value] of values) {
      model.on(`change:${name}`, note);
      model.set(name, value);
      model.off(`change:${name}`, note);
    }
    // Hosts other than ipywidgets keep nothing back, and do not say when they have dealt with it.
    const callbacks = model.widget_manager?.callbacks?.();
    if (!callbacks || !changed) return model.save_changes();
    const count = this.#count(model);
    const number = ++count.sent;
    const status = (message) => {
      if (message.content.execution_state === "idle") this.#heard(count, number);
    };
    model.save_changes({ ...callbacks, iopub: { ...callbacks.iopub, status } });
  }

  /** Nothing more is heard of what this widget has sent: its kernel or its view has gone. */
  forget(model) {
    const count = this.#count(model);
    this.#counts.delete(keyOf(model));
    this.#heard(count, count.sent);
  }

  #count(model) {
    const key = keyOf(model);
    if (!this.#counts.has(key)) this.#counts.set(key, { sent: 0, heard: 0 });
    return this.#counts.get(key);
  }

  #heard(count, number) {
    count.heard = Math.max(count.heard, number);
    this.#next();
  }

  #next() {
    while (this.#queue.length && !(this.#queue[0].waits && this.#underWay()))
      this.#queue.shift().send();
  }

  #underWay() {
    return [...this.#counts.values()].some((count) => count.heard < count.sent);
  }
}

/** What the views of one widget have in common: ipywidgets gives each view a model object of its own. */
const keyOf = (model) => model.get("layout") ?? model;

export const outbox = (globalThis[PLACE] ??= new Outbox());
