// @ts-check
// Widgets in a page without a kernel: what JupyterLab and anywidget do, as little as is needed.
//
// The page holds a <div class="cg-widget" data-model="w1"> for every display of a widget: in it the
// fallback and, at a model's first display, a script with {module, state}.  Several displays of one
// model share it, so they move together.  Each widget starts by itself: one that fails keeps its
// fallback and says so, and the others never notice.

/** @typedef {(...values: any[]) => void} Listener */
/** @typedef {{name: string, callback: Listener, owner: unknown}} Subscription */
/** @typedef {{module: string, state: Record<string, unknown>}} Payload */
/** @typedef {(context: any) => any} Hook */
/** @typedef {{initialize?: Hook, render?: Hook, abilities?: import("./equip.js").Abilities}} Widget what a module exports, as anywidget has it */
/** @typedef {() => Promise<typeof import("./tools.js")>} Tools the way to the tools that all widgets share */
/** @typedef {{name: string, base: Record<string, unknown>}} Part a widget's name in the page, and what the page was made with */
/** @typedef {{tools?: Tools, page?: Part, word?: string}} Extras what this page adds; a word where a link was not followed */

/**
 * Equal as Backbone, hence JupyterLab, would have it: setting an equal value is no change.
 * @param {unknown} a
 * @param {unknown} b
 */
export function same(a, b) {
  if (Object.is(a, b)) return true;
  const objects = typeof a === "object" && typeof b === "object";
  return objects && JSON.stringify(a) === JSON.stringify(b);
}

/** The state of one widget, and who wants to hear of its changes. */
export class Model {
  /** @type {Subscription[]} */
  #subscriptions = [];
  /** @type {Map<string, unknown>} */
  #state;

  /** @param {Record<string, unknown>} state */
  constructor(state) {
    this.#state = new Map(Object.entries(state));
  }

  /**
   * The face that one view sees.  Its `off` leaves the other views' listeners alone.
   * @param {unknown} owner
   */
  face(owner) {
    return {
      /** @param {string} name */
      get: (name) => this.#state.get(name),
      /** @param {string | Record<string, unknown>} name @param {unknown} [value] */
      set: (name, value) => this.#set(typeof name === "string" ? { [name]: value } : name),
      /** @param {string} names @param {Listener} callback */
      on: (names, callback) => {
        for (const name of names.split(" ")) this.#subscriptions.push({ name, callback, owner });
      },
      /** @param {string | null} [names] @param {Listener | null} [callback] */
      off: (names = null, callback = null) => this.#drop(owner, names, callback),
      save_changes() {}, // there is no kernel to hear of it
      send() {},
    };
  }

  /** @param {Record<string, unknown>} values */
  #set(values) {
    const changed = Object.keys(values).filter((name) => !same(this.#state.get(name), values[name]));
    for (const name of changed) this.#state.set(name, values[name]);
    for (const name of changed) this.#emit(`change:${name}`, values[name]);
    if (changed.length) this.#emit("change");
  }

  /** @param {string} name @param {...unknown} values */
  #emit(name, ...values) {
    for (const { callback } of this.#subscriptions.filter((each) => each.name === name)) {
      try {
        callback(this, ...values);
      } catch (error) {
        console.error(error); // the other views still hear of the change
      }
    }
  }

  /** @param {unknown} owner @param {string | null} names @param {Listener | null} callback */
  #drop(owner, names, callback) {
    const wanted = names?.split(" ");
    this.#subscriptions = this.#subscriptions.filter(
      (each) =>
        each.owner !== owner ||
        (wanted && !wanted.includes(each.name)) ||
        (callback && each.callback !== callback),
    );
  }
}

/** What anywidget offers for calls to Python. */
const experimental = {
  invoke: () => Promise.reject(new Error("this page has no kernel to call")),
};

/**
 * The widget of a module, started once for its model.
 * @param {Promise<{default?: Widget | (() => Widget | Promise<Widget>)}>} module
 * @param {Model} model
 * @returns {Promise<Widget>}
 */
export async function widgetOf(module, model) {
  const exported = (await module).default;
  const widget = typeof exported === "function" ? await exported() : exported;
  if (!widget) throw new Error("its module exports no widget");
  const { signal } = new AbortController(); // a page's models live as long as the page
  await widget.initialize?.({ model: model.face(widget), experimental, signal });
  return widget;
}

/**
 * Show a widget in place of its fallback; gives back what takes it away again.
 * @param {Element} host a .cg-widget
 * @param {Promise<Widget>} started
 * @param {Model} model
 * @param {Extras} [extras]
 * @returns {Promise<() => void>}
 */
