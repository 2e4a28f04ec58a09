// @ts-check
// GradientViews in the page: one backward pass from four sides, chosen by a row of buttons.

import { cellAt, groupOf, indices } from "./conv.js";
import { fill, freshId, h, say, tinted } from "./dom.js";
import { inked } from "./inked.js";
import { choice } from "./layout.js";
import { lookedGrid } from "./looked_grid.js";
import { EDITED, KEPT, OperandsView } from "./operands_view.js";
import { seek } from "./player.js";
import { widget } from "./view.js";
import { drawBatch, drawConvolution, drawKernels, drawScatter, size } from "./views_drawing.js";
import { countSteps, kernelIn, operandAt, pageAt, slicesOf } from "./views_scene.js";
import { TABS, borderWords, captionOf, operandWords } from "./views_words.js";
import { groupLetter } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./operands_view.js").State} State */
/** @typedef {import("./looked_grid.js").LookedGrid} LookedGrid */
/** @typedef {import("./looked_grid.js").Way} Way */
/** @typedef {import("./places.js").Operand} Operand */
/** @typedef {import("./views_drawing.js").Spot} Spot */
/** @typedef {import("./views_scene.js").Name} Name */
/** @typedef {import("./views_scene.js").Slices} Slices */

const OPTIONS = ["view", "image", "kernel", "channel"];
const VIEWS = Object.keys(TABS);
const DRAW = { kernels: drawKernels, "scatter-gather": drawScatter, convolution: drawConvolution, batch: drawBatch };

class GradientViewsView extends OperandsView {
  /** @type {Partial<Record<Way, Spot | null>>} */
  #looks = {};
  /** @type {Map<string, LookedGrid>} by view and place */
  #grids = new Map();
  #roots = Object.fromEntries(VIEWS.map((view) => [view, h("div", { class: "cg-view", "data-view": view })]));
  /** @type {import("./views_drawing.js").Memory} */
  #memory = { catcher: null, shares: [] };
  #stage = h("div", { class: "cg-views-stage" });
  #caption = h("p", { class: "cg-caption", id: freshId("caption") });
  #pickers = h("div", { class: "cg-pickers" });
  /** @type {{trait: string, row: ReturnType<typeof choice>}[]} */
  #rows = [];
  #offered = "";
  #tabs;

