// @ts-check
// The weight gradient of a grouped convolution by one grouped convolution, as grouped.py and
// correlate.py have it: where every map stands after each step, and what meets what.
//
// A map is one (H, W) or (OH, OW) slice.  Every step arranges maps in a table of rows and columns.

import { forward, geometryOf, groupOf, indices, ravel, shapes } from "./conv.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Operands} Operands */
/** @typedef {{transpose: boolean, per_image: boolean}} Options */
/**
 * One step: x falls apart into groups, is turned (or, wrongly, only reshaped); g becomes a list of
 * kernels; group m = (n, k) of the convolution is computed; the crop; the sum over the images; the
 * turn into the weight's shape; the weight written without groups.
 * @typedef {"start" | "split" | "turn" | "deal" | "list" | "meet" | "crop" | "sum" | "weight" | "dense"} Move
 */
/** A place in a table. @typedef {[number, number]} Place */
/** A map of x, (n, c), of g, (n, o), or of the result, (c in the group, n, o). @typedef {number[]} Index */
/**
 * How one array stands: its shape in letters and numbers, what rows and columns count, and where
 * each map is.  `lap` columns belong to one image, where the columns run over images.
 * @typedef {object} Table
 * @property {string} letters
 * @property {number[]} shape
 * @property {string} rows
 * @property {string} cols
 * @property {number} height
 * @property {number} width
 * @property {number} lap
 * @property {{index: Index, at: Place}[]} maps
 */

// ---- the convolution of one map with another -------------------------------------------------

/** What one map of x and one of g give: x searched with g, stride and dilation exchanged. @param {Geometry} g */
export const swapped = (g) =>
  geometryOf({
    ...g,
    N: 1,
    C: 1,
    O: 1,
    KH: g.OH,
    KW: g.OW,
    stride: g.dilation,
    dilation: g.stride,
    groups: 1,
  });

/** Rows and columns of taps that do not exist, because a leftover holds another dilation step. @param {Geometry} g */
export const surplus = (g) => g.leftover.map((left, axis) => Math.floor(left / g.dilation[axis]));

/** A slice of an array as a small array of its own. @param {import("./conv.js").Tensor} tensor @param {number} a @param {number} b */
export function mapOf({ shape, data }, a, b) {
  const size = shape[2] * shape[3];
  const start = ravel([a, b], shape) * size;
  return { shape: [1, 1, shape[2], shape[3]], data: indices(size).map((k) => data[start + k]) };
}

/**
 * Map (nx, c) of x searched with map (n, o) of g, uncropped.
 * @param {Geometry} g @param {Operands} arrays @param {Place} ofX @param {Place} ofG
 */
export function meet(g, { x, grad_output }, [nx, c], [n, o]) {
  const search = swapped(g);
  const taps = forward(search, { x: mapOf(x, nx, c), weight: mapOf(grad_output, n, o) });
  return { rows: search.OH, cols: search.OW, data: taps };
}

// ---- where the maps go -----------------------------------------------------------------------

/** The steps, from how the arrays come to the end. @param {Geometry} g @param {Options} options @returns {{move: Move, m: number}[]} */
export function movesOf(g, { transpose, per_image }) {
  const crop = Math.max(...surplus(g)) > 0;
  const groups = indices(g.N * g.groups);
  /** @type {[Move, boolean][]} */
  const after = [
    ["crop", crop],
    ["sum", !per_image],
    ["weight", true],
    ["dense", !per_image && g.groups > 1],
  ];
  /** @type {Move[]} */
  const before = ["start", ...(transpose ? /** @type {Move[]} */ (["split", "turn"]) : /** @type {Move[]} */ (["deal"])), "list"];
  return [
    ...before.map((move) => ({ move, m: -1 })),
    ...groups.map((m) => ({ move: /** @type {Move} */ ("meet"), m })),
    ...after.filter(([, needed]) => needed).map(([move]) => ({ move, m: groups.length })),
  ];
}

/** The map of x that is channel c of group m in the convolution. @param {Geometry} g @param {boolean} transpose @param {number} c @param {number} m @returns {Place} */
export function standsAt(g, transpose, c, m) {
  if (transpose) return [Math.floor(m / g.groups), (m % g.groups) * g.CG + c];
  const flat = c * g.N * g.groups + m; // only reshaped: counted off in the order of memory
  return [Math.floor(flat / g.C), flat % g.C];
}

/** The group of the convolution in which kernel o of image n is. @param {Geometry} g @param {number} n @param {number} o */
export const groupAt = (g, n, o) => n * g.groups + groupOf(g, o);

