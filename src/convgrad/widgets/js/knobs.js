// @ts-check
// The form that changes the convolution: sizes, stride, padding, dilation, groups.
// It may hold an impossible wish; the player says why and keeps the last possible one.

import { PADDING_MODES } from "./conv.js";
import { fill, freshId, h } from "./dom.js";
import { clamp } from "./player.js";

/** @typedef {import("./conv.js").Spec} Spec */
/**
 * One number of the form and where it lives in the spec.
 * @typedef {object} Knob
 * @property {string} label
 * @property {[number, number]} limits
 * @property {(spec: Spec) => number} get
 * @property {(spec: Spec, value: number) => void} set
 */

/** @typedef {(perAxis: boolean) => Record<string, Knob[]>} Choice  the knobs, in groups */

/** @param {"N" | "C" | "H" | "W" | "O" | "KH" | "KW" | "groups"} name @param {string} label @param {number} most @returns {Knob} */
export const size = (name, label, most) => ({
  label,
  limits: [1, most],
  get: (spec) => spec[name],
  set: (spec, value) => void (spec[name] = value),
});

/** @param {"stride" | "dilation"} name @param {string} label @param {number} most @param {(0 | 1)[]} axes @returns {Knob} */
export const step = (name, label, most, axes) => ({
  label,
  limits: [1, most],
  get: (spec) => spec[name][axes[0]],
  set: (spec, value) => axes.forEach((axis) => (spec[name][axis] = value)),
});

/** @param {string} label @param {[0 | 1, 0 | 1][]} sides  pairs of axis and end @returns {Knob} */
export const pad = (label, sides) => ({
  label,
  limits: [0, 4],
  get: (spec) => spec.padding[sides[0][0]][sides[0][1]],
  set: (spec, value) => sides.forEach(([axis, end]) => (spec.padding[axis][end] = value)),
});

/** The knobs, with one field for both axes or one for each. @type {Choice} */
export const knobs = (perAxis) => ({
  image: [
    size("N", "images N", 4),
    size("C", "channels C", 8),
    size("H", "height H", 10),
    size("W", "width W", 10),
  ],
  kernel: [
    size("O", "kernels O", 8),
    size("groups", "groups", 8),
    size("KH", "height KH", 5),
    size("KW", "width KW", 5),
  ],
  ...steps(perAxis),
});

/** Stride, padding and dilation. @type {Choice} */
export function steps(perAxis) {
  if (!perAxis) {
    return {
      steps: [
        step("stride", "stride", 4, [0, 1]),
        pad("padding", [
          [0, 0],
          [0, 1],
          [1, 0],
          [1, 1],
        ]),
        step("dilation", "dilation", 3, [0, 1]),
      ],
    };
  }
  return {
    stride: [step("stride", "stride down", 4, [0]), step("stride", "stride across", 4, [1])],
    padding: [
      pad("top", [[0, 0]]),
      pad("bottom", [[0, 1]]),
      pad("left", [[1, 0]]),
      pad("right", [[1, 1]]),
    ],
    dilation: [
      step("dilation", "dilation down", 3, [0]),
      step("dilation", "dilation across", 3, [1]),
    ],
  };
}

/** Whether one field for both axes would hide something. @param {Spec} spec */
export const differsPerAxis = ({ stride, dilation, padding }) =>
  stride[0] !== stride[1] || dilation[0] !== dilation[1] || new Set(padding.flat()).size > 1;

const OF_A_SPEC = "N C H W O KH KW stride padding dilation groups padding_mode".split(" ");

/** The spec alone, without what follows from it; always in this order. @param {Spec} spec @returns {Spec} */
export const copySpec = (spec) =>
  /** @type {any} */ (
    Object.fromEntries(
      OF_A_SPEC.map((key) => [key, structuredClone(spec[/** @type {keyof Spec} */ (key)])]),
    )
  );

export class KnobForm {
  /** @type {Choice} */
  #choose;

