// @ts-check
// Roofline in the page: a layer's three maps under the roof of a card, as sizes change.

import { GeometryError, geometryOf } from "./conv.js";
import { fill, h, say } from "./dom.js";
import { copySpec } from "./knobs.js";
import { drawChart, prepare } from "./roofline_drawing.js";
import { layout } from "./roofline_layout.js";
import { CARDS, MAPS, PRECISIONS, SPLITS, TILES, bound, moved, operations, stopsOf, withValue } from "./roofline_model.js";
import { rows, sentence, three } from "./roofline_words.js";
import { View, widget } from "./view.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Spec} Spec */
/** @typedef {import("./roofline_layout.js").Preset} Preset */
/** @typedef {import("./roofline_model.js").Bound} Bound */
/** @typedef {import("./roofline_model.js").Card} Card */
/** @typedef {import("./roofline_model.js").Knob} Knob */
/** @typedef {import("./roofline_model.js").Which} Which */
/** @typedef {import("./view.js").Model} Model */

const SET = ["card", "precision", "columns", "tile", "splits", "target", "others"];
const KEPT = ["geometry", ...SET];
const SYNCED = [...KEPT, "complaint"];
/** Sliders whose number stands for two. @type {Partial<Record<Knob | "splits", [keyof Spec, keyof Spec]>>} */
const PAIRS = { H: ["H", "W"], KH: ["KH", "KW"] };

/** Of one number for both axes, the pair where they differ. @param {Spec} spec @param {Knob} knob */
export function shownValue(spec, knob) {
  const pair = knob === "stride" ? spec.stride : (PAIRS[knob] ?? [knob]).map((name) => spec[name]);
  return [...new Set(/** @type {number[]} */ (pair))].join("×");
}

