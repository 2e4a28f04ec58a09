// @ts-check
// What a widget does that shows a convolution step by step: follows its model, takes wishes and
// edits, plays.  What it draws is its own.

import { GeometryError, geometryOf, ravel, refit, shapes } from "./conv.js";
import { attribute, fill, freshName, h, say } from "./dom.js";
import { KnobForm, copySpec } from "./knobs.js";
import { keysHelp } from "./layout.js";
import { OPERANDS, product } from "./places.js";
import { advance, clamp, playhead, press, resize, seek } from "./player.js";
import { drawControls, transport } from "./transport.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Spec} Spec */
/** @typedef {import("./places.js").Operand} Operand */
/** @typedef {import("./player.js").Head} Head */
/** @typedef {{shape: number[], data: number[]}} Tensor */
/** @typedef {{geometry: Spec} & Record<Operand, Tensor>} Numbers */
/** @typedef {Numbers & {letter: string, title: string, lesson: string}} Preset */
/** @typedef {{geometry: Geometry, arrays: Record<Operand, Tensor>, options: Record<string, any>}} State */
/**
 * What anywidget and the static page's loader hand over.
 * @typedef {object} Model
 * @property {(name: string) => any} get
 * @property {(name: string, value: any) => void} set
 * @property {(event: string, callback: () => void) => void} on
 * @property {(event: string, callback: () => void) => void} off
 * @property {() => void} save_changes
 */
/**
 * What a widget puts into the common frame.
 * @typedef {object} Parts
 * @property {string} name  of the region
 * @property {string} kind  CSS class
 * @property {string} unit  what a step is called: "steps"
 * @property {Node[]} above  choices
 * @property {[string, Node]} stage  what it is called, and what is in it
 * @property {Node[]} below
 * @property {[string, string][]} keys  besides those of every player
 */
/** What the view writes into. @typedef {{root: HTMLElement, presets: HTMLElement, spelled: HTMLElement, live: HTMLElement, message: HTMLElement, form: KnobForm, controls: import("./transport.js").Transport}} Frame */

/** The arrays of an update that has not arrived as a whole yet. */
class Unfinished extends Error {}

export class Explorer {
  /** @type {(() => void)[]} what undoes everything on the way out */
  #undo = [];
  /** @type {Numbers} */
  #start;
  #raf = 0;
  #clock = 0;
  #saved = 0;
  #spoken = 0;
  #scheduled = false;

  /**
   * @param {Model} model
   * @param {string} who  how its sentences call the widget: "the player"
   * @param {string[]} options  traits besides geometry, arrays, step and speed
   */
  constructor(model, who, options) {
    this.model = model;
    this.who = who;
    this.names = options;
    this.state = this.#read();
    this.#start = snapshot(this.state);
    this.head = playhead(this.count(this.state), model.get("step"), model.get("speed"));
    /** @type {Frame} */
    this.ui = /** @type {any} */ (null);
  }

  // ---- what each widget says for itself ------------------------------------------------------

  /** How many steps there are. @param {State} _state @returns {number} */
  count(_state) {
    return 0;
  }

  /** The step at which something is shown first. @param {State} _state @returns {number} */
  first(_state) {
    return 0;
  }

  draw() {}

  /** Another step, or other sizes: what somebody looks at may be gone. @param {boolean} _resized */
  forget(_resized) {}

  // ---- coming and going ----------------------------------------------------------------------

