// @ts-check
// ContributionPlayer in the page: the model's numbers as grids, and every product on its way.

import { geometryOf, ledger, ravel, shapes } from "./conv.js";
import { attribute, fill, h, say } from "./dom.js";
import { draw, drawFormula, fall } from "./drawing.js";
import { copySpec } from "./knobs.js";
import { ORDERS, TARGETS, layout } from "./layout.js";
import { OPERANDS, slicesOf } from "./places.js";
import { clamp, playhead, resize, seek } from "./player.js";
import { PlayedView, Unfinished, widget } from "./view.js";
import { GRADIENT } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Ledger} Ledger */
/** @typedef {import("./conv.js").Spec} Spec */
/** @typedef {import("./conv.js").Target} Target */
/** @typedef {import("./conv.js").Order} Order */
/** @typedef {{shape: number[], data: number[]}} Tensor */
/** @typedef {import("./places.js").Operand} Operand */
/** @typedef {import("./view.js").Model} Model */
/** @typedef {{letter: string, title: string, lesson: string, geometry: Spec} & Record<Operand, Tensor>} Preset */
/**
 * Everything that is drawn; the head (where the step is) lives beside it.
 * @typedef {object} State
 * @property {Geometry} geometry
 * @property {Record<Operand, Tensor>} arrays
 * @property {Target} target
 * @property {Order} order
 * @property {boolean} includePadding
 */

/** What undo brings back, what a link keeps, and what is drawn again when it changes. */
const EDITED = ["geometry", ...OPERANDS];
const KEPT = [...EDITED, "target", "order", "step", "include_padding"];
const SYNCED = [...KEPT, "speed", "complaint"];

class PlayerView extends PlayedView {
  /** @param {Model} model @param {HTMLElement} el */
  constructor(model, el) {
    super(model, playhead(0));
    this.state = this.#read();
    this.list = listOf(this.state);
    this.head = playhead(this.list.length, model.get("step"), model.get("speed"));
    this.start = snapshot(this.state);
    /**
     * Slices that somebody chose to look at, until the next step.
     * @type {Partial<Record<import("./places.js").Place, number[]>>}
     */
    this.pinned = {};
    /** @type {number[] | null} the gradient cell whose formula is open */
    this.chosen = null;
    this.flight = 0;
    this.undo.push(() => cancelAnimationFrame(this.flight));

    this.ui = layout({
      choose: this.guard((trait, value) => this.#restart({ [trait]: value })),
      padding: this.guard((on) => this.#restart({ include_padding: on })),
      edit: this.guard((name, row, col, value) =>
        this.#editNumber(name, [...this.#moment().shown[name], row, col], value),
      ),
      refuse: (sentence) => this.complain(sentence),
      pick: this.guard((row, col) => this.#choose(row, col)),
      pin: this.guard((place, slice) => this.#pin(place, slice)),
      act: this.guard((action) => this.move(action(this.head))),
      speed: this.guard((speed) => this.send({ speed })),
      key: this.guard((event) => this.#key(event)),
      message: this.message,
      tools: this.tools,
    });
    this.mount(el, this.ui.root, SYNCED);
    this.draw();
  }

  /** @param {typeof import("./tools.js")} tools */
  furnish({ knobs }) {
    this.form = knobs(
      () => ({ ...this.state, limits: this.model.get("limits"), drawer: "player" }),
      (changes) => this.#restart(changes),
      (action) => this.guard(action),
    );
    this.ui.knobs.append(this.form.el);
  }

  // ---- model → state -------------------------------------------------------------------------

  /** @returns {State} */
  #read() {
    const { model } = this;
    const geometry = geometryOf(model.get("geometry"));
    const arrays = {
      x: model.get("x"),
      weight: model.get("weight"),
      grad_output: model.get("grad_output"),
    };
    const needed = shapes(geometry);
    for (const name of OPERANDS) {
      if (`${arrays[name].shape}` !== `${needed[name]}`) throw new Unfinished(name);
    }
    return {
      geometry,
      arrays,
      target: model.get("target"),
      order: model.get("order"),
      includePadding: model.get("include_padding"),
    };
  }

  follow() {
    const next = this.#read();
    const before = this.state;
    const resized = JSON.stringify(next.geometry) !== JSON.stringify(before.geometry);
    const relisted =
      resized ||
      next.target !== before.target ||
      next.order !== before.order ||
      next.includePadding !== before.includePadding;
    this.state = next;
    if (relisted) {
      this.list = listOf(next);
      this.head = resize(this.head, this.list.length);
      this.pinned = {};
      this.chosen = null;
    }
    if (resized) this.form?.show(next.geometry);
    const [step, speed] = [this.model.get("step"), this.model.get("speed")];
    const moved = step !== this.head.step || speed !== this.head.speed;
    if (moved) this.head = { ...this.head, step: clamp(step, 0, this.list.length), speed };
    const complaint = this.model.get("complaint");
    if (complaint) {
      this.complain(complaint);
      this.form?.show(next.geometry);
    }
    const edited = OPERANDS.some((name) => next.arrays[name] !== before.arrays[name]);
    if (!(relisted || moved || edited)) return; // what this view has just done itself
    this.draw();
  }

  // ---- state → model -------------------------------------------------------------------------

  /** Another list of products is played from its start. @param {Record<string, any>} changes */
  #restart(changes) {
    this.head = seek(this.head, 0);
    this.send({ ...changes, step: 0 });
    this.speak();
  }

  /** @param {Operand} name @param {number[]} index @param {number} value */
  #editNumber(name, index, value) {
    const { shape, data } = this.state.arrays[name];
    const copy = [...data];
    copy[ravel(index, shape)] = value;
    this.send({ [name]: { shape, data: copy } });
    this.speak();
  }

  /** @param {Pick<Preset, "geometry" | Operand>} preset */
  #load({ geometry, x, weight, grad_output }) {
    this.#restart({ geometry, x, weight, grad_output });
    this.form?.show(geometry);
  }

  // ---- the head ------------------------------------------------------------------------------

  leave() {
    this.pinned = {};
  }

  /** @param {boolean} next */
  arrived(next) {
    cancelAnimationFrame(this.flight);
    if (!next) return;
    // in the next frame: measuring now would make the browser lay the page out twice
    this.flight = requestAnimationFrame(this.guard(() => fall(this.ui, this.#moment())));
  }

  speak() {
    say(this.ui.live, this.ui.spelled.textContent ?? "");
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Escape" && this.chosen) this.#closeFormula();
    else this.playKey(event);
  }

  // ---- drawing -------------------------------------------------------------------------------

  /** What is to be seen now. @returns {import("./drawing.js").Moment} */
  #moment() {
    const { list, head, chosen } = this;
    const { arrays, includePadding } = this.state;
    const now = head.step > 0 ? list.at(head.step - 1) : null;
    const coming = now ?? (list.length ? list.at(0) : null);
    const shown = { ...slicesOf(list.geometry, list.target, coming), ...this.pinned };
    return { list, arrays, includePadding, head, now, shown, chosen };
  }

  draw() {
    const moment = this.#moment();
    this.#drawPresets();
    draw(this.ui, moment);
    drawFormula(this.ui, moment, {
      seek: this.guard((step) => this.move(seek(this.head, step))),
      close: this.guard(() => this.#closeFormula()),
    });
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
          this.#load(this.start),
        ),
      );
    }
    presets.forEach((preset, k) =>
      attribute(box.children[k], "aria-pressed", `${sameNumbers(preset, this.state)}`),
    );
  }

  /** @param {import("./places.js").Place} place @param {number[]} slice */
  #pin(place, slice) {
    this.pinned = { ...this.pinned, [place]: slice };
    this.draw();
  }

