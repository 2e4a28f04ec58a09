// @ts-check
// What the player is made of: panels, choices, buttons.  Built once; the view writes into it.

import { freshId, h, named, say } from "./dom.js";
import { Grid } from "./grid.js";
import { GRADIENT } from "./words.js";
import { Overview, sliceName } from "./overview.js";
import { groupOfSlice } from "./places.js";
import { UNDO_KEYS, keysHelp, transport } from "./transport.js";

/** @typedef {import("./conv.js").Target} Target */
/** @typedef {import("./conv.js").Order} Order */
/** @typedef {import("./places.js").Operand} Operand */
/** @typedef {import("./places.js").Place} Place */
/** @typedef {import("./player.js").Head} Head */

export const TARGETS = /** @type {Target[]} */ (["weight", "input", "bias"]);
export const ORDERS = /** @type {Order[]} */ (["tap", "position", "kernel"]);
/** @type {Record<Operand, string>} */
const KEYS = { x: "x", weight: "kernel", grad_output: "grad_output" };
/** @type {Record<Operand, [string, string]>} */
export const TITLES = {
  x: ["x", "input"],
  weight: ["w", "kernel"],
  grad_output: ["g", "upstream gradient"],
};

/**
 * What the view does when something is used.
 * @typedef {object} Handlers
 * @property {(trait: "target" | "order", value: string) => void} choose
 * @property {(on: boolean) => void} padding
 * @property {(name: Operand, row: number, col: number, value: number) => void} edit
 * @property {(sentence: string) => void} refuse
 * @property {(row: number, col: number) => void} pick
 * @property {(place: Place, slice: number[]) => void} pin
 * @property {(action: (head: Head) => Head) => void} act
 * @property {(speed: number) => void} speed
 * @property {(event: KeyboardEvent) => void} key
 * @property {HTMLElement} message  where complaints are shown
 * @property {HTMLElement} tools
 */

/** @typedef {ReturnType<typeof layout>} Layout */

/** @param {Handlers} on */
export function layout(on) {
  const targets = choice(
    "fill",
    TARGETS.map((target) => [target, GRADIENT[target]]),
    (value) => on.choose("target", value),
  );
  const orders = choice(
    "by",
    ORDERS.map((order) => [order, order]),
    (value) => on.choose("order", value),
  );
  const presets = h("span", { class: "cg-examples" });
  const examples = h(
    "div",
    { class: "cg-choice", role: "group", "aria-label": "running examples" },
    h("span", { class: "cg-legend", "aria-hidden": "true" }, "example"),
    presets,
  );

  /** @param {Operand} name */
  const operand = (name) => {
    const panel = new Panel(KEYS[name], (slice) => on.pin(name, slice), {
      onedit: (row, col, value) => on.edit(name, row, col, value),
      onrefuse: on.refuse,
    });
    panel.title(...TITLES[name]);
    return panel;
  };
  /** @type {Record<Operand, Panel>} */
  const operands = {
    x: operand("x"),
    weight: operand("weight"),
    grad_output: operand("grad_output"),
  };
  const result = new Panel("result", (slice) => on.pin("result", slice), { onpick: on.pick });
  const share = new Panel("result", (slice) => on.pin("share", slice), {});
  share.el.classList.add("cg-share");
  const times = h("span", { class: "cg-sign", "aria-hidden": "true" }, "×");
  const into = h("span", { class: "cg-sign", "aria-hidden": "true" }, "→");
  const operandRow = h("div", { class: "cg-operands" });
  const chip = h("div", { class: "cg-chip", "aria-hidden": "true", hidden: true });
  const stage = h(
    "div",
    {
      class: "cg-stage",
      tabindex: 0,
      role: "group",
      "aria-label": "grids; space plays, arrow keys step",
    },
    operandRow,
    h("div", { class: "cg-results" }, share.el, into, result.el),
    chip,
  );

  const captionId = freshId("caption");
  const caption = h("p", { class: "cg-caption", id: captionId });
  orders.el.setAttribute("aria-describedby", captionId);
  const spelled = h("p", { class: "cg-spelled" });
  const live = h("div", { class: "cg-hidden", role: "status", "aria-live": "polite" });
  const formulaBox = h("div", { class: "cg-formula", hidden: true });
  const knobs = h("details", { class: "cg-knobs" }, h("summary", {}, "change the convolution"));
  const controls = transport(on, "products");
  const padSwitch = h("input", { type: "checkbox", onchange: () => on.padding(padSwitch.checked) });
  const padLabel = h(
    "label",
    { class: "cg-check" },
    padSwitch,
    h("span", {}, "products with padding"),
  );

  const root = h(
    "section",
    { class: "cg cg-player" },
    h("div", { class: "cg-top" }, examples, padLabel),
    h("div", { class: "cg-top" }, targets.el, orders.el, caption),
    stage,
    h("div", { class: "cg-bottom" }, spelled, live, controls.el),
    on.message,
    formulaBox,
    h(
      "div",
      { class: "cg-more" },
      knobs,
      keysHelp([
        ["Enter", "edit a number; in the gradient: show its formula"],
        ["Escape", "leave a number as it was; close the formula"],
        UNDO_KEYS,
      ]),
      on.tools,
    ),
  );
  named(root, "Contribution player");
  root.addEventListener("keydown", on.key);
  return {
    root,
    stage,
    targets,
    orders,
    presets,
    operands,
    result,
    share,
    times,
    into,
    operandRow,
    chip,
    caption,
    spelled,
    live,
    formulaBox,
    knobs,
    controls,
    padSwitch,
    padLabel,
  };
}

