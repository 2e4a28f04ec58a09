// @ts-check
// GradientViews as plain values: how many steps each view has, what each one does, and the numbers.
// No page.  A view of one image, one channel and one kernel is the backward pass of a convolution
// that has nothing else; its products are those of im2col.js, its places those of conv.js.

import { cellAt, channelOf, geometryOf, groupOf, indices, source, spanOf, unravel } from "./conv.js";
import { mapOf, surplus, swapped } from "./grouped.js";
import { fold, kernelRows, matrix, multiply, transpose, unfold, upstreamRows } from "./im2col.js";
import { table } from "./places.js";
import { clamp } from "./player.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Operands} Operands */
/** @typedef {import("./conv.js").Pair} Pair */
/** @typedef {import("./places.js").Operand} Operand */
/** @typedef {"kernels" | "scatter-gather" | "convolution" | "batch"} Name */
/** What is shown: image n, kernel o, and channel c within the kernel's group. @typedef {{n: number, o: number, c: number}} Slices */

// ---- steps -----------------------------------------------------------------------------------

/**
 * A kernel, a cell of g that throws and then a cell of x that collects, a tap and then the crop, an
 * image's group: one step each.
 * @param {Geometry} g @param {Name} view
 */
export function countSteps(g, view) {
  if (view === "kernels") return g.O;
  if (view === "scatter-gather") return g.OH * g.OW + g.H * g.W;
  if (view === "batch") return g.N * g.groups;
  const [rows, cols] = searchSize(g);
  const taps = rows * cols;
  return taps + (taps > g.KH * g.KW ? 1 : 0);
}

/** Image, kernel and channel that exist. @param {Geometry} g @param {{image: number, kernel: number, channel: number}} wish @returns {Slices} */
export const slicesOf = (g, { image, kernel, channel }) => ({
  n: clamp(image, 0, g.N - 1),
  o: clamp(kernel, 0, g.O - 1),
  c: clamp(channel, 0, g.CG - 1),
});

// ---- one image, one channel, one kernel --------------------------------------------------------

const ONLY = { n: 0, k: 0 };

/** @param {Geometry} g */
const alone = (g) => geometryOf({ ...g, N: 1, C: 1, O: 1, groups: 1 });

/**
 * Kernel o's share of grad_input[n, channel], H·W numbers: g·w of every window, folded back; of
 * the first `to` windows alone, if so many are given.
 * @param {Geometry} g @param {Operands} arrays @param {Slices} slices @param {number} [to]
 */
export function inputShare(g, { weight, grad_output }, { n, o, c }, to) {
  const one = alone(g);
  const taps = transpose(kernelRows(one, mapOf(weight, o, c), ONLY));
  return fold(one, multiply(taps, upstreamRows(one, mapOf(grad_output, n, o), ONLY)), to);
}

/** x ⋆ g of these slices: stride and dilation have changed places, and nothing is cropped. @param {Geometry} g @param {Operands} arrays @param {Slices} slices */
export function searched(g, { x, grad_output }, { n, o, c }) {
  const search = swapped(g);
  const columns = unfold(search, mapOf(x, n, channelOf(g, o, c)), ONLY);
  return multiply(kernelRows(search, mapOf(grad_output, n, o), ONLY), columns).data;
}

/** Image n's share of grad_weight[o, c], KH·KW numbers. @param {Geometry} g @param {Operands} arrays @param {Slices} slices */
export function weightShare(g, arrays, slices) {
  const taps = searched(g, arrays, slices);
  const [, cols] = searchSize(g);
  return table(g.KH, g.KW).map(([i, j]) => taps[i * cols + j]);
}

/** Shares added up. @param {ArrayLike<number>[]} shares */
export const total = (shares) => Array.from(shares[0], (_, k) => shares.reduce((sum, each) => sum + each[k], 0));

/** The kernels that read the same channels as kernel o. @param {Geometry} g @param {number} o */
export const groupmates = (g, o) => indices(g.OG).map((k) => groupOf(g, o) * g.OG + k);

// ---- scatter and gather ----------------------------------------------------------------------

/** Where the cell (p, q) of g throws: all places of its window, of which some may be padding. @param {Geometry} g @param {number} p @param {number} q */
export const windowOf = (g, p, q) =>
  table(g.KH, g.KW).map(([i, j]) => {
    const place = source(g, p, q, i, j);
    return { i, j, place, cell: cellAt(g, ...place) };
  });

/** Where a tap stands in the kernel turned by 180°; and which tap stands there. @param {Geometry} g @param {number} i @param {number} j @returns {Pair} */
export const turned = (g, i, j) => [g.KH - 1 - i, g.KW - 1 - j];

/** The image cell that most products reach, the middle one of several: shown while nobody looks. @param {Geometry} g @returns {Pair} */
export function busiest(g) {
  const one = alone(g);
  const counts = fold(one, matrix(g.KH * g.KW, g.OH * g.OW, () => 1));
  const most = Math.max(...counts);
  const best = [...counts.keys()].filter((at) => counts[at] === most);
  return /** @type {Pair} */ (unravel(best[best.length >> 1], [g.H, g.W]));
}

// ---- as a convolution ------------------------------------------------------------------------

/** Rows and columns of x ⋆ g before the crop. @param {Geometry} g @returns {Pair} */
export function searchSize(g) {
  const [rows, cols] = surplus(g);
  return [g.KH + rows, g.KW + cols];
}

/** The cells of g where they stand when they are as far apart as the stride: row, column, and p, q. @param {Geometry} g */
export function spread(g) {
  const search = swapped(g);
  const [[top], [left]] = g.padding;
  const cells = table(g.OH, g.OW).map(([p, q]) => {
    const [row, col] = source(search, 0, 0, p, q);
    return { row: row + top, col: col + left, p, q };
  });
  return { size: spanOf(search), cells };
}

/**
 * The places of x under the cells of g when g lies at tap (i, j), in the order of g; the tap may be
 * one that is cropped.
 * @param {Geometry} g @param {number} i @param {number} j
 */
export const underneath = (g, i, j) => table(g.OH, g.OW).map(([p, q]) => source(g, p, q, i, j));

// ---- image by image --------------------------------------------------------------------------

/** Image and group of step number `step`, from 1. @param {Geometry} g @param {number} step */
export const pageAt = (g, step) => {
  const [n, k] = unravel(Math.max(0, step - 1), [g.N, g.groups]);
  return { n, k };
};

/** Whether image n of group k has been added after so many steps. @param {Geometry} g @param {number} step @param {number} n @param {number} k */
export const isAdded = (g, step, n, k) => n * g.groups + k < step;

/** The kernel of group k that has the same place in its group as kernel o. @param {Geometry} g @param {number} o @param {number} k */
export const kernelIn = (g, o, k) => k * g.OG + (o % g.OG);

// ---- what can be edited ----------------------------------------------------------------------

/**
 * The number of x, w or g that stands at (row, col) of the grid x, w or g in a view; null where
 * there is none, between two cells of g that are spread.
 * @param {Geometry} g @param {Name} view @param {Slices} slices @param {string} place @param {number} row @param {number} col
 * @returns {[Operand, number[]] | null}
 */
export function operandAt(g, view, { n, o, c }, place, row, col) {
  if (place === "x") return ["x", [n, channelOf(g, o, c), row, col]];
  if (place === "w") return ["weight", [o, c, row, col]];
  if (view !== "convolution") return ["grad_output", [n, o, row, col]];
  const cell = spread(g).cells.find((each) => each.row === row && each.col === col);
  return cell ? ["grad_output", [n, o, cell.p, cell.q]] : null;
}
