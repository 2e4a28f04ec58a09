// @ts-check
// UnfoldMatrix in the page: an image, its windows as columns, and the products made with them.

import { at, cellAt, indices, ravel, unravel } from "./conv.js";
import { fill, freshId, h, say, tinted } from "./dom.js";
import { EDITED, KEPT, OperandsView } from "./operands_view.js";
import { blockSizes, origin } from "./im2col.js";
import { inked } from "./inked.js";
import { choice } from "./layout.js";
import { unread } from "./places.js";
import { sheetOf, whole } from "./paged_grid.js";
import { axesOf, channelIn, countSteps, entriesOf, related, reveal, sceneOf, span, stepAt } from "./unfold_steps.js";
import { CAPTIONS, memoryWords, spelled } from "./unfold_words.js";
import { widget } from "./view.js";
import { groupLetter } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./operands_view.js").State} State */
/** @typedef {import("./im2col.js").Block} Block */
/** @typedef {import("./paged_grid.js").Way} Way */
/** @typedef {import("./unfold_steps.js").Axis} Axis */
/** @typedef {import("./unfold_steps.js").Place} Place */
/** @typedef {import("./unfold_steps.js").Scene} Scene */
/** @typedef {import("./unfold_steps.js").Side} Side */
/** @typedef {import("./unfold_steps.js").Span} Span */
/** @typedef {import("./unfold_steps.js").Spot} Spot */
/** @typedef {import("./unfold_steps.js").Stage} Stage */

/** @type {Record<Stage, string>} */
const STAGE_NAMES = {
  columns: "columns",
  forward: "forward: w·columns",
  weight: "grad_weight: g·columnsᵀ",
  input: "grad_input: wᵀ·g, fold",
};
/** Palette key, symbol and words of each matrix. @type {Record<Stage, Partial<Record<Side, [string, string, string]>>>} */
const TITLES = {
  columns: { top: ["x", "columns", "a window a column"] },
  forward: { left: ["kernel", "w", "a kernel a row"], top: ["x", "columns", ""], result: ["y", "y", "without bias"] },
  weight: { left: ["grad_output", "g", "upstream gradient"], top: ["x", "columnsᵀ", "a window a row"], result: ["result", "grad_weight", "a kernel a row"] },
  input: { left: ["kernel", "wᵀ", "kernels"], top: ["grad_output", "g", "upstream gradient"], result: ["result", "wᵀ·g", "one for every entry"] },
};
/** What PyTorch calls what is made. */
const SHOWN = { forward: "y", weight: "grad_weight", input: "grad_input" };
const SIDES = /** @type {const} */ (["top", "left", "result"]);
const MOST = { r: 16, l: 14, o: 8 }; // rows and columns of a matrix that are drawn at a time
/** @type {import("./grid.js").Border} */
const NO_BORDER = [
  [0, 0],
  [0, 0],
];

class UnfoldView extends OperandsView {
  /** @type {Partial<Record<Way, Spot | null>>} */
  #looks = {};
  /** @type {Block | null} a block that somebody chose, until the next step */
  #pinned = null;
  /** @type {Record<Axis, number>} the first one of each axis that is drawn */
  #starts = { r: 0, l: 0, o: 0 };
  /** @type {Record<string, import("./paged_grid.js").Sheet>} by place, and channel of a map */
  #sheets = {};
  #chosen = "";
  /** @type {Partial<Record<"n" | "k", ReturnType<typeof choice>>>} */
  #rows = {};
  #caption = h("p", { class: "cg-caption", id: freshId("caption") });
  #blocks = h("div", { class: "cg-blocks" });
  #maps = h("div", { class: "cg-maps" });
  #falk = h("div", { class: "cg-falk" });
  #memory = h("div", { class: "cg-memory" });
  #choice;