  /** @param {import("./view.js").Model} model @param {HTMLElement} el */
  constructor(model, el) {
    super(model, "gradient view", OPTIONS);
    this.#tabs = choice("view", Object.entries(TABS), this.guard((view) => this.restart({ view })));
    this.#tabs.el.setAttribute("aria-describedby", this.#caption.id);
    this.show(el, {
      name: "Gradient views",
      kind: "cg-views",
      unit: "steps",
      above: [this.#tabs.el, this.#pickers, this.#caption],
      stage: ["grids", this.#stage],
      below: [],
      keys: [
        ["arrows at an edge", "on to the padding"],
        ["Enter Escape", "edit x, w or g; leave it as it was"],
      ],
    });
  }

  get #view() {
    return /** @type {Name} */ (this.state.options.view);
  }

  /** @param {State} state */
  count({ geometry, options }) {
    return countSteps(geometry, options.view);
  }

  /** @param {boolean} resized */
  forget(resized) {
    this.#looks = resized ? {} : { focus: this.#looks.focus };
    this.#memory.catcher = null;
  }

  // ---- looking and editing -------------------------------------------------------------------

  /** @param {Spot | null} spot @param {Way} way */
  #look(spot, way) {
    if (JSON.stringify(this.#looks[way] ?? null) === JSON.stringify(spot)) return;
    // whoever comes last is answered: a pointer that rests gives way to the keyboard
    this.#looks = way === "focus" ? { focus: spot } : { ...this.#looks, hover: spot };
    if (this.head.playing) return;
    this.draw();
    if (spot && way === "focus") this.speak();
  }

  /** The grid of that name in the view that is shown. @param {string} place */
  #grid(place) {
    const key = `${this.#view} ${place}`;
    let made = this.#grids.get(key);
    if (!made) {
      made = lookedGrid({
        edit: this.guard((row, col, value) => this.#edit(place, row, col, value)),
        refuse: (sentence) => this.complain(sentence),
        look: this.guard((at, way) => this.#look(at && { place, row: at[0], col: at[1] }, way)),
      });
      made.el.dataset.place = place;
      this.#grids.set(key, made);
    }
    return made;
  }

  /** A number of x, w or g, typed where it is drawn. @param {string} place @param {number} row @param {number} col @param {number} value */
  #edit(place, row, col, value) {
    const operand = operandAt(this.state.geometry, this.#view, this.#shown, place, row, col);
    if (operand) this.editNumber(...operand, value);
    else this.complain("between two cells of g no number is edited");
  }

  /** What is said of a cell of x, w or g, and of the border. @param {Spot} spot */
  #operandWords({ place, row, col }) {
    const { geometry: g, arrays } = this.state;
    const cell = cellAt(g, row, col);
    const onImage = ["x", "thrown", "kept"].includes(place);
    if (onImage && `${cell}` !== `${[row, col]}`) return borderWords(g, arrays, this.#shown, row, col);
    // scattering, a cell of g throws
    if (!["x", "w", "g"].includes(place) || (place === "g" && this.#view === "scatter-gather")) return "";
    const operand = operandAt(g, this.#view, this.#shown, place, row, col);
    return operand ? operandWords(arrays, ...operand) : "a gap between two cells of g, as wide as the stride says";
  }

  // ---- drawing -------------------------------------------------------------------------------

  /** Image, kernel and channel whose numbers stand in the grids. @returns {Slices} */
  get #shown() {
    const { geometry: g, options } = this.state;
    const slices = slicesOf(g, /** @type {any} */ (options));
    const { step } = this.head;
    if (this.#view === "kernels") return { ...slices, o: Math.max(0, step - 1) };
    if (this.#view !== "batch") return slices;
    const { n, k } = pageAt(g, step);
    return { ...slices, n, o: kernelIn(g, slices.o, k) };
  }

  paint() {
    const { head, ui } = this;
    const { geometry: g, arrays } = this.state;
    const view = this.#view;
    const look = head.playing ? null : (this.#looks.hover ?? this.#looks.focus ?? null);
    // at either end nothing has just happened
    const moving = head.step > 0 && (head.playing || head.step < head.length);
    const root = this.#roots[view];
    if (this.#stage.firstChild !== root) fill(this.#stage, root);
    this.#tabs.show(view);
    say(this.#caption, captionOf(g, view));
    this.#offer(g);
    const drawn = DRAW[view]({ root, g, arrays, slices: this.#shown, step: head.step, length: head.length, look, moving, memory: this.#memory, grid: (place) => this.#grid(place) });
    const sentence = (look && this.#operandWords(look)) || drawn;
    const resting = look || head.step ? "" : "Press play, or point at a cell, or go to it by Tab and arrow keys. ";
    fill(ui.spelled, ...tinted(inked(resting + sentence)));
    // room for the longest sum, so that the controls stand still
    size(ui.root, { terms: Math.min(36, Math.max(g.KH * g.KW, g.OH * g.OW)) });
  }

  /** Rows of buttons for image, kernel and channel, where there are several to choose from. @param {Geometry} g */
  #offer(g) {
    const isBatch = this.#view === "batch"; // all images and groups are drawn there
    const wanted = [isBatch, g.N, g.O, g.CG, g.groups].join();
    if (this.#offered !== wanted) {
      this.#offered = wanted;
      const counts = Object.entries({ image: isBatch ? 1 : g.N, kernel: isBatch ? g.OG : g.O, channel: g.CG });
      this.#rows = counts.filter(([, count]) => count > 1).map(([trait, count]) => {
        /** @param {number} k */
        const name = (k) => (trait === "kernel" && !isBatch && g.groups > 1 ? `${groupLetter(groupOf(g, k))} ${k}` : `${k}`);
        const row = choice(trait, indices(count).map((k) => [`${k}`, name(k)]), this.guard((k) => this.#choose(trait, Number(k))));
        return { trait, row };
      });
      fill(this.#pickers, ...this.#rows.map(({ row }) => row.el));
    }
    const { n, o, c } = this.#shown;
    /** @type {Record<string, number>} */
    const now = { image: n, kernel: isBatch ? o % g.OG : o, channel: c };
    for (const { trait, row } of this.#rows) row.show(`${now[trait]}`);
  }

  /** @param {string} trait @param {number} k */
  #choose(trait, k) {
    // kernel by kernel the step says which one it is
    if (trait === "kernel" && this.#view === "kernels") this.move(seek(this.head, k + 1));
    else this.send({ [trait]: k });
  }
}

/** @type {import("./equip.js").Abilities} */
const abilities = {
  kept: [...KEPT, ...OPTIONS],
  choices: { view: VIEWS },
  edited: EDITED,
  code: (get, torch) => torch.viewsCode(get),
};

export default widget("gradient view", (model, el) => new GradientViewsView(model, el), abilities);
