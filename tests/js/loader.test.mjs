// @ts-check
// The static page's loader: models that behave as JupyterLab's, and widgets that fail alone.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, mock, test } from "node:test";

import { Model, mount, mountAll, same, widgetOf } from "../../src/convgrad/widgets/js/static_page.js";

// ---- as much of a page as the loader touches ------------------------------------------------

/** @type {Fake | null} what has the focus */
let focused = null;

class Fake {
  /** @param {string} tag @param {Record<string, string>} [attributes] */
  constructor(tag, attributes = {}) {
    this.tag = tag;
    this.attributes = attributes;
    /** @type {Fake[]} */
    this.children = [];
    /** @type {Fake | null} */
    this.parent = null;
    this.className = "";
    this.textContent = "";
    /** @type {Set<string>} */
    this.classes = new Set();
    this.classList = {
      add: (/** @type {string} */ name) => void this.classes.add(name),
      remove: (/** @type {string} */ name) => void this.classes.delete(name),
    };
    this.ownerDocument = {
      createElement: (/** @type {string} */ name) => new Fake(name),
      get activeElement() {
        return focused;
      },
    };
  }
  /** @param {Fake | null} other @returns {boolean} */
  contains(other) {
    return other === this || this.children.some((child) => child.contains(other));
  }
  focus() {
    focused = this;
  }
  /** @param {string} name @param {string} value */
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  /** @param {string} name */
  removeAttribute(name) {
    delete this.attributes[name];
  }
  /** @param {Fake} child */
  append(child) {
    child.parent = this;
    this.children.push(child);
  }
  /** @param {Fake} child */
  prepend(child) {
    child.parent = this;
    this.children.unshift(child);
  }
  remove() {
    if (this.parent) this.parent.children = this.parent.children.filter((child) => child !== this);
    this.parent = null;
  }
  /** @param {string} name */
  getAttribute(name) {
    return this.attributes[name] ?? null;
  }
  /** @param {string} what */
  querySelector(what) {
    return this.children.find((child) => what.startsWith(child.tag)) ?? null;
  }
}

/** A .cg-widget with its fallback and, for a first display, the payload. @param {string} model @param {unknown} [payload] @returns {any} */
function display(model, payload) {
  const host = new Fake("div", { "data-model": model });
  host.append(new Fake("fallback"));
  if (payload !== undefined) {
    const script = new Fake("script");
    script.textContent = typeof payload === "string" ? payload : JSON.stringify(payload);
    host.append(script);
  }
  return host;
}

/** @param {any[]} hosts @returns {any} */
const pageOf = (hosts) => ({ querySelectorAll: () => hosts });
const atOnce = { near: () => true };

/** @param {any} host */
const live = (host) => host.children.find((/** @type {Fake} */ child) => child.className === "cg-live");
/** @param {any} host */
const note = (host) => host.children.find((/** @type {Fake} */ child) => child.className === "cg-note");

/** A module whose widget shows the trait n. */
const counter = {
  default: {
    /** @param {any} context */
    render({ model, el }) {
      const show = () => void (el.textContent = `n is ${model.get("n")}`);
      model.on("change:n", show);
      show();
      el.press = () => {
        model.set("n", model.get("n") + 1);
        model.save_changes();
      };
    },
  },
};

/** @type {import("node:test").Mock<any>} */
let complaints;
beforeEach(() => {
  complaints = mock.method(console, "error", () => {});
});
afterEach(() => mock.restoreAll());

// ---- the model ------------------------------------------------------------------------------

