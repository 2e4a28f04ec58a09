// @ts-check
// The convolution as matrix products, as im2col.py has it: windows as columns, products of
// matrices, and the fold back.  Which cell a tap reads is asked of conv.js alone.
//
// One block is one image n and one group k: r = (c, i, j) counts the rows of its columns, with c in
// the group, and l = (p, q) the windows.

import { cellAt, channelOf, source, unravel } from "./conv.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Pair} Pair */
/** @typedef {import("./conv.js").Tensor} Tensor */
/** An image and a group. @typedef {{n: number, k: number}} Block */
/** A table of numbers, row by row. @typedef {{rows: number, cols: number, data: Float64Array}} Matrix */
/**
 * What one entry of the columns copies: channel in the group, tap, window, and the place in that
 * channel; `cell` is the image cell, null where zero padding is.
 * @typedef {object} Origin
 * @property {number} c
 * @property {number} i
 * @property {number} j
 * @property {number} p
 * @property {number} q
 * @property {number} h
 * @property {number} v
 * @property {Pair | null} cell
 */

/** How many rows r, windows l and kernels o a block has. @param {Geometry} g */
export const blockSizes = (g) => ({ r: g.CG * g.KH * g.KW, l: g.OH * g.OW, o: g.OG });

/** Where entry (r, l) of the columns comes from, the same in every block. @param {Geometry} g @param {number} r @param {number} l @returns {Origin} */
export function origin(g, r, l) {
  const [c, i, j] = unravel(r, [g.CG, g.KH, g.KW]);
  const [p, q] = unravel(l, [g.OH, g.OW]);
  const [h, v] = source(g, p, q, i, j);
  return { c, i, j, p, q, h, v, cell: cellAt(g, h, v) };
}

/** @param {number} rows @param {number} cols @param {(row: number, col: number) => number} at @returns {Matrix} */
export function matrix(rows, cols, at) {
  const data = new Float64Array(rows * cols);
  for (let k = 0; k < data.length; k++) data[k] = at(Math.floor(k / cols), k % cols);
  return { rows, cols, data };
}

/** Every window of one block as a column, r × l. @param {Geometry} g @param {Tensor} x @param {Block} block */
export function unfold(g, x, { n, k }) {
  const { r: R, l: L } = blockSizes(g);
  return matrix(R, L, (r, l) => {
    const { c, cell } = origin(g, r, l);
    const map = n * g.C + channelOf(g, k * g.OG, c);
    return cell ? x.data[(map * g.H + cell[0]) * g.W + cell[1]] : 0;
  });
}

/**
 * The entries of a block's first `to` columns, added back to the cells they came from: the group's
 * channels, flat in the shape (C/G, H, W).
 * @param {Geometry} g @param {Matrix} columns @param {number} [to]
 */
export function fold(g, columns, to = columns.cols) {
  const sums = new Float64Array(g.CG * g.H * g.W);
  columns.data.forEach((value, at) => {
    const l = at % columns.cols;
    const { c, cell } = origin(g, Math.floor(at / columns.cols), l);
    // += and not =: windows overlap; what was computed for padding has no cell to go to
    if (cell && l < to) sums[(c * g.H + cell[0]) * g.W + cell[1]] += value;
  });
  return sums;
}

/** @param {Matrix} a @param {Matrix} b */
export const multiply = (a, b) =>
  matrix(a.rows, b.cols, (row, col) => {
    let sum = 0;
    for (let k = 0; k < a.cols; k++) sum += a.data[row * a.cols + k] * b.data[k * b.cols + col];
    return sum;
  });

/** @param {Matrix} a */
export const transpose = (a) => matrix(a.cols, a.rows, (row, col) => a.data[col * a.cols + row]);

/** The group's kernels, each as a row, o × r. @param {Geometry} g @param {Tensor} weight @param {Block} block */
export function kernelRows(g, weight, { k }) {
  const { r, o } = blockSizes(g);
  return matrix(o, r, (row, col) => weight.data[(k * o + row) * r + col]);
}

/** The block's maps of the upstream gradient, each as a row, o × l. @param {Geometry} g @param {Tensor} grad_output @param {Block} block */
export function upstreamRows(g, grad_output, { n, k }) {
  const { l, o } = blockSizes(g);
  return matrix(o, l, (row, col) => grad_output.data[(n * g.O + k * o + row) * l + col]);
}

/**
 * What the whole batch takes in numbers: x, its columns, and x with its border, which is all that a
 * view of the windows needs.
 * @param {Geometry} g
 */
export function memory(g) {
  const { r, l } = blockSizes(g);
  const [[top, bottom], [left, right]] = g.padding;
  const maps = g.N * g.C;
  const padded = maps * (g.H + top + bottom) * (g.W + left + right);
  return { image: maps * g.H * g.W, padded, columns: g.N * g.groups * r * l };
}
