// @ts-check
// What the roofline is made of.  Built once; the drawing writes into it.

import { freshId, h, named } from "./dom.js";
import { choice } from "./layout.js";
import { MAPS, PRECISIONS } from "./roofline_model.js";
import { TITLES } from "./roofline_words.js";
import { UNDO_KEYS, keysList } from "./transport.js";

/** @typedef {import("./conv.js").Spec} Spec */
/** @typedef {import("./roofline_model.js").Knob} Knob */
/** @typedef {{name: string, title: string, geometry: Spec}} Preset */
/** A trait of the model that a control sets. @typedef {"card" | "precision" | "columns" | "tile" | "target" | "others"} Chosen */
/**
 * What the view does when something is used.
 * @typedef {object} Handlers
 * @property {(trait: Chosen, value: any) => void} choose
 * @property {(preset: number) => void} load
 * @property {(knob: Knob | "splits", at: number, settled: boolean) => void} slide  to one of its stops
 * @property {() => void} resized
 * @property {HTMLElement} message  where complaints are shown
 * @property {HTMLElement} tools
 */
/** @typedef {ReturnType<typeof layout>} Layout */

/** @type {[Knob | "splits", string][]} */
const SLIDERS = [
  ["N", "images N"],
  ["C", "channels C"],
  ["O", "kernels O"],
  ["groups", "groups"],
  ["H", "image H = W"],
  ["KH", "kernel KH = KW"],
  ["stride", "stride"],
  ["splits", "split-K shares"],
];
/** @type {[string, string][]} */
const TILES = [["0", "left out"], ["64", "64"], ["128", "128"], ["256", "256"]];

/** @param {readonly Preset[]} presets @param {readonly string[]} cards @param {Handlers} on */
export function layout(presets, cards, on) {
  const layers = h(
    "select",
    { onchange: () => on.load(Number(layers.value)) },
    h("option", { value: "-1" }, "your own"),
    ...presets.map(({ name }, k) => h("option", { value: String(k) }, `${k + 1}  ${name}`)),
  );
  const card = h(
    "select",
    { onchange: () => on.choose("card", card.value) },
    ...cards.map((name) => h("option", { value: name }, name)),
  );
  const precision = choice("precision", PRECISIONS.map((each) => /** @type {[string, string]} */ ([each, TITLES[each]])), (value) => on.choose("precision", value));
  const columns = choice("windows", [["", "implicit"], ["1", "im2col’s columns"]], (value) => on.choose("columns", Boolean(value)));
  const tile = choice("tiles up to", TILES, (value) => on.choose("tile", Number(value)));
  const target = choice("tell of", MAPS.map((each) => /** @type {[string, string]} */ ([each, each])), (value) => on.choose("target", value));
  const others = h("input", { type: "checkbox", onchange: () => on.choose("others", others.checked) });

  const sliders = SLIDERS.map(([knob, label]) => {
    const id = freshId("slider");
    const input = h("input", {
      id,
      type: "range",
      min: 0,
      step: 1,
      oninput: () => on.slide(knob, input.valueAsNumber, false),
      onchange: () => on.slide(knob, input.valueAsNumber, true),
    });
    const value = h("output", { for: id });
    const el = h("div", { class: "cg-slider" }, h("label", { for: id }, label), input, value);
    return { knob, input, value, el };
  });

  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("aria-hidden", "true");
  const chart = h("div", { class: "cg-chart" }, /** @type {any} */ (svg));
  const sizes = new ResizeObserver(on.resized);
  sizes.observe(chart);
  const figures = h("table", { class: "cg-bounds" });
  const said = h("p", { class: "cg-said" });
  const live = h("div", { class: "cg-hidden", role: "status", "aria-live": "polite" });
  const root = h(
    "section",
    { class: "cg cg-player cg-roofline" },
    h(
      "div",
      { class: "cg-top" },
      h("label", { class: "cg-picked" }, h("span", { class: "cg-legend" }, "layer"), layers),
      h("label", { class: "cg-picked" }, h("span", { class: "cg-legend" }, "card"), card),
    ),
    h("div", { class: "cg-top" }, precision.el, columns.el),
    h("div", { class: "cg-top" }, tile.el, h("label", { class: "cg-check" }, others, h("span", {}, "the other layers too"))),
    h("div", { class: "cg-stage" }, chart),
    h("div", { class: "cg-sliders" }, ...sliders.map(({ el }) => el)),
    h("div", { class: "cg-top" }, target.el),
    said,
    live,
    on.message,
    figures,
    h(
      "div",
      { class: "cg-more" },
      keysList([
        ["Tab", "from control to control"],
        ["← →", "in a slider: one place on or back; the marks move along"],
        ["Home End", "in a slider: the least and the most"],
        UNDO_KEYS,
      ]),
      on.tools,
    ),
  );
  named(root, "Roofline");
  const stop = () => sizes.disconnect();
  return { root, layers, card, precision, columns, tile, target, others, sliders, svg, chart, figures, said, live, stop };
}
