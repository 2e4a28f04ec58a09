// @ts-check
// UnfoldMatrix as plain values: what each step does, what stands in each matrix, and which cells
// belong together.  No page.
//
// Every cell of a matrix has two of three coordinates: r = (c, i, j), a row of the columns;
// l = (p, q), a window; o, a kernel of the group.  Cells of two matrices belong together where they
// agree in the coordinate that both have.

import { channelOf, indices, ravel } from "./conv.js";
import { blockSizes, fold, kernelRows, matrix, multiply, origin, transpose, unfold, upstreamRows } from "./im2col.js";
import { readersOf } from "./places.js";
import { clamp } from "./player.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Operands} Operands */
/** @typedef {import("./im2col.js").Block} Block */
/** @typedef {import("./im2col.js").Matrix} Matrix */
/** What is made: the columns, or one of the three products. @typedef {"columns" | "forward" | "weight" | "input"} Stage */
/** @typedef {"r" | "l" | "o"} Axis */
/** The matrices, as they stand around each other. @typedef {"left" | "top" | "result"} Side */
/** A matrix, or a map: x, grad_input, or how many products meet. @typedef {Side | "x" | "image" | "overlap"} Place */
/**
 * A cell, or a whole window or row where a coordinate is missing; in a map it is (c, h, v), with c
 * in the group.
 * @typedef {{place: Place} & Partial<Record<Axis | "c" | "h" | "v", number>>} Spot
 */

/** @type {Record<Stage, Partial<Record<Place, string>>>} */
const AXES = {
  columns: { top: "rl" },
  forward: { top: "rl", left: "or", result: "ol" },
  weight: { top: "lr", left: "ol", result: "or" },
  input: { top: "ol", left: "ro", result: "rl" },
};

/** The coordinates of a matrix, of its rows and of its columns; none for a map. @param {Stage} stage @param {Place} place */
export const axesOf = (stage, place) => /** @type {[Axis, Axis]} */ ([...(AXES[stage][place] ?? "")]);

/** The matrix whose entries belong to image cells. @param {Stage} stage @returns {Side} */
export const entriesOf = (stage) => (stage === "input" ? "result" : "top");

// ---- steps -----------------------------------------------------------------------------------

/** Steps that one block takes. @param {Geometry} g @param {Stage} stage */
function stepsOfBlock(g, stage) {
  const { r, l, o } = blockSizes(g);
  return { columns: l, forward: o * l, weight: o * r, input: r * l + l }[stage];
}

/** @param {Geometry} g @param {Stage} stage */
export const countSteps = (g, stage) => g.N * g.groups * stepsOfBlock(g, stage);

/**
 * The block and the spot of step number `k`, from 0, image by image and group by group: a column
 * that is written (l alone, in `top`), a cell of the product, a column that is folded (l alone).
 * @param {Geometry} g @param {Stage} stage @param {number} k
 * @returns {Block & {spot: Spot}}
 */
export function stepAt(g, stage, k) {
  const { r: R, l: L, o: O } = blockSizes(g);
  const each = stepsOfBlock(g, stage);
  const b = Math.floor(k / each);
  const at = k % each;
  const place = stage === "columns" ? "top" : "result";
  /** @type {Spot} */
  let spot = { place, l: at };
  if (stage === "weight") spot = { place, o: Math.floor(at / R), r: at % R };
  else if (stage === "forward") spot = { place, o: at % O, l: Math.floor(at / O) }; // window by window
  else if (stage === "input") {
    spot = at < R * L ? { place, r: at % R, l: Math.floor(at / R) } : { place, l: at - R * L };
  }
  return { n: Math.floor(b / g.groups), k: b % g.groups, spot };
}

/** How many steps of a block are done. @param {Geometry} g @param {Stage} stage @param {Block} block @param {number} step */
export function doneOf(g, stage, { n, k }, step) {
  const each = stepsOfBlock(g, stage);
  return clamp(step - (n * g.groups + k) * each, 0, each);
}

// ---- numbers ---------------------------------------------------------------------------------

/** The two factors of a stage's product. @param {Geometry} g @param {Operands} arrays @param {Stage} stage @param {Block} block @returns {[Matrix, Matrix]} */
export function factorsOf(g, { x, weight, grad_output }, stage, block) {
  if (stage === "weight") return [upstreamRows(g, grad_output, block), transpose(unfold(g, x, block))];
  const kernels = kernelRows(g, weight, block);
  if (stage === "input") return [transpose(kernels), upstreamRows(g, grad_output, block)];
  return [kernels, unfold(g, x, block)];
}

/**
 * All that one block shows after `step` steps.
 * @typedef {object} Scene
 * @property {Geometry} g
 * @property {Operands} arrays
 * @property {Stage} stage
 * @property {Block} block
 * @property {Matrix} left
 * @property {Matrix} top
 * @property {Matrix} result  the product, complete and of this block alone
 * @property {(side: Side, row: number, col: number) => number | null} at  null in what is still empty
 * @property {number} folded  columns that are folded back
 * @property {Float64Array} sums  grad_input so far, in the shape (C/G, H, W)
 * @property {Float64Array} counts  products that have met in each cell so far, in the same shape
 */