  /** Examples, choices, the stage, the step in words, controls, knobs, keys. @param {Parts} parts @returns {Frame} */
  #frame({ name, kind, unit, above, stage, below, keys }) {
    const presets = h("span", { class: "cg-examples" });
    const spelled = h("p", { class: "cg-spelled" });
    const live = h("div", { class: "cg-hidden", role: "status", "aria-live": "polite" });
    const message = h("p", { class: "cg-message", role: "alert", hidden: true });
    const form = new KnobForm(this.state.geometry, this.guard((wish) => this.#wish(wish)));
    const controls = transport(
      {
        act: this.guard((action) => this.move(action(this.head))),
        speed: this.guard((speed) => this.send({ speed })),
      },
      unit,
    );
    const root = h(
      "section",
      {
        class: `cg cg-player ${kind}`,
        "aria-label": freshName(name),
        onkeydown: this.guard((event) => this.key(event)),
      },
      h(
        "div",
        { class: "cg-top" },
        h(
          "div",
          { class: "cg-choice", role: "group", "aria-label": "running examples" },
          h("span", { class: "cg-legend", "aria-hidden": "true" }, "example"),
          presets,
        ),
      ),
      h("div", { class: "cg-top" }, ...above),
      h(
        "div",
        {
          class: "cg-stage",
          tabindex: 0,
          role: "group",
          "aria-label": `${stage[0]}; space plays, arrow keys step`,
        },
        stage[1],
      ),
      h("div", { class: "cg-bottom" }, spelled, live, controls.el),
      message,
      ...below,
      h(
        "div",
        { class: "cg-more" },
        h("details", { class: "cg-knobs" }, h("summary", {}, "change the convolution"), form.el),
        keysHelp(keys),
      ),
    );
    return { root, presets, spelled, live, message, form, controls };
  }

  /** @param {HTMLElement} el @param {Parts} parts */
  mount(el, parts) {
    this.ui = this.#frame(parts);
    const { root } = this.ui;
    el.append(root);
    this.#undo.push(() => root.remove());
    this.redraw();
    // one update of several traits fires one event for each: draw once, when all have arrived
    const schedule = () => {
      if (this.#scheduled) return;
      this.#scheduled = true;
      queueMicrotask(
        this.guard(() => {
          this.#scheduled = false;
          this.#follow();
        }),
      );
    };
    for (const name of ["geometry", ...OPERANDS, "step", "speed", "complaint", ...this.names]) {
      this.model.on(`change:${name}`, schedule);
      this.#undo.push(() => this.model.off(`change:${name}`, schedule));
    }
  }

  destroy() {
    cancelAnimationFrame(this.#raf);
    for (const undo of this.#undo.splice(0)) undo();
  }

  /**
   * A broken step says so in the widget and breaks nothing else.
   * @template {any[]} Args
   * @param {(...args: Args) => void} action
   * @returns {(...args: Args) => void}
   */
  guard(action) {
    return (...args) => {
      try {
        action(...args);
      } catch (error) {
        this.head = { ...this.head, playing: false };
        const known = error instanceof GeometryError;
        this.complain(known ? error.message : `This step went wrong: ${error}`);
        if (!known) console.warn("convgrad:", error);
      }
    };
  }

  // ---- model → state -------------------------------------------------------------------------

  /** @returns {State} */
  #read() {
    const geometry = geometryOf(this.model.get("geometry"));
    const needed = shapes(geometry);
    const arrays = /** @type {Record<Operand, Tensor>} */ ({});
    for (const name of OPERANDS) {
      arrays[name] = this.model.get(name);
      if (`${arrays[name].shape}` !== `${needed[name]}`) throw new Unfinished(name);
    }
    const options = Object.fromEntries(this.names.map((name) => [name, this.model.get(name)]));
    return { geometry, arrays, options };
  }

  #follow() {
    let next;
    try {
      next = this.#read();
    } catch (error) {
      if (error instanceof Unfinished) return; // the rest of the arrays is on its way
      throw error;
    }
    const before = this.state;
    this.state = next;
    const resized = JSON.stringify(next.geometry) !== JSON.stringify(before.geometry);
    const other = this.names.some((name) => next.options[name] !== before.options[name]);
    const edited = OPERANDS.some((name) => next.arrays[name] !== before.arrays[name]);
    // what is equal stays the same object, so that what was computed from it can be kept
    if (!resized) next.geometry = before.geometry;
    if (!edited) next.arrays = before.arrays;
    if (resized || other) this.head = resize(this.head, this.count(next));
    if (resized) this.ui.form.show(next.geometry);
    const [step, speed] = [this.model.get("step"), this.model.get("speed")];
    const moved = step !== this.head.step || speed !== this.head.speed;
    if (moved) this.head = { ...this.head, step: clamp(step, 0, this.head.length), speed };
    const complaint = this.model.get("complaint");
    if (complaint) {
      this.complain(complaint);
      this.ui.form.show(next.geometry);
    }
    if (!(resized || other || moved || edited)) return; // what this view has just done itself
    if (resized || other || moved) this.forget(resized || other);
    this.redraw();
  }

  // ---- state → model -------------------------------------------------------------------------

  /** @param {Record<string, any>} changes */
  send(changes) {
    this.complain("");
    if (this.model.get("complaint")) this.model.set("complaint", "");
    for (const [name, value] of Object.entries(changes)) this.model.set(name, value);
    this.model.save_changes();
    this.#follow();
  }

  /** @param {Operand} name @param {number[]} index @param {number} value */
  editNumber(name, index, value) {
    const { shape, data } = this.state.arrays[name];
    const copy = [...data];
    copy[ravel(index, shape)] = value;
    this.send({ [name]: { shape, data: copy } });
  }

  /** A wish of the knobs: taken when such a convolution exists, else explained. @param {Spec} wish */
  #wish(wish) {
    let needed;
    try {
      needed = shapes(small(geometryOf(wish), this.model.get("limits"), this.who));
    } catch (error) {
      if (!(error instanceof GeometryError)) throw error;
      this.ui.form.refuse(error.message, this.state.geometry);
      return;
    }
    const arrays = Object.fromEntries(
      OPERANDS.map((name) => [name, refit(this.state.arrays[name], needed[name])]),
    );
    this.restart({ geometry: copySpec(wish), ...arrays });
    this.ui.form.show(wish);
  }

  /** Something else is shown, from the step where the widget begins. @param {Record<string, any>} changes */
  restart(changes) {
    const options = Object.fromEntries(
      this.names.map((name) => [name, changes[name] ?? this.state.options[name]]),
    );
    const geometry = changes.geometry ? geometryOf(changes.geometry) : this.state.geometry;
    const step = this.first({ ...this.state, geometry, options });
    this.head = seek(this.head, 0);
    this.send({ ...changes, step });
  }

  /** @param {Numbers} numbers */
  #load({ geometry, x, weight, grad_output }) {
    this.restart({ geometry, x, weight, grad_output });
    this.ui.form.show(geometry);
  }