describe("Model", () => {
  test("a change is told by name and as a whole, once, after all values are in", () => {
    const model = new Model({ a: 1, b: 2 }).face("view");
    /** @type {unknown[]} */
    const heard = [];
    model.on("change:a", (_, value) => heard.push(["a", value, model.get("b")]));
    model.on("change:b", (_, value) => heard.push(["b", value]));
    model.on("change", () => heard.push("all"));
    model.set({ a: 10, b: 20 });
    assert.deepEqual(heard, [["a", 10, 20], ["b", 20], "all"]);
  });

  test("an equal value is no change, a mutated copy is one", () => {
    const model = new Model({ rows: [[1, 2]], n: 3 }).face("view");
    const heard = mock.fn();
    model.on("change", heard);
    model.set("n", 3);
    model.set("rows", [[1, 2]]);
    assert.equal(heard.mock.callCount(), 0);
    model.set("rows", [[1, 5]]);
    assert.equal(heard.mock.callCount(), 1);
    assert.deepEqual(model.get("rows"), [[1, 5]]);
  });

  test("several names at once; off takes away one callback, one name or everything", () => {
    const model = new Model({ a: 0, b: 0 }).face("view");
    const [one, two] = [mock.fn(), mock.fn()];
    model.on("change:a change:b", one);
    model.on("change:a", two);
    model.set({ a: 1, b: 1 });
    assert.deepEqual([one.mock.callCount(), two.mock.callCount()], [2, 1]);
    model.off("change:a", one);
    model.set({ a: 2, b: 2 });
    assert.deepEqual([one.mock.callCount(), two.mock.callCount()], [3, 2]);
    model.off("change:a");
    model.set({ a: 3, b: 3 });
    assert.deepEqual([one.mock.callCount(), two.mock.callCount()], [4, 2]);
    model.off();
    model.set({ a: 4, b: 4 });
    assert.deepEqual([one.mock.callCount(), two.mock.callCount()], [4, 2]);
  });

  test("one view's off leaves the other view's listeners alone", () => {
    const model = new Model({ a: 0 });
    const [left, right] = [model.face("left"), model.face("right")];
    const heard = mock.fn();
    left.on("change:a", heard);
    right.on("change:a", mock.fn());
    right.off("change:a");
    right.off();
    right.set("a", 1);
    assert.equal(heard.mock.callCount(), 1);
  });

  test("a listener that throws does not keep the change from the others", () => {
    const model = new Model({ a: 0 }).face("view");
    const heard = mock.fn();
    model.on("change:a", () => {
      throw new Error("broken listener");
    });
    model.on("change:a", heard);
    model.set("a", 1);
    assert.equal(heard.mock.callCount(), 1);
    assert.match(String(complaints.mock.calls[0].arguments[0]), /broken listener/);
  });

  test("a change made while hearing of a change is heard too", () => {
    const model = new Model({ a: 0, twice: 0 }).face("view");
    model.on("change:a", () => model.set("twice", 2 * Number(model.get("a"))));
    const heard = mock.fn();
    model.on("change:twice", heard);
    model.set("a", 4);
    assert.equal(model.get("twice"), 8);
    assert.equal(heard.mock.callCount(), 1);
  });

  test("saving and sending need no kernel", () => {
    const model = new Model({}).face("view");
    model.save_changes();
    model.send();
    assert.equal(model.get("nothing"), undefined);
  });
});

test("same compares as values", () => {
  assert.ok(same([1, { a: null }], [1, { a: null }]));
  assert.ok(same(NaN, NaN));
  assert.ok(!same(1, "1"));
  assert.ok(!same(null, {}));
  assert.ok(!same([1], [2]));
});

// ---- modules --------------------------------------------------------------------------------

describe("widgetOf", () => {
  test("takes an object, a function and a function that promises one", async () => {
    const widget = { render() {} };
    for (const exported of [widget, () => widget, async () => widget]) {
      assert.equal(await widgetOf(Promise.resolve({ default: exported }), new Model({})), widget);
    }
  });

  test("initializes before anything is rendered, and waits for it", async () => {
    const model = new Model({ ready: false });
    const widget = {
      async initialize(/** @type {any} */ context) {
        await Promise.resolve();
        context.model.set("ready", true);
        await assert.rejects(context.experimental.invoke("x"), /no kernel/);
      },
    };
    await widgetOf(Promise.resolve({ default: widget }), model);
    assert.equal(model.face("view").get("ready"), true);
  });

  test("says so when there is no widget in it", async () => {
    await assert.rejects(widgetOf(Promise.resolve({}), new Model({})), /exports no widget/);
  });
});

// ---- the page -------------------------------------------------------------------------------

