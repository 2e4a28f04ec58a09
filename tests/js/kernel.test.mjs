// @ts-check
// A view beside a live kernel: what follows from a change is written by whoever made the change.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Model } from "../../src/convgrad/widgets/js/static_page.js";

/** An element that can be made and told things, no more. */
const element = () => ({ dataset: {}, hidden: false, setAttribute() {}, addEventListener() {}, append() {}, remove() {} });
Object.assign(globalThis, { document: { createElement: element } });
const { View, owned } = await import("../../src/convgrad/widgets/js/view.js");

const turn = () => new Promise((done) => setTimeout(done));

/** A notebook: messages of the kernel arrive one by one, and those of the page when its cell is done. */
class Notebook {
  /** @type {Record<string, any>[]} */
  inbox = [];
  /** @type {Record<string, any>} */
  python;
  #saved;

  /** @param {Record<string, any>} state */
  constructor(state) {
    this.python = { ...state };
    this.#saved = { ...state };
    this.model = new Model({ ...state });
    const face = this.model.face(this);
    this.page = {
      ...face,
      save_changes: () => {
        const now = Object.keys(this.#saved).map((name) => [name, face.get(name)]);
        const changed = now.filter(([name, value]) => this.#saved[String(name)] !== value);
        Object.assign(this.#saved, Object.fromEntries(changed));
        if (changed.length) this.inbox.push(Object.fromEntries(changed));
      },
    };
  }

  /** A cell that sets one trait after the other. @param {Record<string, any>[]} lines */
  async run(lines) {
    for (const line of lines) {
      Object.assign(this.python, line);
      Object.assign(this.#saved, line);
      this.model.face("kernel").set(line);
      await turn();
    }
    for (const message of this.inbox.splice(0)) {
      Object.assign(this.python, message);
      this.model.face("kernel").set(message);
    }
    await turn();
  }
}

/** Every view has as many steps as its name has letters; another view by hand is shown complete. */
class Counting extends View {
  step = 0;

  /** @param {any} model */
  constructor(model) {
    super(model);
    this.follow();
    this.mount(/** @type {any} */ (element()), /** @type {any} */ (element()), ["view", "step"]);
  }

  follow() {
    const most = this.model.get("view").length;
    const given = this.model.get("step");
    this.step = given === this.step && this.model.isOurs?.() ? most : Math.min(given, most);
    this.settle({ step: this.step });
  }
}

/** @param {Record<string, any>} state */
function opened(state) {
  const notebook = new Notebook(state);
  const view = new Counting(owned(notebook.page));
  view.step = state.step;
  return { notebook, view };
}

test("a step that a kernel sets after the view is not lost", async () => {
  const { notebook, view } = opened({ view: "abc", step: 3, complaint: "" });
  await notebook.run([{ view: "abcdef" }, { step: 2 }]);
  assert.equal(notebook.python.step, 2);
  assert.equal(view.step, 2);
});

test("a step that is too large for the view that a kernel sets is drawn as the last, and not written", async () => {
  const { notebook, view } = opened({ view: "abcdef", step: 5, complaint: "" });
  await notebook.run([{ view: "abc" }]);
  assert.equal(view.step, 3);
  assert.deepEqual([notebook.python.step, notebook.inbox.length], [5, 0]); // Python's own to mend
});

test("what follows from a change by hand is written", async () => {
  const { notebook, view } = opened({ view: "abc", step: 3, complaint: "" });
  view.send({ view: "abcdef" });
  await turn();
  await notebook.run([]);
  assert.deepEqual([view.step, notebook.python.step, notebook.python.view], [6, 6, "abcdef"]);
});

test("a change by hand is not taken for one when a kernel changes something afterwards", async () => {
  const { notebook, view } = opened({ view: "abc", step: 3, complaint: "" });
  view.send({ step: 1 });
  await turn();
  await notebook.run([]); // it arrives
  await notebook.run([{ view: "abcdef" }, { step: 4 }]);
  assert.equal(notebook.python.step, 4);
});