class RooflineView extends View {
  /** @param {Model} model @param {HTMLElement} el */
  constructor(model, el) {
    super(model);
    this.presets = /** @type {Preset[]} */ (model.get("presets"));
    /** What a slider that is being dragged says already. @type {Record<string, any>} */
    this.wished = {};
    this.g = geometryOf(model.get("geometry"));
    this.ui = layout(this.presets, Object.keys(model.get("cards")), {
      choose: this.guard((trait, value) => this.#tell({ [trait]: value })),
      load: this.guard((k) => this.presets[k] && this.#tell({ geometry: copySpec(this.presets[k].geometry) })),
      slide: this.guard((knob, at, settled) => this.#slide(knob, at, settled)),
      resized: this.guard(() => this.draw()),
      message: this.message,
      tools: this.tools,
    });
    prepare(this.ui.svg, this.guard((which) => this.#tell({ target: which })));
    this.undo.push(this.ui.stop);
    this.mount(el, this.ui.root, SYNCED);
    this.draw();
  }

  follow() {
    this.wished = {};
    this.g = geometryOf(this.model.get("geometry"));
    const complaint = this.model.get("complaint");
    if (complaint) this.complain(complaint);
    this.draw();
  }

  /** @param {string} name */
  #get(name) {
    return this.wished[name] ?? this.model.get(name);
  }

  /** A change, and what follows from it in words. @param {Record<string, any>} changes */
  #tell(changes) {
    this.send(changes);
    say(this.ui.live, this.ui.said.textContent ?? "");
  }

  /** While a slider is dragged the picture follows; the model, and so undo, when it is let go. @param {Knob | "splits"} knob @param {number} at @param {boolean} settled */
  #slide(knob, at, settled) {
    const spec = copySpec(this.model.get("geometry"));
    const value = this.#stops(knob, spec)[at];
    const changes = knob === "splits" ? { splits: value } : { geometry: copySpec(moved(spec, knob, value)) };
    try {
      if (changes.geometry) fits(geometryOf(changes.geometry), this.model.get("limits"));
    } catch (error) {
      this.follow(); // the slider goes back
      throw error;
    }
    this.complain("");
    if (settled) return this.#tell(changes);
    this.wished = changes;
    this.g = geometryOf(this.#get("geometry"));
    this.draw();
  }

  /** @param {Knob | "splits"} knob @param {Spec} spec */
  #stops(knob, spec) {
    return knob === "splits" ? withValue(SPLITS, this.model.get("splits")) : stopsOf(spec)[knob];
  }

  /** @param {Geometry} g @param {boolean} columns @returns {Record<Which, Bound>} */
  #bounds(g, columns) {
    const [precision, tile, shares] = ["precision", "tile", "splits"].map((name) => this.#get(name));
    const splits = Math.max(1, shares); // a link may say anything
    const found = MAPS.map((which) => [which, bound(g, which, this.#card(), { precision, columns, tile, splits })]);
    return Object.fromEntries(found);
  }

  /** @returns {Card} */
  #card() {
    return this.model.get("cards")[this.#get("card")];
  }

  draw() {
    const { ui, g } = this;
    const [card, target, precision, columns] = [this.#card(), ...["target", "precision", "columns"].map((name) => this.#get(name))];
    const bounds = this.#bounds(g, columns);
    const same = (/** @type {Spec} */ spec) => JSON.stringify(copySpec(spec)) === JSON.stringify(copySpec(g));
    const here = this.presets.findIndex(({ geometry }) => same(geometry));
    const others = this.#get("others")
      ? this.presets.map(({ geometry }, k) => ({ number: k + 1, here: k === here, bound: this.#bounds(geometryOf(geometry), columns)[/** @type {Which} */ (target)] }))
      : [];
    const moment = { card, precision, bounds, target, others, implicit: columns ? this.#bounds(g, false)[/** @type {Which} */ (target)] : null };
    const width = Math.max(240, Math.floor(ui.chart.clientWidth || 640));
    drawChart(
      ui.svg,
      moment,
      { width, height: Math.round(Math.min(400, Math.max(300, 0.6 * width))) },
      this.guard((number) => this.#tell({ geometry: copySpec(this.presets[number - 1].geometry) })),
    );
    /** @type {any} */ (ui.chart).plain = () => this.#plain(others, bounds);
    ui.layers.value = String(here);
    ui.card.value = this.#get("card");
    ui.precision.show(precision);
    ui.columns.show(columns ? "1" : "");
    ui.tile.show(String(this.#get("tile")));
    ui.target.show(target);
    ui.others.checked = this.#get("others");
    this.#showSliders();
    say(ui.said, sentence(target, bounds[/** @type {Which} */ (target)], card, precision));
    this.#showFigures(rows(bounds), target);
  }

  #showSliders() {
    const spec = copySpec(this.model.get("geometry"));
    for (const { knob, input, value, el } of this.ui.sliders) {
      const stops = this.#stops(knob, spec);
      const now = knob === "splits" ? this.#get("splits") : knob === "stride" ? this.g.stride[0] : this.g[knob];
      input.max = String(stops.length - 1);
      const at = stops.indexOf(now);
      if (at >= 0 && input.valueAsNumber !== at) input.value = String(at);
      const words = knob === "splits" ? String(now) : shownValue(this.g, knob);
      say(value, words);
      input.setAttribute("aria-valuetext", words);
      if (knob === "splits") el.hidden = !this.#get("tile");
    }
  }

  /** @param {string[][]} table @param {string} target */
  #showFigures(table, target) {
    const mark = (/** @type {number} */ k) => (MAPS[k] === target ? { class: "cg-told" } : {});
    fill(
      this.ui.figures,
      h("thead", {}, h("tr", {}, h("td"), ...MAPS.map((which, k) => h("th", { scope: "col", ...mark(k) }, which)))),
      h("tbody", {}, ...table.map(([name, ...cells]) => h("tr", {}, h("th", { scope: "row" }, name), ...cells.map((cell, k) => h("td", mark(k), cell))))),
    );
  }

  /** The chart as a table. @param {{number: number, bound: Bound}[]} others @param {Record<Which, Bound>} bounds @returns {import("./tables.js").Plain} */
  #plain(others, bounds) {
    const of = (/** @type {Bound} */ { intensity, tflops, limit }) => [three(intensity), three(tflops), limit];
    return {
      caption: "the marks of the chart",
      heads: ["operations per byte", "TFLOP/s at most", "what limits"],
      rows: [
        ...MAPS.map((which) => [which, ...of(bounds[which])]),
        ...others.map(({ number, bound: each }) => [`layer ${number}, ${this.presets[number - 1].name}`, ...of(each)]),
      ],
    };
  }
}

/** Refuses what cannot be counted. @param {Geometry} g @param {{operations: number}} limits */
function fits(g, limits) {
  if (!g.N) throw new GeometryError("the batch is empty, N = 0: there is nothing to compute");
  if (operations(g) > limits.operations) {
    throw new GeometryError(
      `this layer takes ${operations(g).toLocaleString("en")} operations: the roofline counts up to ` +
        `${limits.operations.toLocaleString("en")}; take fewer images, channels or kernels`,
    );
  }
}

/** @type {import("./equip.js").Abilities} */
const abilities = {
  kept: KEPT,
  choices: { card: CARDS, precision: PRECISIONS, tile: TILES, target: MAPS },
  edited: KEPT,
  fits,
  code: (get, torch) => torch.layerCode(geometryOf(get("geometry")), false),
};

export default widget("roofline", (model, el) => new RooflineView(model, el), abilities);
