// @ts-check
// ContributionPlayer in the page: the model's numbers as grids, and every product on its way.

import { GeometryError, geometryOf, ledger, ravel, refit, shapes } from "./conv.js";
import { attribute, fill, h, say } from "./dom.js";
import { draw, drawFormula, fall } from "./drawing.js";
import { equip } from "./equip.js";
import { copySpec } from "./knobs.js";
import { ORDERS, TARGETS, layout } from "./layout.js";
import { small } from "./limits.js";
import { OPERANDS, slicesOf } from "./places.js";
import { advance, clamp, playhead, press, resize, seek } from "./player.js";
import { GRADIENT } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Ledger} Ledger */
/** @typedef {import("./conv.js").Spec} Spec */
/** @typedef {import("./conv.js").Target} Target */
/** @typedef {import("./conv.js").Order} Order */
/** @typedef {{shape: number[], data: number[]}} Tensor */
/** @typedef {import("./places.js").Operand} Operand */
/**
 * What anywidget and the static page's loader hand over.
 * @typedef {object} Model
 * @property {(name: string) => any} get
 * @property {(name: string, value: any) => void} set
 * @property {(event: string, callback: () => void) => void} on
 * @property {(event: string, callback: () => void) => void} off
 * @property {() => void} save_changes
 */
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

class PlayerView {
  /** @param {Model} model @param {HTMLElement} el */
  constructor(model, el) {
    this.model = model;
    /** @type {(() => void)[]} what undoes everything on the way out */
    this.undo = [];
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
    this.frame = 0;
    this.flight = 0;
    this.clock = 0;
    this.saved = 0;
    this.spoken = 0;
    this.scheduled = false;

    this.ui = layout({
      choose: this.guard((trait, value) => this.#restart({ [trait]: value })),
      padding: this.guard((on) => this.#restart({ include_padding: on })),
      edit: this.guard((name, row, col, value) =>
        this.#editNumber(name, [...this.#moment().shown[name], row, col], value),
      ),
      refuse: (sentence) => this.complain(sentence),
      pick: this.guard((row, col) => this.#choose(row, col)),
      pin: this.guard((place, slice) => this.#pin(place, slice)),
      act: this.guard((action) => this.#move(action(this.head))),
      speed: this.guard((speed) => this.#send({ speed })),
      key: this.guard((event) => this.#key(event)),
    });
    el.append(this.ui.root);
    this.undo.push(() => this.ui.root.remove());
    this.draw();

    const schedule = this.guard(() => this.#schedule());
    for (const name of SYNCED) {
      model.on(`change:${name}`, schedule);
      this.undo.push(() => model.off(`change:${name}`, schedule));
    }
  }

  /** The knobs come with the tools. @param {typeof import("./knobs.js").KnobForm} KnobForm */
  furnish(KnobForm) {
    this.form = new KnobForm(
      this.state.geometry,
      this.guard((wish) => this.#wish(wish)),
    );
    this.ui.knobs.append(this.form.el);
  }

  destroy() {
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.flight);
    for (const undo of this.undo.splice(0)) undo();
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
        if (!known) console.warn("ContributionPlayer:", error);
      }
    };
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

  /** One update of several traits fires one event for each: draw once, when all have arrived. */
  #schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    queueMicrotask(
      this.guard(() => {
        this.scheduled = false;
        this.#follow();
      }),
    );
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

  /** @param {Record<string, any>} changes */
  #send(changes) {
    this.complain("");
    if (this.model.get("complaint")) this.model.set("complaint", "");
    for (const [name, value] of Object.entries(changes)) this.model.set(name, value);
    this.model.save_changes();
    this.#follow();
  }

  /** Another list of products is played from its start. @param {Record<string, any>} changes */
  #restart(changes) {
    this.head = seek(this.head, 0);
    this.#send({ ...changes, step: 0 });
  }

  /** @param {Operand} name @param {number[]} index @param {number} value */
  #editNumber(name, index, value) {
    const { shape, data } = this.state.arrays[name];
    const copy = [...data];
    copy[ravel(index, shape)] = value;
    this.#send({ [name]: { shape, data: copy } });
  }

  /** A wish of the knobs: taken when such a convolution exists, else explained. @param {Spec} wish */
  #wish(wish) {
    let needed;
    try {
      needed = shapes(small(geometryOf(wish), this.model.get("limits")));
    } catch (error) {
      if (!(error instanceof GeometryError)) throw error;
      this.form?.refuse(error.message, this.state.geometry);
      return;
    }
    const { arrays } = this.state;
    const { x, weight, grad_output } = needed;
    this.#restart({
      geometry: copySpec(wish),
      x: refit(arrays.x, x),
      weight: refit(arrays.weight, weight),
      grad_output: refit(arrays.grad_output, grad_output),
    });
    this.form?.show(wish);
  }