describe("mount", () => {
  test("unmounting runs the clean-up, aborts the signal and drops the listeners", async () => {
    const host = display("w1");
    const model = new Model({ n: 0 });
    const cleanup = mock.fn();
    const heard = mock.fn();
    /** @type {AbortSignal | undefined} */
    let signal;
    const widget = {
      render(/** @type {any} */ context) {
        signal = context.signal;
        context.model.on("change", heard);
        return cleanup;
      },
    };
    const unmount = await mount(host, Promise.resolve(widget), model);
    assert.ok(host.classes.has("cg-mounted") && live(host));
    assert.equal(host.children[0], live(host), "before the fallback");
    unmount();
    model.face("test").set("n", 1);
    assert.equal(cleanup.mock.callCount(), 1);
    assert.equal(heard.mock.callCount(), 0);
    assert.equal(signal?.aborted, true);
    assert.ok(!host.classes.has("cg-mounted") && !live(host));
  });

  test("what fails half-way is taken away, the fallback stays, one sentence says why", async () => {
    const host = display("w1");
    const model = new Model({ n: 0 });
    const heard = mock.fn();
    const widget = {
      async render(/** @type {any} */ context) {
        context.model.on("change", heard);
        await Promise.resolve();
        throw new Error("out of paint");
      },
    };
    await mount(host, Promise.resolve(widget), model);
    model.face("test").set("n", 1);
    assert.ok(!host.classes.has("cg-mounted") && !live(host));
    assert.equal(host.children[0].tag, "fallback");
    assert.match(note(host).textContent, /could not be started \(out of paint\)\.$/);
    assert.equal(heard.mock.callCount(), 0);
    assert.equal(complaints.mock.callCount(), 1);
  });
});

describe("the keyboard", () => {
  const widget = Promise.resolve({
    render(/** @type {any} */ { el }) {
      el.append(new Fake("button"));
    },
  });
  test("who has come to the place of a widget goes on inside it", async () => {
    const host = display("w1");
    focused = host;
    await mount(host, widget, new Model({}));
    assert.equal(/** @type {any} */ (focused).tag, "button");
    focused = null;
  });

  test("who is elsewhere stays there", async () => {
    const host = display("w1");
    focused = new Fake("a");
    await mount(host, widget, new Model({}));
    assert.equal(focused.tag, "a");
    focused = null;
  });

  test("Tab stops at a widget that has not started, and no more when it has", async () => {
    const host = display("w1", { module: "counter.js", state: { n: 1 } });
    /** @type {() => void} */
    let come = () => {};
    const coming = { near: () => false, approach: () => new Promise((done) => (come = () => done(undefined))) };
    const all = mountAll(pageOf([host]), async () => counter, coming);
    assert.equal(host.getAttribute("tabindex"), "0");
    await new Promise((done) => setTimeout(done));
    come();
    await all;
    assert.equal(host.getAttribute("tabindex"), null);
  });
});

