// @ts-check
// What a widget does that shows a convolution step by step: follows its model, takes wishes and
// edits, plays.  What it draws is its own.

import { geometryOf, ravel, shapes } from "./conv.js";
import { attribute, fill, h, named, say } from "./dom.js";
import { copySpec } from "./knobs.js";
import { OPERANDS } from "./places.js";
import { clamp, playhead, resize, seek } from "./player.js";
import { UNDO_KEYS, drawTransport, keysHelp, transport } from "./transport.js";
import { PlayedView, Unfinished } from "./view.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Spec} Spec */
/** @typedef {import("./places.js").Operand} Operand */
/** @typedef {import("./view.js").Model} Model */
/** @typedef {{shape: number[], data: number[]}} Tensor */
/** @typedef {{geometry: Spec} & Record<Operand, Tensor>} Numbers */
/** @typedef {Numbers & {letter: string, title: string, lesson: string}} Preset */
/** @typedef {{geometry: Geometry, arrays: Record<Operand, Tensor>, options: Record<string, any>}} State */
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
/** What the view writes into. @typedef {{root: HTMLElement, stage: HTMLElement, presets: HTMLElement, spelled: HTMLElement, live: HTMLElement, knobs: HTMLElement, controls: import("./transport.js").Transport}} Frame */

/**
 * The state of a model.
 * @param {Model} model @param {string[]} names  of its options
 * @returns {State}
 */
function read(model, names) {
  const geometry = geometryOf(model.get("geometry"));
  const needed = shapes(geometry);
  const arrays = /** @type {Record<Operand, Tensor>} */ ({});
  for (const name of OPERANDS) {
    arrays[name] = model.get(name);
    if (`${arrays[name].shape}` !== `${needed[name]}`) throw new Unfinished(name);
  }
  const options = Object.fromEntries(names.map((name) => [name, model.get(name)]));
  return { geometry, arrays, options };
}

/** What undo brings back, and what a link keeps besides the options. */
export const EDITED = ["geometry", ...OPERANDS];
export const KEPT = [...EDITED, "step"];

export class OperandsView extends PlayedView {
  /** @type {Numbers} */
  #start;
  #who;
  #names;