/** What x, g and the result look like after a step. @param {Geometry} g @param {Options} options @param {Move[]} done  the moves so far @param {number} m  the last group that is computed */
export function tablesOf(g, { transpose, per_image }, done, m) {
  const { N, C, O, CG, groups: G } = g;
  const has = (/** @type {Move} */ move) => done.includes(move);
  const images = "images";
  const blocks = "image and group";
  const within = "channels of a group";
  /** @type {(letters: string, shape: number[], rows: string, cols: string, lap: number, maps: {index: Index, at: Place}[], size?: Place) => Table} */
  const table = (letters, shape, rows, cols, lap, maps, [height, width] = [shape[0], shape[1]]) => ({ letters, shape, rows, cols, lap, maps, height, width });
  const sizes = shapes(g);
  const [, , H, W] = sizes.x;
  const [, , OH, OW] = sizes.grad_output;
  const ofX = indices(N).flatMap((n) => indices(C).map((c) => [n, c]));
  const ofG = indices(N).flatMap((n) => indices(O).map((o) => [n, o]));

  let x = table("N, C, H, W", [N, C, H, W], images, "channels", C, ofX.map(([n, c]) => ({ index: [n, c], at: [n, c] })));
  if (has("turn") || has("deal")) {
    const maps = indices(CG).flatMap((c) => indices(N * G).map((k) => ({ index: standsAt(g, transpose, c, k), at: /** @type {Place} */ ([c, k]) })));
    x = table("C/G, N·G, H, W", [CG, N * G, H, W], within, blocks, G, maps);
  } else if (has("split")) {
    const maps = ofX.map(([n, c]) => ({ index: [n, c], at: /** @type {Place} */ ([n * G + Math.floor(c / CG), c % CG]) }));
    x = table("N·G, C/G, H, W", [N * G, CG, H, W], blocks, within, CG, maps);
  }
  const upstream = has("list")
    ? table("N·O, 1, OH, OW", [N * O, 1, OH, OW], "", "kernels of all images", O, ofG.map(([n, o]) => ({ index: [n, o], at: [0, n * O + o] })), [1, N * O])
    : table("N, O, OH, OW", [N, O, OH, OW], images, "kernels", O, ofG.map(([n, o]) => ({ index: [n, o], at: [n, o] })));

  const [more, wider] = has("crop") ? [0, 0] : surplus(g);
  const [KH, KW] = [g.KH + more, g.KW + wider];
  const made = ofG.filter(([n, o]) => groupAt(g, n, o) <= m).flatMap(([n, o]) => indices(CG).map((c) => [c, n, o]));
  /** @type {(at: (c: number, n: number, o: number) => Place) => {index: Index, at: Place}[]} */
  const placed = (at) => made.map(([c, n, o]) => ({ index: [c, n, o], at: at(c, n, o) }));
  let result = table("C/G, N·O, KH, KW", [CG, N * O, KH, KW], within, "kernels of all images", O, placed((c, n, o) => [c, n * O + o]));
  if (has("dense")) {
    result = table("O, C, KH, KW", [O, C, KH, KW], "kernels", "channels", C, placed((c, _n, o) => [o, groupOf(g, o) * CG + c]));
  } else if (has("weight")) {
    result = per_image
      ? table("N, O, C/G, KH, KW", [N, O, CG, KH, KW], "image and kernel", within, CG, placed((c, n, o) => [n * O + o, c]), [N * O, CG])
      : table("O, C/G, KH, KW", [O, CG, KH, KW], "kernels", within, CG, placed((c, _n, o) => [o, c]));
  } else if (has("sum")) result = table("C/G, O, KH, KW", [CG, O, KH, KW], within, "kernels", O, placed((c, _n, o) => [c, o]));
  return { x, g: upstream, result };
}

// ---- numbers ---------------------------------------------------------------------------------

/**
 * The share of image n in block (o, c) of the gradient, KH·KW numbers, cropped; with `transpose`
 * false, what stands in its place then.
 * @param {Geometry} g @param {Operands} arrays @param {boolean} transpose
 * @param {number} c  within the group @param {number} n @param {number} o
 */
export function share(g, arrays, transpose, c, n, o) {
  const { cols, data } = meet(g, arrays, standsAt(g, transpose, c, groupAt(g, n, o)), [n, o]);
  return indices(g.KH * g.KW).map((k) => data[Math.floor(k / g.KW) * cols + (k % g.KW)]);
}

/** The shares of all images added up. @param {number[][]} shares */
export const total = (shares) => shares.reduce((sum, each) => sum.map((value, k) => value + each[k]));

/** Block (o, c) of the gradient. @param {Geometry} g @param {Operands} arrays @param {boolean} transpose @param {number} c @param {number} o */
export const blockOf = (g, arrays, transpose, c, o) => total(indices(g.N).map((n) => share(g, arrays, transpose, c, n, o)));