  // ---- the formula of one cell ---------------------------------------------------------------

  /** @param {number} row @param {number} col */
  #choose(row, col) {
    const { target } = this.state;
    const cell = target === "bias" ? [col] : [...this.#moment().shown.result, row, col];
    this.chosen = `${this.chosen}` === `${cell}` ? null : cell;
    this.move({ ...this.head, playing: false });
    if (this.chosen) say(this.ui.live, this.ui.formulaBox.querySelector("span")?.textContent ?? "");
  }

  #closeFormula() {
    const { chosen } = this;
    this.chosen = null;
    this.draw();
    if (!chosen) return;
    const [row, col] = chosen.length > 1 ? chosen.slice(2) : [0, chosen[0]];
    this.ui.result.grid.cell(row, col)?.focus();
  }
}

/** @param {State} state */
const listOf = ({ geometry, target, order, includePadding }) =>
  ledger(geometry, target, order, includePadding);

/** @param {State} state @returns {{geometry: Spec} & Record<Operand, Tensor>} */
const snapshot = ({ geometry, arrays }) => ({ geometry: copySpec(geometry), ...arrays });

/** @param {Preset} preset @param {State} state */
function sameNumbers(preset, { geometry, arrays }) {
  if (JSON.stringify(copySpec(preset.geometry)) !== JSON.stringify(copySpec(geometry)))
    return false;
  return OPERANDS.every((name) =>
    preset[name].data.every((value, k) => value === arrays[name].data[k]),
  );
}

/** @type {import("./equip.js").Abilities} */
const abilities = {
  kept: KEPT,
  choices: { target: TARGETS, order: ORDERS },
  edited: EDITED,
  code: (get, { program }) => program(get, GRADIENT[/** @type {Target} */ (get("target"))]),
};

export default widget("player", (model, el) => new PlayerView(model, el), abilities);