  /**
   * @param {Model} model
   * @param {string} who  how its sentences call the widget: "player"
   * @param {string[]} names  of the traits besides geometry, arrays, step and speed
   */
  constructor(model, who, names) {
    super(model, playhead(0));
    this.#who = who;
    this.#names = names;
    this.state = read(model, names);
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

  /** The step at which something is shown first: all is there, to be looked at. @param {State} state */
  first(state) {
    return this.count(state);
  }

  /** Another step, or other sizes: what somebody looks at may be gone. @param {boolean} _resized */
  forget(_resized) {}

  /** The widget's own part. */
  paint() {}

  // ---- coming and going ----------------------------------------------------------------------

  /** Examples, choices, the stage, the step in words, controls, knobs, keys. @param {Parts} parts @returns {Frame} */
  #frame({ name, kind, unit, above, stage, below, keys }) {
    const presets = h("span", { class: "cg-examples" });
    const spelled = h("p", { class: "cg-spelled" });
    const live = h("div", { class: "cg-hidden", role: "status", "aria-live": "polite" });
    const knobs = h("details", { class: "cg-knobs" }, h("summary", {}, "change the convolution"));
    const controls = transport(
      {
        act: this.guard((action) => this.move(action(this.head))),
        speed: this.guard((speed) => this.send({ speed })),
      },
      unit,
    );
    const stageEl = h(
      "div",
      {
        class: "cg-stage",
        tabindex: 0,
        role: "group",
        "aria-label": `${stage[0]}; space plays, arrow keys step`,
      },
      stage[1],
    );
    const root = h(
      "section",
      {
        class: `cg cg-player ${kind}`,
        onkeydown: this.guard((event) => this.playKey(event)),
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
      stageEl,
      h("div", { class: "cg-bottom" }, spelled, live, controls.el),
      this.message,
      ...below,
      h(
        "div",
        { class: "cg-more" },
        knobs,
        keysHelp([...keys, UNDO_KEYS]),
        this.tools,
      ),
    );
    named(root, name);
    return { root, stage: stageEl, presets, spelled, live, knobs, controls };
  }

  /** @param {HTMLElement} el @param {Parts} parts */
  show(el, parts) {
    this.ui = this.#frame(parts);
    this.draw();
    const traits = [...KEPT, "speed", "complaint", ...this.#names];
    this.mount(el, this.ui.root, traits);
  }

  /** @param {typeof import("./tools.js")} tools */
  furnish({ knobs }) {
    this.form = knobs(
      () => ({ ...this.state, limits: this.model.get("limits"), drawer: this.#who }),
      (changes) => this.restart(changes),
      (action) => this.guard(action),
    );
    this.ui.knobs.append(this.form.el);
  }

  // ---- model → state -------------------------------------------------------------------------

  follow() {
    const next = read(this.model, this.#names);
    const before = this.state;
    this.state = next;
    const resized = JSON.stringify(next.geometry) !== JSON.stringify(before.geometry);
    const other = this.#names.some((name) => next.options[name] !== before.options[name]);
    const edited = OPERANDS.some((name) => next.arrays[name] !== before.arrays[name]);
    // what is equal stays the same object, so that what was computed from it can be kept
    if (!resized) next.geometry = before.geometry;
    if (!edited) next.arrays = before.arrays;
    const [given, speed] = [this.model.get("step"), this.model.get("speed")];
    let step = given;
    if (resized || other) {
      // what was complete stays complete, as when a knob is taken back
      const complete = this.head.step === this.head.length && given === this.head.step;
      if (complete && this.model.isOurs?.()) step = Math.max(step, this.first(next));
      this.head = resize(this.head, this.count(next));
    }
    step = clamp(step, 0, this.head.length);
    if (resized) this.form?.show(next.geometry);
    const moved = step !== this.head.step || speed !== this.head.speed;
    if (moved) this.head = { ...this.head, step, speed };
    this.settle({ step });
    const complaint = this.model.get("complaint");
    if (complaint) {
      this.complain(complaint);
      this.form?.show(next.geometry);
    }
    if (!(resized || other || moved || edited)) return; // what this view has just done itself
    if (resized || other || moved) this.forget(resized || other);
    this.draw();
  }

  // ---- state → model -------------------------------------------------------------------------

  /** @param {Operand} name @param {number[]} index @param {number} value */
  editNumber(name, index, value) {
    const { shape, data } = this.state.arrays[name];
    const copy = [...data];
    copy[ravel(index, shape)] = value;
    this.send({ [name]: { shape, data: copy } });
  }

  /** Something else is shown, from the step where the widget begins. @param {Record<string, any>} changes */
  restart(changes) {
    const options = Object.fromEntries(
      this.#names.map((name) => [name, changes[name] ?? this.state.options[name]]),
    );
    const geometry = changes.geometry ? geometryOf(changes.geometry) : this.state.geometry;
    const step = this.first({ ...this.state, geometry, options });
    this.head = seek(this.head, 0);
    this.send({ ...changes, step });
    this.speak();
  }

  /** @param {Numbers} numbers */
  #load({ geometry, x, weight, grad_output }) {
    this.restart({ geometry, x, weight, grad_output });
    this.form?.show(geometry);
  }

  // ---- playing -------------------------------------------------------------------------------

  leave() {
    this.forget(false);
  }

  speak() {
    say(this.ui.live, this.ui.spelled.textContent ?? "");
  }

  // ---- drawing -------------------------------------------------------------------------------

  draw() {
    this.#drawPresets();
    drawTransport(this.ui.controls, this.head);
    this.ui.root.classList.toggle("cg-fast", this.head.playing && this.head.speed > 8);
    this.paint();
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
        button("reset", "back to how it began", () =>
          this.#load(this.#start),
        ),
      );
    }
    presets.forEach((preset, k) =>
      attribute(box.children[k], "aria-pressed", `${sameNumbers(preset, this.state)}`),
    );
  }
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