describe("mountAll", () => {
  test("displays of one model move together; models of one module do not", async () => {
    const payload = (/** @type {number} */ n) => ({ module: "counter.js", state: { n } });
    const hosts = [display("w1", payload(3)), display("w1"), display("w2", payload(7))];
    const load = mock.fn(() => Promise.resolve(counter));
    await mountAll(pageOf(hosts), load, atOnce);
    const texts = () => hosts.map((host) => live(host).textContent);
    assert.deepEqual(texts(), ["n is 3", "n is 3", "n is 7"]);
    live(hosts[1]).press();
    assert.deepEqual(texts(), ["n is 4", "n is 4", "n is 7"]);
  });

  test("a model starts once, however often it is shown", async () => {
    const initialize = mock.fn();
    const hosts = [display("w1", { module: "m.js", state: {} }), display("w1")];
    await mountAll(pageOf(hosts), async () => ({ default: { initialize, render() {} } }), atOnce);
    assert.equal(initialize.mock.callCount(), 1);
    assert.ok(hosts.every((host) => host.classes.has("cg-mounted")));
  });

  test("nobody is taken down by a broken state, module or widget, or a lost model", async () => {
    const hosts = [
      display("w1", "{broken"),
      display("w2", { module: "missing.js", state: {} }),
      display("w3", { module: "throws.js", state: {} }),
      display("w4"),
      display("w5", { module: "counter.js", state: { n: 1 } }),
    ];
    /** @param {string} name */
    const load = (name) => {
      if (name === "missing.js") return Promise.reject(new Error("missing.js is not there"));
      if (name === "counter.js") return Promise.resolve(counter);
      return Promise.resolve({ default: () => { throw new Error("no luck"); } });
    };
    await mountAll(pageOf(hosts), load, atOnce);
    assert.equal(live(hosts[4]).textContent, "n is 1");
    assert.deepEqual(hosts.map((host) => host.classes.has("cg-mounted")), [false, false, false, false, true]);
    for (const [k, why] of [/JSON/, /missing\.js is not there/, /no luck/, /state is not in the page/].entries()) {
      assert.match(note(hosts[k]).textContent, why);
    }
  });

  test("what is in sight comes first, the rest when the reader comes near", async () => {
    const order = /** @type {string[]} */ ([]);
    const payload = (/** @type {string} */ name) => ({ module: `${name}.js`, state: { name } });
    const hosts = ["far", "near", "farther"].map((name, k) => display(`w${k}`, payload(name)));
    const widget = { render: (/** @type {any} */ { model }) => void order.push(model.get("name")) };
    const load = mock.fn(async () => ({ default: widget }));
    /** @type {Map<any, (value?: unknown) => void>} */
    const arrive = new Map();
    const all = mountAll(pageOf(hosts), load, {
      near: (host) => host === hosts[1],
      approach: (host) => new Promise((done) => arrive.set(host, done)),
    });
    const settled = () => new Promise((done) => setTimeout(done, 5));
    await settled();
    assert.deepEqual(order, ["near"]);
    assert.equal(load.mock.callCount(), 1, "nothing is fetched for what is far away");
    arrive.get(hosts[2])?.();
    await settled();
    assert.deepEqual(order, ["near", "farther"]);
    arrive.get(hosts[0])?.();
    await all;
    assert.deepEqual(order, ["near", "farther", "far"]);
  });

  test("a model that is shown near and far is the same one", async () => {
    const hosts = [display("w1", { module: "counter.js", state: { n: 1 } }), display("w1")];
    await mountAll(pageOf(hosts), async () => counter, {
      near: (host) => host === hosts[1],
      approach: async () => {},
    });
    live(hosts[0]).press();
    assert.deepEqual(hosts.map((host) => live(host).textContent), ["n is 2", "n is 2"]);
  });

  /** @param {() => Promise<any>} tools @param {object} [abilities] */
  async function mountWith(tools, abilities = { kept: ["n"], edited: [] }) {
    const seen = /** @type {any[]} */ ([]);
    const render = (/** @type {any} */ context) => void seen.push([context.model.get("n"), context]);
    const host = display("w1", { module: "m.js", state: { n: 1 } });
    await mountAll(pageOf([host]), async () => ({ default: { abilities, render } }), { ...atOnce, tools });
    return { host, seen };
  }

  test("a widget is told its name, the page's own state and the way to the shared tools", async () => {
    const tools = mock.fn(async () => ({}));
    const { seen } = await mountWith(tools);
    const [[, context]] = seen;
    assert.deepEqual(context.page, { name: "w1", base: { n: 1 } });
    assert.equal(context.tools, tools);
    assert.equal(tools.mock.callCount(), 0, "nothing is fetched that nobody asked for");
  });

  describe("with a link to a widget's state", () => {
    beforeEach(() => Object.assign(globalThis, { location: { hash: "#cg1&w1.n=5" } }));
    afterEach(() => Reflect.deleteProperty(globalThis, "location"));

    test("the state is there before anything is drawn", async () => {
      const restore = (/** @type {any} */ model) => (model.set("n", 5), "");
      const { host, seen } = await mountWith(async () => ({ restore }));
      assert.equal(seen[0][0], 5);
      assert.equal(seen[0][1].page.base.n, 1, "and the page's own is still known");
      assert.equal(note(host), undefined);
    });

    test("one that cannot be followed is answered in a sentence", async () => {
      const { host, seen } = await mountWith(async () => ({ restore: () => "broken, sorry" }));
      assert.equal(seen[0][0], 1);
      assert.equal(note(host).textContent, "broken, sorry");
    });

    test("a widget far down the page starts at once when the reader has come for it", async () => {
      Object.assign(globalThis, { location: { hash: "#cg1&w2.n=5" } });
      const hosts = ["w1", "w2", "w22"].map((name) => display(name, { module: "m.js", state: {} }));
      const load = async () => ({ default: { render() {} } });
      const never = () => new Promise(() => {});
      void mountAll(pageOf(hosts), load, { near: () => false, approach: never });
      await new Promise((done) => setTimeout(done, 5));
      assert.deepEqual(hosts.map((host) => host.classes.has("cg-mounted")), [false, true, false]);
    });

    test("without the tools the widget starts all the same", async () => {
      const { host } = await mountWith(() => Promise.reject(new Error("gone")));
      assert.ok(host.classes.has("cg-mounted"));
    });

    test("a widget that keeps nothing in links is left alone", async () => {
      const restore = mock.fn();
      const host = display("w1", { module: "m.js", state: { n: 1 } });
      const load = async () => ({ default: { render() {} } });
      const tools = /** @type {any} */ (async () => ({ restore }));
      await mountAll(pageOf([host]), load, { ...atOnce, tools });
      assert.equal(restore.mock.callCount(), 0);
    });
  });
});