  /**
   * @param {Spec} spec
   * @param {(wish: Spec) => void} onwish  told about every change, possible or not
   * @param {Choice} [choose]  which knobs there are
   */
  constructor(spec, onwish, choose = knobs) {
    this.#choose = choose;
    this.wish = copySpec(spec);
    this.onwish = onwish;
    this.perAxis = differsPerAxis(spec);
    this.fields = h("div", { class: "cg-fields" });
    this.axisSwitch = h("input", { type: "checkbox", onchange: () => this.#switchAxes() });
    this.mode = h(
      "select",
      { onchange: () => this.#change((wish) => (wish.padding_mode = this.mode.value)) },
      ...PADDING_MODES.map((mode) => h("option", { value: mode }, mode)),
    );
    this.message = h("p", { class: "cg-message", role: "alert", hidden: true });
    this.el = h(
      "div",
      { class: "cg-form" },
      this.message,
      this.fields,
      h(
        "div",
        { class: "cg-fields" },
        h("label", { class: "cg-field" }, h("span", {}, "padding mode"), this.mode),
        h("label", { class: "cg-check" }, this.axisSwitch, h("span", {}, "different per axis")),
      ),
    );
    /** @type {{knob: Knob, input: HTMLInputElement, less: HTMLButtonElement, more: HTMLButtonElement}[]} */
    this.rows = [];
    this.#build();
  }

  /**
   * Says why the wish is impossible, and offers the way back.
   * @param {string} sentence @param {Spec} possible  what is still drawn
   */
  refuse(sentence, possible) {
    const back = h("button", { class: "cg-back-to" }, "keep what is shown");
    back.addEventListener("click", () => {
      this.show(possible);
      this.el.querySelector("input")?.focus(); // the button is gone
    });
    fill(this.message, sentence, ". ", back);
    this.message.hidden = false;
  }

  /** Shows a spec that came from elsewhere. @param {Spec} spec */
  show(spec) {
    this.message.hidden = true;
    this.wish = copySpec(spec);
    const needed = this.perAxis || differsPerAxis(spec);
    if (needed !== this.perAxis) {
      this.perAxis = needed;
      this.#build();
    } else this.#write();
  }

  #build() {
    this.rows = [];
    const groups = Object.entries(this.#choose(this.perAxis)).map(([name, list]) =>
      h(
        "fieldset",
        { class: "cg-knob-group" },
        h("legend", {}, name),
        ...list.map((knob) => this.#row(knob)),
      ),
    );
    fill(this.fields, ...groups);
    this.#write();
  }

  /** @param {Knob} knob */
  #row(knob) {
    const id = freshId("knob");
    /** @param {number} by */
    const nudge = (by) => () => this.#set(knob, knob.get(this.wish) + by);
    const input = h("input", {
      id,
      type: "number",
      step: 1,
      inputmode: "numeric",
      onchange: () => this.#set(knob, input.valueAsNumber),
    });
    /** @param {string} sign @param {string} word @param {number} by */
    const button = (sign, word, by) =>
      h(
        "button",
        { tabindex: -1, "aria-label": `${word} ${knob.label}`, onclick: nudge(by) },
        sign,
      );
    const less = button("−", "less", -1);
    const more = button("+", "more", 1);
    this.rows.push({ knob, input, less, more });
    return h(
      "div",
      { class: "cg-field" },
      h("label", { for: id }, knob.label),
      h("span", { class: "cg-stepper" }, less, input, more),
    );
  }

  /** @param {Knob} knob @param {number} value */
  #set(knob, value) {
    if (Number.isNaN(value)) return this.#write(); // an emptied field: what stood there stands
    // too small and too large are left to the geometry, which says in words what is needed
    this.#change((wish) => knob.set(wish, Math.min(value, MOST_TYPED)));
  }

  /** @param {(wish: Spec) => void} change */
  #change(change) {
    change(this.wish);
    this.#write();
    this.onwish(copySpec(this.wish));
  }

  #switchAxes() {
    this.perAxis = this.axisSwitch.checked;
    if (!this.perAxis && differsPerAxis(this.wish)) {
      // back to one number for both: the first one holds
      for (const knob of steps(false).steps) knob.set(this.wish, knob.get(this.wish));
      this.onwish(copySpec(this.wish));
    }
    this.#build();
  }

  #write() {
    this.axisSwitch.checked = this.perAxis;
    this.mode.value = this.wish.padding_mode;
    for (const { knob, input, less, more } of this.rows) {
      const value = knob.get(this.wish);
      const [least, most] = [knob.limits[0], mostOf(knob, this.wish)];
      input.min = String(least);
      input.max = String(most);
      if (input.value !== String(value)) input.value = String(value);
      less.disabled = clamp(value, least, most) === least && value >= least;
      more.disabled = value >= most;
    }
  }
}

const MOST_TYPED = 999; // more than can be drawn, less than would take long to refuse

/** A size that came from Python may be beyond what the form offers. @param {Knob} knob @param {Spec} spec */
const mostOf = (knob, spec) => Math.max(knob.limits[1], knob.get(spec));