/** A title, a grid, the name of its slice and the small pictures of all slices. */
export class Panel {
  /**
   * @param {string} key
   * @param {(slice: number[]) => void} onslice
   * @param {import("./grid.js").GridOptions} options
   */
  constructor(key, onslice, options) {
    this.grid = new Grid(options);
    this.overview = new Overview(onslice);
    this.symbol = h("b", { class: `cg-ink-${key}` });
    this.words = h("span", { class: "cg-words" });
    this.note = h("span", { class: "cg-note" });
    this.slice = h("span", { class: "cg-slice-now" });
    this.el = h(
      "div",
      { class: `cg-panel cg-of-${key}` },
      h("div", { class: "cg-title" }, this.symbol, " ", this.words),
      this.slice,
      h("div", { class: "cg-body" }, this.grid.el, this.overview.el),
      this.note,
    );
  }

  /** @param {string} symbol @param {string} words */
  title(symbol, words) {
    say(this.symbol, symbol);
    say(this.words, words);
  }

  /**
   * Says which slice is drawn large, and shows all of them.
   * @param {import("./overview.js").Axes} axes
   * @param {number[]} shown
   * @param {readonly number[] | null} lit  the cell of the step: a, b, row, col
   * @param {(slice: readonly number[]) => string} [filled]
   */
  slices(axes, shown, lit, filled) {
    const letter = groupOfSlice(axes, shown);
    const several = axes.shape[0] * axes.shape[1] > 1;
    const name = several ? sliceName(axes.letters, shown) : "";
    say(this.slice, name + (name && letter ? ` · group ${letter}` : ""));
    this.el.dataset.group = letter;
    this.overview.shape(axes, `slices of ${this.symbol.textContent}`);
    this.overview.update(shown, lit, filled);
  }
}

/**
 * A row of radio buttons.
 * @param {string} legend @param {[string, string][]} options  value and words
 * @param {(value: string) => void} onchoose
 */
export function choice(legend, options, onchoose) {
  const name = freshId(legend);
  const inputs = options.map(([value]) =>
    h("input", { type: "radio", name, value, onchange: () => onchoose(value) }),
  );
  const el = h(
    "fieldset",
    { class: "cg-choice" },
    h("legend", {}, legend),
    ...options.map(([, words], k) => h("label", {}, inputs[k], h("span", {}, words))),
  );
  /** @param {string} value */
  const show = (value) => inputs.forEach((input) => (input.checked = input.value === value));
  return { el, show };
}
