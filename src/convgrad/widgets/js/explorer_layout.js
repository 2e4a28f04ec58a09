// @ts-check
// What the geometry explorer is made of.  Built once; the drawing writes into it.

import { drawing, h, named } from "./dom.js";
import { KnobForm, pad, size, step, steps } from "./knobs.js";
import { choice } from "./layout.js";
import { Sheet } from "./sheet.js";
import { UNDO_KEYS, keysList } from "./transport.js";

/** @typedef {import("./conv.js").Spec} Spec */
/** @typedef {import("./explorer_words.js").Spot} Spot */
/** @typedef {{name: string, title: string, geometry: Spec, transposed: boolean, view: string}} Preset */
/**
 * What the view does when something is used; rows and columns count from 0, border included.
 * @typedef {object} Handlers
 * @property {(name: Spot["name"], row: number, col: number) => void} look
 * @property {(name: Spot["name"], row: number, col: number) => void} hover
 * @property {() => void} leave
 * @property {(wish: Spec) => void} wish
 * @property {() => void} same  the padding that keeps the size is asked for
 * @property {(axes: string) => void} axes
 * @property {(trait: "transposed" | "view", value: any) => void} choose
 * @property {(preset: Preset) => void} load
 * @property {(event: KeyboardEvent) => void} key
 * @property {HTMLElement} message  where complaints are shown
 * @property {HTMLElement} tools
 */
/** @typedef {ReturnType<typeof layout>} Layout */

/** @type {import("./knobs.js").Choice} */
const twoAxes = (perAxis) => ({
  x: [size("H", "height H", 16), size("W", "width W", 16)],
  kernel: [size("KH", "height KH", 5), size("KW", "width KW", 5)],
  ...steps(perAxis),
});
/** @type {import("./knobs.js").Choice} */
const oneAxis = () => ({
  sizes: [size("W", "cells W", 20), size("KW", "taps KW", 5)],
  steps: [step("stride", "stride", 4, [1]), step("dilation", "dilation", 3, [1])],
  padding: [pad("before", [[1, 0]]), pad("after", [[1, 1]])],
});

/** @param {Spec} spec @param {Preset[]} presets @param {Handlers} on */
export function layout(spec, presets, on) {
  const forms = [new KnobForm(spec, on.wish, oneAxis), new KnobForm(spec, on.wish, twoAxes)];
  for (const form of forms) {
    form.fields.after(
      h("button", { class: "cg-same", onclick: on.same }, "padding “same”: keep the size"),
    );
  }
  const axes = choice("axes", [["1", "one"], ["2", "two"]], on.axes);
  const ways = choice(
    "read as",
    [["", "convolution x → y"], ["1", "transposed y → x"]],
    (value) => on.choose("transposed", Boolean(value)),
  );
  const views = choice(
    "cells of x say",
    [["uses", "how often"], ["source", "what is read"]],
    (value) => on.choose("view", value),
  );
  const buttons = h(
    "span",
    { class: "cg-examples" },
    ...presets.map((preset) =>
      h(
        "button",
        {
          title: preset.title,
          "aria-label": `${preset.name}: ${preset.title}`,
          onclick: () => on.load(preset),
        },
        preset.name,
      ),
    ),
  );
  const examples = h(
    "div",
    { class: "cg-choice", role: "group", "aria-label": "examples" },
    h("span", { class: "cg-legend", "aria-hidden": "true" }, "example"),
    buttons,
  );

  /** @param {Spot["name"]} name @param {string} key @param {string} words */
  const sheet = (name, key, words) => {
    const look = (/** @type {number} */ row, /** @type {number} */ col) => on.look(name, row, col);
    const hover = (/** @type {number} */ row, /** @type {number} */ col) =>
      on.hover(name, row, col);
    return new Sheet(key, name, words, { look, hover, slice: () => {} }, { onpick: look });
  };
  const x = sheet("x", "x", "input with its border");
  const y = sheet("y", "output", "output");
  const arcs = drawing("0 0 1 1");
  const arrow = drawing("0 0 1 1");
  arcs.svg.classList.add("cg-arcs");
  arrow.svg.classList.add("cg-arrow");
  for (const { svg } of [arcs, arrow]) svg.setAttribute("aria-hidden", "true");
  x.grid.el.before(arcs.svg);
  x.grid.el.append(arrow.svg);

  const sign = h("span", { class: "cg-sign", "aria-hidden": "true" });
  const stage = h(
    "div",
    { class: "cg-stage" },
    h("div", { class: "cg-operands" }, x.el, sign, y.el),
  );
  stage.addEventListener("pointerleave", on.leave);
  const sizes = h("div", { class: "cg-sizes" });
  const said = h("p", { class: "cg-said" });
  const lines = h("div", { class: "cg-lines" });
  const live = h("div", { class: "cg-hidden", role: "status", "aria-live": "polite" });
  const root = h(
    "section",
    { class: "cg cg-player cg-explorer" },
    h("div", { class: "cg-top" }, examples),
    h("div", { class: "cg-top" }, axes.el, ways.el, views.el),
    stage,
    said,
    lines,
    live,
    on.message,
    sizes,
    h("div", { class: "cg-knobs-open" }, ...forms.map(({ el }) => el)),
    h(
      "div",
      { class: "cg-more" },
      keysList([
        ["Tab", "from part to part"],
        ["arrows in a grid", "from cell to cell; each shows what it reads or what reads it"],
        ["Escape", "look at nothing"],
        UNDO_KEYS,
      ]),
      on.tools,
    ),
  );
  named(root, "Geometry explorer");
  root.addEventListener("keydown", on.key);
  return { root, forms, axes, ways, views, buttons, x, y, arcs, arrow, sign, sizes, said, lines, live };
}