  // ---- the head ------------------------------------------------------------------------------

  /** @param {Head} head */
  move(head) {
    const stepped = head.step !== this.head.step;
    const started = head.playing && !this.head.playing;
    const stopped = !head.playing && this.head.playing;
    this.head = head;
    if (stepped) this.model.set("step", head.step);
    const now = performance.now();
    if (!head.playing || now - this.#saved > 250) {
      this.#saved = now;
      if (stepped || stopped) this.model.save_changes();
    }
    if (stepped || started) this.forget(false);
    this.redraw();
    if (started) {
      this.#clock = now;
      this.#wait();
    }
    this.#speak(stopped || !head.playing);
  }

  #wait() {
    this.#raf = requestAnimationFrame(
      this.guard((time) => {
        if (!this.head.playing) return;
        const passed = clamp(time - this.#clock, 0, 1000); // a hidden page has no frames
        this.#clock = time;
        const head = advance(this.head, passed);
        if (head.step !== this.head.step || !head.playing) this.move(head);
        else this.head = head;
        if (this.head.playing) this.#wait();
      }),
    );
  }

  /** The step read aloud: at once when stepping by hand, every other second while playing. @param {boolean} atOnce */
  #speak(atOnce) {
    const now = performance.now();
    if (!atOnce && now - this.#spoken < 2000) return;
    this.#spoken = now;
    say(this.ui.live, this.ui.spelled.textContent ?? "");
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const at = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (at.closest("input, select, textarea, summary")) return;
    if (event.key === " " && at.closest("button")) return; // space presses the button
    const head = press(this.head, event.key);
    if (!head) return;
    event.preventDefault();
    event.stopPropagation(); // in a notebook the same keys move between cells
    this.move(head);
  }

  /** @param {string} sentence */
  complain(sentence) {
    say(this.ui.message, sentence);
    this.ui.message.hidden = !sentence;
  }

  // ---- drawing -------------------------------------------------------------------------------

  redraw() {
    this.#drawPresets();
    drawControls(this.ui.controls, this.head);
    this.ui.root.classList.toggle("cg-fast", this.head.playing && this.head.speed > 8);
    this.draw();
  }

  #drawPresets() {
    const presets = /** @type {Preset[]} */ (this.model.get("presets") ?? []);
    const box = this.ui.presets;
    if (box.childElementCount !== presets.length + 1) {
      /** @param {string} text @param {string} title @param {() => void} action */
      const button = (text, title, action) =>
        h(
          "button",
          { title, "aria-label": `${text}: ${title}`, onclick: this.guard(action) },
          text,
        );
      fill(
        box,
        ...presets.map((preset) =>
          button(preset.letter, `${preset.title}. ${preset.lesson}`, () => this.#load(preset)),
        ),
        button("reset", "back to the sizes and numbers at the beginning", () =>
          this.#load(this.#start),
        ),
      );
    }
    presets.forEach((preset, k) =>
      attribute(box.children[k], "aria-pressed", `${sameNumbers(preset, this.state)}`),
    );
  }
}

