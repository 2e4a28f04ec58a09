// @ts-check
// ShardSum in the page: images or rows dealt out to devices, what they send, how it adds up.

import { benchOf } from "./bench.js";
import { fill, h, tinted } from "./dom.js";
import { inked } from "./inked.js";
import { choice } from "./layout.js";
import { EDITED, KEPT, OperandsView } from "./operands_view.js";
import { imagesStage } from "./shards_images.js";
import { rowsStage } from "./shards_rows.js";
import { imageScene, movesIn, rowScene, sizesOf } from "./shards_scene.js";
import { widget } from "./view.js";

/** @typedef {import("./operands_view.js").State} State */
/** @typedef {import("./shards_images.js").Spot} Spot */
/** @typedef {import("./shards_words.js").Options} Options */

const OPTIONS = ["view", "shares", "loss", "combine"];
/** @type {Record<string, string>} */
const THINGS = { images: "images", rows: "output rows" };

/** How many devices can be drawn. @param {{get: (name: string) => any}} model @returns {number} */
const mostOf = (model) => model.get("limits").devices;

class ShardView extends OperandsView {
  /** @type {Partial<Record<"hover" | "focus", Spot>>} */
  #looks = {};
  /** What was computed last, and from what. @type {{key: string, arrays: any, scene: any}} */
  #kept = { key: "", arrays: null, scene: null };
  #on = {
    refuse: (/** @type {string} */ sentence) => this.complain(sentence),
    guard: /** @type {import("./bench.js").Handlers["guard"]} */ ((action) => this.guard(action)),
    look: (/** @type {Spot} */ spot, /** @type {"hover" | "focus"} */ way) => this.#look(spot, way),
  };
  #choices = {
    view: this.#choice("view", "deal out", [["images", "images"], ["rows", "rows"]]),
    loss: this.#choice("loss", "loss", [["sum", "sum"], ["mean", "mean"]]),
    combine: this.#choice("combine", "gradients of devices", [["sum", "added"], ["average", "averaged"]]),
  };
  /** How many devices, and how much each gets: comes with the tools. @type {ReturnType<typeof import("./dealing.js").dealing> | null} */
  #dealing = null;
  /** Which map the rows show. @type {ReturnType<typeof import("./dealing.js").picking> | null} */
  #picking = null;
  /** What is looked at, in words. @type {typeof import("./shards_spots.js").spotWords | undefined} */
  #inWords;
  #pick = { n: 0, o: 0, c: 0 };
  #place = h("div", { class: "cg-dealing" });
  #picks = h("div", { class: "cg-picks" });
  #images = imagesStage(this.#on);
  #rows = rowsStage(this.#on);
  #bench = benchOf("numbers of what is looked at", this.#on);

  /** @param {import("./view.js").Model} model @param {HTMLElement} el */
  constructor(model, el) {
    super(model, "view of devices", OPTIONS);
    const { view, loss, combine } = this.#choices;
    this.show(el, {
      name: "Several devices",
      kind: "cg-shards",
      unit: "steps",
      above: [view.el, this.#place, loss.el, combine.el, this.#picks],
      stage: ["devices", h("div", {}, this.#images.el, this.#rows.el)],
      below: [this.#bench.el],
      keys: [
        ["arrows among chunks", "from chunk to chunk"],
        ["Enter", "edit a number of x or g"],
      ],
    });
  }

  /** @param {string} trait @param {string} legend @param {[string, string][]} options */
  #choice(trait, legend, options) {
    return choice(legend, options, this.guard((value) => this.restart({ [trait]: value })));
  }

  /** (Nothing of its own: it is asked before this view is made.) @param {State} state */
  count({ geometry, options }) {
    return movesIn(geometry, options, mostOf(this.model)).length - 1;
  }

  /** @param {typeof import("./tools.js")} tools */
  furnish(tools) {
    super.furnish(tools);
    this.#dealing = tools.dealing(this.#place, (sizes) => this.restart({ shares: sizes.join("-") }), this.#on);
    const take = (/** @type {import("./dealing.js").Pick} */ pick) => {
      this.#pick = pick;
      this.draw();
    };
    this.#picking = tools.picking(this.#picks, take, this.#on);
    this.#inWords = tools.spotWords;
    this.draw();
  }

  /** The story begins with what is dealt out. */
  first() {
    return 0;
  }

  /** Shares that no longer fit are dealt anew, here as in Python. @param {Record<string, any>} values */
  settle(values) {
    const { geometry, options } = this.state;
    super.settle({ ...values, shares: sizesOf(geometry, options, mostOf(this.model)).join("-") });
  }

  forget() {
    this.#looks = {};
  }

  /** What stays looked at until the next step, as the numbers below can be edited. @param {Spot} spot @param {"hover" | "focus"} way */
  #look(spot, way) {
    if (this.head.playing || JSON.stringify(this.#looks[way]) === JSON.stringify(spot)) return;
    this.#looks = way === "focus" ? { focus: spot } : { ...this.#looks, hover: spot };
    this.draw();
    if (way === "focus") this.speak();
  }

  paint() {
    const { geometry: g, arrays, options: given } = this.state;
    const options = /** @type {Options} */ (given);
    const most = mostOf(this.model);
    const sizes = sizesOf(g, options, most);
    const images = options.view === "images";
    for (const [trait, row] of Object.entries(this.#choices)) row.show(given[trait]);
    this.#dealing?.({ sizes, most, things: THINGS[options.view] });
    const [here, there] = images ? [this.#images, this.#rows] : [this.#rows, this.#images];
    here.el.hidden = false;
    there.el.hidden = true;
    this.#choices.loss.el.hidden = this.#choices.combine.el.hidden = !images;
    this.#picks.hidden = images;
    const { n, o, c } = this.#pick;
    this.#pick = { n: Math.min(n, g.N - 1), o: Math.min(o, g.O - 1), c: Math.min(c, g.CG - 1) };
    this.#picking?.(g, this.#pick);
    const key = JSON.stringify([g, options, sizes]);
    if (this.#kept.key !== key || this.#kept.arrays !== arrays) {
      this.#kept = { key, arrays, scene: images ? imageScene(g, arrays, options, sizes) : rowScene(g, arrays, sizes) };
    }
    const { words, pieces } = here.draw(this.#kept.scene, {
      ...{ g, arrays, options, sizes, moves: movesIn(g, options, most), step: this.head.step, pick: this.#pick, inWords: this.#inWords },
      spot: this.head.playing ? null : (this.#looks.hover ?? this.#looks.focus ?? null),
      edit: (array, index, value) => this.editNumber(array, index, value),
    });
    fill(this.ui.spelled, ...tinted(inked(words)));
    this.#bench.draw(pieces);
  }
}

/** @type {import("./equip.js").Abilities} */
const abilities = {
  kept: [...KEPT, ...OPTIONS],
  choices: { view: ["images", "rows"], loss: ["sum", "mean"], combine: ["sum", "average"] },
  edited: [...EDITED, "shares"],
  code: (get, torch) => {
    const [g, x, upstream] = [get("geometry"), get("x"), get("grad_output")];
    const options = { view: get("view"), shares: get("shares"), loss: get("loss"), combine: get("combine") };
    return torch.shardsCode(g, x, upstream, options, sizesOf({ N: g.N, OH: upstream.shape[2] }, options, mostOf({ get })));
  },
};

export default widget("view of devices", (model, el) => new ShardView(model, el), abilities);