  /** @param {Pick<Preset, "geometry" | Operand>} preset */
  #load({ geometry, x, weight, grad_output }) {
    this.#restart({ geometry, x, weight, grad_output });
    this.form?.show(geometry);
  }

  // ---- the head ------------------------------------------------------------------------------

  /** @param {import("./player.js").Head} head */
  #move(head) {
    const stepped = head.step !== this.head.step;
    const started = head.playing && !this.head.playing;
    const stopped = !head.playing && this.head.playing;
    const falls = head.step === this.head.step + 1 && !(head.playing && head.speed > 4);
    this.head = head;
    if (stepped) {
      this.pinned = {};
      this.model.set("step", head.step);
    }
    const now = performance.now();
    if (!head.playing || now - this.saved > 250) {
      this.saved = now;
      if (stepped || stopped) this.model.save_changes();
    }
    this.draw();
    cancelAnimationFrame(this.flight);
    if (falls) {
      // in the next frame: measuring now would make the browser lay the page out twice
      this.flight = requestAnimationFrame(this.guard(() => fall(this.ui, this.#moment())));
    }
    if (started) {
      this.clock = now;
      this.#await();
    }
    this.#speak(stopped || !head.playing);
  }

  #await() {
    this.frame = requestAnimationFrame(this.guard((time) => this.#tick(time)));
  }

  /** @param {number} time */
  #tick(time) {
    if (!this.head.playing) return;
    const passed = Math.min(Math.max(time - this.clock, 0), 1000); // a hidden page has no frames
    this.clock = time;
    const head = advance(this.head, passed);
    if (head.step !== this.head.step || !head.playing) this.#move(head);
    else this.head = head;
    if (this.head.playing) this.#await();
  }

  /** @param {number} step */
  #seek(step) {
    this.#move(seek(this.head, step));
  }

  /** The step read aloud: at once when stepping by hand, every other second while playing. @param {boolean} atOnce */
  #speak(atOnce) {
    const now = performance.now();
    if (!atOnce && now - this.spoken < 2000) return;
    this.spoken = now;
    say(this.ui.live, this.ui.spelled.textContent ?? "");
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const at = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape" && this.chosen) {
      this.#closeFormula();
      return;
    }
    if (at.closest("input, select, textarea, summary")) return;
    if (event.key === " " && at.closest("button")) return; // space presses the button
    const head = press(this.head, event.key);
    if (!head) return;
    event.preventDefault();
    event.stopPropagation(); // in a notebook the same keys move between cells
    this.#move(head);
  }

  /** @param {string} sentence */
  complain(sentence) {
    say(this.ui.message, sentence);
    this.ui.message.hidden = !sentence;
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
      seek: this.guard((step) => this.#seek(step)),
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
    this.#move({ ...this.head, playing: false });
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

/** The arrays of an update that has not arrived as a whole yet. */
class Unfinished extends Error {}

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

export default {
  abilities,
  /**
   * Draws the player into `el`; what comes back takes it away again.
   * @param {import("./equip.js").Context & {model: Model, el: HTMLElement}} context
   */
  render(context) {
    const { model, el } = context;
    try {
      const view = new PlayerView(model, el);
      const furnish = view.guard((tools) => view.furnish(tools.KnobForm));
      view.undo.push(equip(context, view.ui.tools, abilities, furnish));
      return () => view.destroy();
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      el.append(
        h("p", { class: "cg cg-message", role: "alert" }, `The player could not start: ${words}`),
      );
      return () => el.replaceChildren();
    }
  },
};