/** @param {Geometry} g @param {Operands} arrays @param {Stage} stage @param {Block} block @param {number} step @returns {Scene} */
export function sceneOf(g, arrays, stage, block, step) {
  const [left, top] = factorsOf(g, arrays, stage, block);
  const result = multiply(left, top);
  const done = doneOf(g, stage, block, step);
  const { rows, cols } = result;
  // the weight gradient adds up over the images, as far as each has come
  const shares = stage === "weight" ? indices(g.N).map(shareOf) : [];
  /** @param {number} n */
  function shareOf(n) {
    const each = { n, k: block.k };
    const product = n === block.n ? result : multiply(...factorsOf(g, arrays, stage, each));
    return { product, until: doneOf(g, stage, each, step) };
  }
  /** @type {Scene["at"]} */
  const at = (side, row, col) => {
    if (side === "left") return left.data[row * left.cols + col];
    if (side === "top") return stage !== "columns" || col < done ? top.data[row * top.cols + col] : null;
    const place = row * cols + col;
    if (stage !== "weight") return col * rows + row < done ? result.data[place] : null;
    const made = shares.filter(({ until }) => place < until);
    return made.length ? made.reduce((sum, { product }) => sum + product.data[place], 0) : null;
  };
  const folded = stage === "input" ? Math.max(0, done - rows * cols) : 0;
  const isInput = stage === "input";
  const sums = isInput ? fold(g, result, folded) : new Float64Array();
  const counts = isInput ? fold(g, matrix(rows, cols, () => 1), folded) : sums;
  return { g, arrays, stage, block, left, top, result, at, folded, sums, counts };
}

// ---- what belongs together -------------------------------------------------------------------

/** The channel of x behind channel c of a block. @param {Geometry} g @param {Block} block @param {number} c */
export const channelIn = (g, { k }, c) => channelOf(g, k * g.OG, c);

/**
 * The entries (r, l) that copy the cell of a map; of a place on the border, those that read it.
 * @param {Geometry} g @param {number} c @param {number} h @param {number} v
 */
export const copiesOf = (g, c, h, v) =>
  readersOf(g, h, v).map(({ p, q, i, j }) => [
    ravel([c, i, j], [g.CG, g.KH, g.KW]),
    ravel([p, q], [g.OH, g.OW]),
  ]);

/**
 * What belongs to a spot, as questions about any cell of a matrix and about any place of a map:
 * 2 for partners, which stand out, 1 for company in the background, 0 for none.
 * @param {Geometry} g @param {Stage} stage @param {Spot} spot
 */
export function related(g, stage, { place, r, l, o, c, h, v }) {
  const entries = entriesOf(stage);
  const onMap = h !== undefined && v !== undefined;
  const isEntry = place === entries && r !== undefined && l !== undefined;
  const from = isEntry ? origin(g, r, l) : null;
  const [ch, row, col] = onMap ? [c, h, v] : from?.cell ? [from.c, ...from.cell] : [];
  const copies = new Set(
    row === undefined ? [] : channels(g, place === "overlap" ? undefined : ch).flatMap((k) => copiesOf(g, k, row, /** @type {number} */ (col)).map(String)),
  );
  /** @type {Set<string>} places of the maps under the spot's tap and window */
  const under = new Set();
  if (!onMap && (r !== undefined || l !== undefined)) {
    const sizes = blockSizes(g);
    for (const rr of r === undefined ? indices(sizes.r) : [r]) {
      for (const ll of l === undefined ? indices(sizes.l) : [l]) {
        const at = origin(g, rr, ll);
        under.add(`${[at.c, at.h, at.v]}`);
        if (isEntry && at.cell) under.add(`${[at.c, ...at.cell]}`);
      }
    }
  }
  const window = r === undefined && o === undefined;
  /** @type {Partial<Record<Axis, number>>} */
  const known = { r, l, o };
  return {
    /** @param {Side} side @param {number} a @param {number} b */
    inMatrix(side, a, b) {
      const axes = axesOf(stage, side);
      if (side === entries && copies.size) {
        const [at, bt] = axes[0] === "r" ? [a, b] : [b, a];
        if (copies.has(`${[at, bt]}`)) return onMap ? 2 : 1;
      }
      if (onMap) return 0;
      if (side === place && !window) return 0;
      const shared = axes.map((axis, k) => (known[axis] === undefined ? null : known[axis] === [a, b][k]));
      const agrees = shared.some((each) => each !== null) && !shared.includes(false);
      return agrees ? (isEntry && stage !== "input" ? 1 : 2) : 0;
    },
    /** @param {"x" | "image" | "overlap"} map @param {number} channel @param {number} a @param {number} b */
    inMap(map, channel, a, b) {
      if (onMap) return map !== place && a === h && b === v ? 2 : 0;
      return under.has(`${[channel, a, b]}`) ? (isEntry || window ? 2 : 1) : 0;
    },
  };
}

/** One channel of the group, or all. @param {Geometry} g @param {number | undefined} c */
const channels = (g, c) => (c === undefined ? indices(g.CG) : [c]);

// ---- which part is drawn ---------------------------------------------------------------------

/** The part of an axis that is drawn: `shown` of `size`, from `start`. @typedef {{start: number, shown: number, size: number}} Span */

/** @param {number} size @param {number} most @param {number} start @returns {Span} */
export function span(size, most, start) {
  const shown = Math.min(size, most);
  return { start: clamp(start, 0, size - shown), shown, size };
}

/** The span moved as little as is needed for `index` to be in it. @param {Span} span @param {number | undefined} index @returns {Span} */
export const reveal = ({ start, shown, size }, index = start) => ({
  start: clamp(start, index - shown + 1, index),
  shown,
  size,
});
