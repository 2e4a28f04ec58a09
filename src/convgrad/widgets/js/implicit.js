// @ts-check
// The convolution and its gradients as products of matrices that nobody stores: their sizes, and
// where an entry lies.  Mirrors convgrad's implicit.py.

import { cellAt, paddedSize, source } from "./conv.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {"weight" | "forward" | "input"} Target */
/** @typedef {"x" | "weight" | "grad_output"} Operand */
/** @typedef {{M: number, N: number, K: number, groups: number}} Gemm */
/** An entry: the index in its array, null where it is the number zero, and the cell of the border that it is read through. @typedef {{index: number[] | null, from?: [number, number], tap?: number[]}} Entry */

/** @type {Target[]} */
export const TARGETS = ["weight", "forward", "input"];
/** The arrays in which the entries of the left and of the right matrix lie. @type {Record<Target, [Operand, Operand]>} */
export const OPERANDS = {
  weight: ["grad_output", "x"],
  forward: ["x", "weight"],
  input: ["grad_output", "weight"],
};

/** What the kernels are given: a border that is no zeros is put on before. @param {Geometry} g @returns {Geometry} */
export function plain(g) {
  if (g.padding_mode === "zeros") return g;
  const [H, W] = paddedSize(g);
  return { ...g, H, W, padding: [[0, 0], [0, 0]], padding_mode: "zeros" };
}

/** @param {Geometry} geometry @param {Target} target @returns {Gemm} */
export function gemm(geometry, target) {
  const g = target === "input" ? plain(geometry) : geometry;
  const windows = g.N * g.OH * g.OW;
  const taps = g.KH * g.KW;
  if (target === "weight") return { M: g.OG, N: g.CG * taps, K: windows, groups: g.groups };
  if (target === "forward") return { M: windows, N: g.OG, K: g.CG * taps, groups: g.groups };
  return { M: g.N * g.H * g.W, N: g.CG, K: g.OG * taps, groups: g.groups };
}

/** Three indices from one number; the last two run to A and B. @param {number} k @param {number} A @param {number} B */
export const three = (k, A, B) => [Math.floor(k / (A * B)), Math.floor(k / B) % A, k % B];

/** g[n, o, p, q] of kernel o and window k. @param {Geometry} g @param {number} group @param {number} o @param {number} k @returns {Entry} */
function output(g, group, o, k) {
  const [n, p, q] = three(k, g.OH, g.OW);
  return { index: [n, group * g.OG + o, p, q] };
}

/** x[n, c, h, v] of window k and column r. @param {Geometry} g @param {number} group @param {number} k @param {number} r @returns {Entry} */
function window(g, group, k, r) {
  const [n, p, q] = three(k, g.OH, g.OW);
  const [c, i, j] = three(r, g.KH, g.KW);
  const from = source(g, p, q, i, j);
  const cell = cellAt(g, ...from);
  return { index: cell && [n, group * g.CG + c, ...cell], from, tap: [i, j] };
}

/** g[n, o, p, q] of the output whose tap reads cell m; k is kernel and tap. @param {Geometry} geometry @param {number} group @param {number} m @param {number} k @returns {Entry} */
function reader(geometry, group, m, k) {
  const g = plain(geometry);
  const [n, ...cell] = three(m, g.H, g.W);
  const [o, ...tap] = three(k, g.KH, g.KW);
  // source, solved for p and q: the stride must divide what is left
  const place = cell.map((at, axis) => (at + g.padding[axis][0] - g.dilation[axis] * tap[axis]) / g.stride[axis]);
  const meets = place.every((at, axis) => Number.isInteger(at) && at >= 0 && at < [g.OH, g.OW][axis]);
  return { index: meets ? [n, group * g.OG + o, ...place] : null, tap };
}

/** An entry of the left matrix. @param {Geometry} g @param {Target} target @param {number} group @param {number} row @param {number} k @returns {Entry} */
export const left = (g, target, group, row, k) => ({ weight: output, forward: window, input: reader })[target](g, group, row, k);

/** An entry of the right matrix. @param {Geometry} g @param {Target} target @param {number} group @param {number} k @param {number} col @returns {Entry} */
export function right(g, target, group, k, col) {
  if (target === "weight") return window(g, group, k, col);
  const [first, i, j] = three(k, g.KH, g.KW);
  return { index: target === "forward" ? [group * g.OG + col, first, i, j] : [group * g.OG + first, col, i, j] };
}

/** Where an entry of the product lies in grad_weight, y or grad_input. @param {Geometry} g @param {Target} target @param {number} group @param {number} row @param {number} col @returns {number[]} */
export function result(g, target, group, row, col) {
  if (target === "weight") return [group * g.OG + row, ...three(col, g.KH, g.KW)];
  if (target === "forward") return /** @type {number[]} */ (output(g, group, col, row).index);
  const { H, W } = plain(g);
  const [n, h, v] = three(row, H, W);
  return [n, group * g.CG + col, h, v];
}

/** The shape of an operand. @param {Geometry} g @param {Operand} name */
export const shapeOf = (g, name) => ({ x: [g.N, g.C, g.H, g.W], weight: [g.O, g.CG, g.KH, g.KW], grad_output: [g.N, g.O, g.OH, g.OW] })[name];