  /** @param {import("./view.js").Model} model @param {HTMLElement} el */
  constructor(model, el) {
    super(model, "matrix view", ["stage"]);
    this.#choice = choice("make", Object.entries(STAGE_NAMES), this.guard((stage) => this.restart({ stage })));
    this.#choice.el.setAttribute("aria-describedby", this.#caption.id);
    this.show(el, {
      name: "Image and columns",
      kind: "cg-unfold",
      unit: "steps",
      above: [this.#choice.el, this.#blocks, this.#caption],
      stage: ["matrices", this.#falk],
      below: [this.#memory],
      keys: [
        ["arrows at an edge", "on to the padding, and to what is not drawn"],
        ["Enter", "edit a number of x, w or g"],
        ["Escape", "leave a number as it was"],
      ],
    });
  }

  get #stage() {
    return /** @type {Stage} */ (this.state.options.stage);
  }

  /** @param {State} state */
  count({ geometry, options }) {
    return countSteps(geometry, options.stage);
  }

  /** @param {boolean} resized */
  forget(resized) {
    this.#pinned = null;
    this.#looks = resized ? {} : { focus: this.#looks.focus };
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

  /** The sheet of a place: made when it is first drawn. @param {Place} place @param {number} c  channel of a map */
  #sheet(place, c = 0) {
    /** @param {number} a @param {number} b @returns {Spot} */
    const spot = (a, b) => {
      const [rows, cols] = axesOf(this.#stage, place);
      return rows ? { place, [rows]: a, [cols]: b } : { place, c, h: a, v: b };
    };
    return (this.#sheets[place + c] ??= sheetOf({
      edit: this.guard((row, col, value) => this.#edit(spot(row, col), value)),
      refuse: (sentence) => this.complain(sentence),
      look: this.guard((at, way) => this.#look(at && spot(...at), way)),
      turn: this.guard((axis, start) => {
        const name = axesOf(this.#stage, place)[axis];
        if (name) this.#starts[name] = start;
        this.draw();
      }),
    }));
  }

  /** A number of x, w or g, typed where it is drawn. @param {Spot} spot @param {number} value */
  #edit({ r, l, o = 0, c = 0, h: row, v: col }, value) {
    const { geometry: g } = this.state;
    const { n, k } = this.#block;
    const kernel = k * g.OG + o;
    if (row !== undefined) this.editNumber("x", [n, channelIn(g, this.#block, c), row, /** @type {number} */ (col)], value);
    else if (l !== undefined) this.editNumber("grad_output", [n, kernel, ...unravel(l, [g.OH, g.OW])], value);
    else this.editNumber("weight", [kernel, ...unravel(/** @type {number} */ (r), [g.CG, g.KH, g.KW])], value);
  }

  // ---- drawing -------------------------------------------------------------------------------

  /** The step that was done last, or would be done first. */
  get #step() {
    return stepAt(this.state.geometry, this.#stage, Math.max(0, this.head.step - 1));
  }

  /** The image and the group that are shown. @returns {Block} */
  get #block() {
    return this.#pinned ?? this.#step;
  }

  paint() {
    const { head, ui } = this;
    const [stage, block] = [this.#stage, this.#block];
    const { geometry: g, arrays } = this.state;
    const scene = sceneOf(g, arrays, stage, block, head.step);
    const look = head.playing ? null : (this.#looks.hover ?? this.#looks.focus);
    // at either end nothing has just happened, and another block has its own steps
    const moving = !this.#pinned && head.step > 0 && (head.playing || head.step < head.length);
    const spot = look ?? (moving ? this.#step.spot : null);
    this.#choice.show(stage);
    say(this.#caption, CAPTIONS[stage]);
    this.#chooseBlock(g, block);
    this.#place(scene, look ? null : spot, spot);
    const invitation = "Point at a cell, or go to it by Tab and arrow keys. Play shows the steps.";
    fill(ui.spelled, ...tinted(inked(spot ? spelled(scene, spot, !look) : invitation)));
    // room for the longest sum, so that the controls stand still
    ui.root.style.setProperty("--terms", String(Math.min(36, stage === "columns" ? 0 : scene.left.cols)));
    this.#memory.hidden = stage !== "columns";
    if (!this.#memory.hidden) this.#drawMemory(g);
  }

  /**
   * All sheets of the stage in their places.
   * @param {Scene} scene @param {Spot | null} step  which has to be in sight @param {Spot | null} spot
   */
  #place(scene, step, spot) {
    const { g, stage } = scene;
    const sizes = blockSizes(g);
    const belongs = spot && related(g, stage, spot);
    const spans = /** @type {Record<Axis, Span>} */ ({});
    for (const axis of /** @type {const} */ (["r", "l", "o"])) {
      spans[axis] = reveal(span(sizes[axis], MOST[axis], this.#starts[axis]), step?.[axis]);
      this.#starts[axis] = spans[axis].start;
    }
    const placed = [];
    const isInput = stage === "input";
    for (const side of SIDES) {
      const axes = axesOf(stage, side);
      const [rows, cols] = axes;
      const [key, symbol, words] = TITLES[stage][side] ?? [];
      if (!rows || !key) continue;
      const sheet = this.#sheet(side);
      sheet.title(key, symbol ?? "", [words, `${sizes[rows]} × ${sizes[cols]}`].filter(Boolean).join(", "), key === "kernel" || key === "grad_output");
      sheet.write(spans[rows], spans[cols], NO_BORDER, (row, col) => scene.at(side, row, col));
      const mine = spot?.place === side && rows in spot && cols in spot;
      sheet.paint(
        (row, col) => belongs?.inMatrix(side, row, col) ?? 0,
        mine ? /** @type {number[]} */ ([spot[rows], spot[cols]]) : null,
        axes.map((axis) => (k) => axisName(scene, axis, k)),
      );
      const hatched = [];
      for (const { row, col } of side === entriesOf(stage) ? sheet.grid.cells.values() : []) {
        const [a, b] = sheet.absolute(row, col);
        if (!origin(g, ...(rows === "r" ? /** @type {const} */ ([a, b]) : /** @type {const} */ ([b, a]))).cell) hatched.push([row, col]);
      }
      sheet.grid.mark("cg-hatch", hatched);
      sheet.el.dataset.at = side;
      placed.push(sheet.el);
    }
    const maps = indices(g.CG).map((c) => this.#drawMap(scene, isInput ? "image" : "x", c, spot, belongs));
    if (isInput) maps.push(this.#drawMap(scene, "overlap", 0, spot, belongs));
    if (!same(this.#maps, maps)) fill(this.#maps, ...maps);
    // read from left to right: what is given first
    const order = isInput ? [...placed, this.#maps] : [this.#maps, ...placed];
    if (!same(this.#falk, order)) fill(this.#falk, ...order);
    const of = (/** @type {Axis} */ axis) => spans[axis].shown;
    const width = g.W + g.padding[1][0] + g.padding[1][1];
    const across = { columns: width + of("l"), forward: of("r") + of("l"), weight: of("r") + of("l"), input: of("o") + of("l") + width };
    this.#falk.dataset.stage = stage;
    const widest = Math.max(of("l"), of("r"), width);
    const counts = { across: across[stage], widest, map: width, heads: g.CG > 1 ? 48 : 34 };
    for (const [name, count] of Object.entries(counts)) this.#falk.style.setProperty(`--${name}`, `${count}`);
  }

  /**
   * One channel of x or of grad_input, or the counts of the overlaps.
   * @param {Scene} scene @param {"x" | "image" | "overlap"} place @param {number} c
   * @param {Spot | null} spot @param {ReturnType<typeof related> | null} belongs
   */
  #drawMap({ g, block, arrays, sums, counts }, place, c, spot, belongs) {
    const sheet = this.#sheet(place, c);
    const channel = channelIn(g, block, c);
    const isX = place === "x";
    const padded = g.padding.flat().some(Boolean) && place !== "overlap";
    const [key, symbol, words] = {
      x: ["x", "x", "input"],
      image: ["result", "grad_input", "folded back"],
      overlap: ["padding", "overlap", "products that meet"],
    }[place];
    const name = g.C > 1 && place !== "overlap" ? `channel ${channel}` : words;
    const grey = unread(g);
    const border = g.padding_mode !== "zeros" ? `${g.padding_mode} copies` : isX ? "zero padding" : "lost";
    const remarks = [padded && `hatched: ${border}`, isX && grey.length && "grey: read by no window"];
    sheet.title(key, symbol, name, isX, remarks.filter(Boolean).join(" · "));
    sheet.write(whole(g.H), whole(g.W), padded ? g.padding : NO_BORDER, (row, col) => {
      const cell = cellAt(g, row, col);
      if (isX) return cell ? at(arrays.x, block.n, channel, ...cell) : 0;
      const inside = cell && cell[0] === row && cell[1] === col;
      return inside ? (place === "image" ? sums : counts)[ravel([c, row, col], [g.CG, g.H, g.W])] : null;
    });
    if (padded) sheet.grid.openBorder();
    const mine = spot?.place === place && spot.c === c;
    sheet.paint((row, col) => belongs?.inMap(place, c, row, col) ?? 0, mine ? /** @type {number[]} */ ([spot.h, spot.v]) : null);
    sheet.grid.mark("cg-unread", grey);
    return sheet.el;
  }

  /** Rows of buttons for image and group, where there are several. @param {Geometry} g @param {Block} block */
  #chooseBlock(g, block) {
    const wanted = `${g.N} ${g.groups}`;
    if (this.#chosen !== wanted) {
      this.#chosen = wanted;
      /** @param {"n" | "k"} axis @param {string} legend @param {number} count @param {(k: number) => string} name */
      const row = (axis, legend, count, name) =>
        choice(legend, indices(count).map((k) => [`${k}`, name(k)]), this.guard((k) => {
          const { n, k: group } = this.#block;
          this.#pinned = { n, k: group, [axis]: Number(k) };
          this.draw();
        }));
      const rows = { n: row("n", "image", g.N, String), k: row("k", "group", g.groups, groupLetter) };
      fill(this.#blocks, ...(g.N > 1 ? [rows.n.el] : []), ...(g.groups > 1 ? [rows.k.el] : []));
      this.#rows = rows;
    }
    this.#rows.n?.show(`${block.n}`);
    this.#rows.k?.show(`${block.k}`);
  }

  /** @param {Geometry} g */
  #drawMemory(g) {
    const lines = memoryWords(g);
    const most = Math.max(...lines.map(([, , numbers]) => numbers));
    fill(
      this.#memory,
      ...lines.flatMap(([name, key, numbers, words]) => [
        h("b", { class: `cg-ink-${key}` }, name),
        h("i", { class: `cg-of-${key}`, style: `width:${(100 * numbers) / most}%` }),
        h("span", {}, words),
      ]),
    );
  }
}

/** Whether these are an element's children already. @param {Element} el @param {Element[]} children */
const same = (el, children) =>
  children.length === el.childElementCount && children.every((child, k) => child === el.children[k]);

/** The name of a row or column: a kernel, a window, a tap. @param {Scene} scene @param {Axis} axis @param {number} k */
function axisName({ g, block }, axis, k) {
  if (axis === "o") return `o${block.k * g.OG + k}`;
  const { c, i, j, p, q } = axis === "l" ? origin(g, 0, k) : origin(g, k, 0);
  if (axis === "l") return `${p},${q}`;
  return `${g.CG > 1 ? `c${channelIn(g, block, c)} ` : ""}${i},${j}`;
}

/** @type {import("./equip.js").Abilities} */
const abilities = {
  kept: [...KEPT, "stage"],
  choices: { stage: Object.keys(STAGE_NAMES) },
  edited: EDITED,
  code: (get, torch) => {
    const stage = /** @type {Stage} */ (get("stage"));
    return stage === "columns" ? torch.columnsCode(get) : torch.program(get, SHOWN[stage]);
  },
};

export default widget("matrix view", (model, el) => new UnfoldView(model, el), abilities);