/**
 * Refuses what would be nothing to draw, or too much.
 * @param {Geometry} g @param {{cells: number, products: number} | undefined} limits @param {string} who
 */
export function small(g, limits, who) {
  if (!g.N) {
    throw new GeometryError(`the batch is empty, N = 0: ${who} needs at least one image`);
  }
  const cells = Math.max(...Object.values(shapes(g)).map(product));
  const products = product(shapes(g).grad_output) * g.CG * g.KH * g.KW;
  if (limits && (cells > limits.cells || products > limits.products)) {
    const [some, most] = [products, limits.products].map((k) => k.toLocaleString("en"));
    const [large, largest] = [cells, limits.cells].map((k) => k.toLocaleString("en"));
    throw new GeometryError(
      `this has ${some} products and arrays of up to ${large} cells: ${who} draws up to ` +
        `${most} products and ${largest} cells; take fewer channels, or a smaller image`,
    );
  }
  return g;
}

/** @param {State} state @returns {Numbers} */
const snapshot = ({ geometry, arrays }) => ({ geometry: copySpec(geometry), ...arrays });

/** @param {Numbers} preset @param {State} state */
function sameNumbers(preset, { geometry, arrays }) {
  if (JSON.stringify(copySpec(preset.geometry)) !== JSON.stringify(copySpec(geometry)))
    return false;
  return OPERANDS.every((name) =>
    preset[name].data.every((value, k) => value === arrays[name].data[k]),
  );
}

/**
 * What anywidget and the loader call: draws the widget, and says it in words where that fails.
 * @param {string} who @param {(context: {model: Model, el: HTMLElement}) => {destroy: () => void}} make
 */
export const widget = (who, make) => ({
  /** @param {{model: Model, el: HTMLElement}} context */
  render(context) {
    try {
      const view = make(context);
      return () => view.destroy();
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      const { el } = context;
      el.append(h("p", { class: "cg cg-message", role: "alert" }, `${who} could not start: ${words}`));
      return () => el.replaceChildren();
    }
  },
});