export async function mount(host, started, model, extras = {}) {
  const el = host.ownerDocument.createElement("div");
  const controller = new AbortController();
  const face = model.face(el);
  /** @type {unknown} */
  let cleanup;
  const unmount = () => {
    controller.abort();
    face.off();
    el.remove();
    host.classList.remove("cg-mounted");
    if (typeof cleanup === "function") cleanup();
  };
  el.className = "cg-live";
  try {
    const widget = await started;
    host.prepend(el); // in the page before it is drawn, so that it can measure itself
    const { tools, page } = extras;
    const context = { model: face, el, experimental, signal: controller.signal, tools, page };
    cleanup = await widget.render?.(context);
    const held = host.contains(host.ownerDocument.activeElement);
    // only now: where drawing is at once, no frame is painted with both or with neither
    host.classList.add("cg-mounted");
    // who came by the keyboard goes on inside, and not behind it
    if (held) /** @type {HTMLElement | null} */ (el.querySelector(FIRST))?.focus({ preventScroll: true });
    if (extras.word) note(host, extras.word);
  } catch (error) {
    unmount();
    apologise(host, error);
  }
  host.removeAttribute("tabindex");
  return unmount;
}

/** What can be gone to in a widget. */
const FIRST = 'button, input, select, summary, [tabindex="0"]';

/** @param {Element} host @param {unknown} error */
function apologise(host, error) {
  console.error(error);
  const reason = error instanceof Error ? error.message : String(error);
  note(host, `This stands still, because it could not be started (${reason}).`);
}

/** @param {Element} host @param {string} sentence */
function note(host, sentence) {
  const line = host.ownerDocument.createElement("p");
  line.className = "cg-note";
  line.textContent = sentence;
  host.append(line);
}

/**
 * A model from the script in its display; its module is fetched when the first display is shown.
 * @param {Element} script
 * @param {(module: string) => Promise<any>} load
 * @param {string} name
 * @param {Tools} [tools]
 */
function start(script, load, name, tools) {
  const model = new Model({});
  /** @type {Extras} */
  const extras = { tools };
  /** @type {Promise<Widget> | undefined} */
  let started;
  const read = Promise.resolve().then(() => {
    /** @type {Payload} */
    const { module, state } = JSON.parse(String(script.textContent));
    model.face(script).set(state);
    extras.page = { name, base: state };
    return module;
  });
  read.catch(() => {}); // mount() says it, at every display
  const begin = async () => {
    const widget = await widgetOf(load(await read), model);
    // before it is drawn, so that nothing jumps
    if (tools && extras.page && widget.abilities && FRAGMENT.test(address())) {
      const { restore } = await tools().catch(() => ({ restore: () => "" }));
      extras.word = restore(model.face(script), extras.page, widget.abilities);
    }
    return widget;
  };
  const widget = () => (started ??= begin());
  return { model, widget, extras };
}

/** A page's address that says how its widgets stand; address.js reads it. */
const FRAGMENT = /^#cg\d/;
const address = () => globalThis.location?.hash ?? "";

/** Whether the reader has come for this widget. @param {Element} host */
const isMeant = (host) =>
  FRAGMENT.test(address()) && address().includes(`&${host.getAttribute("data-model")}.`);

/**
 * Mount every widget of the page: those in sight at once, the others when the reader comes near,
 * so that nobody waits for what nobody looks at.
 * @param {ParentNode} page
 * @param {(module: string) => Promise<any>} load
 * @param {{near?: (host: Element) => boolean, approach?: (host: Element) => Promise<unknown>, tools?: Tools}} [how]
 */
export async function mountAll(page, load, { near = inSight, approach = comesNear, tools } = {}) {
  /** @type {Map<string | null, {model: Model, widget: () => Promise<Widget>, extras: Extras}>} */
  const models = new Map();
  const hosts = [...page.querySelectorAll(".cg-widget")];
  for (const host of hosts) {
    const script = host.querySelector('script[type="application/json"]');
    const name = String(host.getAttribute("data-model"));
    if (script) models.set(name, start(script, load, name, tools));
  }
  const show = (/** @type {Element} */ host) => {
    const known = models.get(host.getAttribute("data-model"));
    const lost = () => Promise.reject(new Error("its state is not in the page"));
    return mount(host, (known?.widget ?? lost)(), known?.model ?? new Model({}), known?.extras);
  };
  const first = hosts.filter((host) => near(host) || isMeant(host));
  const others = hosts.filter((each) => !first.includes(each));
  // Tab does not pass over them: who gets there comes near
  for (const host of others) host.setAttribute("tabindex", "0");
  await Promise.all(first.map(show));
  await Promise.all(others.map((host) => approach(host).then(() => show(host))));
}

/** Within one screen of what the reader sees. @param {Element} host */
function inSight(host) {
  const { top, bottom } = host.getBoundingClientRect();
  return top < 2 * innerHeight && bottom > -innerHeight;
}

/** When it is within one screen of what the reader sees; old browsers do not wait. @param {Element} host */
const comesNear = (host) =>
  new Promise((done) => {
    if (!("IntersectionObserver" in globalThis)) return setTimeout(done, 1);
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        done(undefined);
      },
      { rootMargin: "100% 0px" },
    );
    observer.observe(host);
  });
