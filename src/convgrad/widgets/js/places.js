// @ts-check
// Where a contribution is in each array, and which cells belong together: indices, no drawing.

import { cellAt, channelOf, indices, paddedSize, readMaps, shapes, source } from "./conv.js";
import { groupLetter } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Target} Target */
/** @typedef {import("./conv.js").Order} Order */
/** @typedef {import("./conv.js").Contribution} Contribution */
/** @typedef {"x" | "weight" | "grad_output"} Operand */
/** An operand, the gradient, or one kernel's share of it. @typedef {Operand | "result" | "share"} Place */

export const OPERANDS = /** @type {const} */ (["x", "weight", "grad_output"]);

/** Which operands a target multiplies. @type {Record<Target, Operand[]>} */
export const FACTORS = {
  weight: ["x", "grad_output"],
  input: ["weight", "grad_output"],
  bias: ["grad_output"],
};

/** What is shown when there is no product at all. @type {Contribution} */
const NOTHING = { n: 0, o: 0, c: 0, p: 0, q: 0, i: 0, j: 0, h: 0, v: 0, cell: null, target: null };

/** @param {readonly number[]} sizes */
export const product = (sizes) => sizes.reduce((all, size) => all * size, 1);

/** Whether two indices lie in the same slice. @param {readonly number[]} a @param {readonly number[]} b */
export const sameSlice = (a, b) => a[0] === b[0] && a[1] === b[1];

/** Whether the tap reads a copy on the border. @param {Contribution} c */
export const copied = (c) => c.cell !== null && (c.cell[0] !== c.h || c.cell[1] !== c.v);

/**
 * The axes of an array that its slices run over.
 * @param {Geometry} g @param {Target} target @param {Place} place
 * @returns {import("./overview.js").Axes}
 */
export function axesOf(g, target, place) {
  const { groups } = g;
  const { x, weight, grad_output } = shapes(g);
  if (place === "result" && target === "bias") {
    return { letters: "", shape: [1, 1, 1, g.O], groupAxis: 0, groups: 1 };
  }
  if (place === "share") {
    return { letters: "no", shape: [1, g.O, g.KH, g.KW], groupAxis: 1, groups };
  }
  if (place === "grad_output") {
    return { letters: "no", shape: grad_output, groupAxis: 1, groups };
  }
  return place === "weight" || (place === "result" && target === "weight")
    ? { letters: "oc", shape: weight, groupAxis: 0, groups }
    : { letters: "nc", shape: x, groupAxis: 1, groups };
}

/** The letter of the group that a slice is in; none where there is one group. @param {import("./overview.js").Axes} axes @param {readonly number[]} slice */
export const groupOfSlice = ({ shape, groupAxis, groups }, slice) =>
  groups > 1 ? groupLetter(Math.floor((slice[groupAxis] * groups) / shape[groupAxis])) : "";

/**
 * The slice of every array that a contribution lies in; the first one's where there is none.
 * @param {Geometry} g @param {Target} target @param {Contribution | null} contribution
 * @returns {Record<Place, number[]>}
 */
export function slicesOf(g, target, contribution) {
  const { n, o, c } = contribution ?? NOTHING;
  const x = [n, channelOf(g, o, c ?? 0)];
  const weight = [o, c ?? 0];
  const result = { weight, input: x, bias: [0, 0] }[target];
  return { x, weight, grad_output: [n, o], result, share: [0, o] };
}

/**
 * Row and column of a contribution in its slice of an array, which may be on the border; null
 * where it has no factor.
 * @param {Target} target @param {Place} place @param {Contribution} c
 */
export function spotIn(target, place, c) {
  if (place === "grad_output") return [c.p, c.q];
  if (target === "bias") return place === "result" ? [0, c.o] : null;
  const onTap = place === "weight" || (place === "result" && target === "weight");
  return onTap ? [Number(c.i), Number(c.j)] : [Number(c.h), Number(c.v)];
}

/**
 * The cells of the padded image that belong together in this order: all that meet the same tap,
 * or all under the same window.
 * @param {Geometry} g @param {Contribution} c @param {Order} order
 */
export function companions(g, c, order) {
  const byTap = order === "tap";
  return table(byTap ? g.OH : g.KH, byTap ? g.OW : g.KW).map(([a, b]) =>
    byTap ? source(g, a, b, Number(c.i), Number(c.j)) : source(g, c.p, c.q, a, b),
  );
}

/** Cells of the image that no window reads. @param {Geometry} g */
export function unread(g) {
  const [rows, cols] = Object.values(readMaps(g)).map((map) => new Set(map.flat()));
  return table(g.H, g.W).filter(([row, col]) => !rows.has(row) || !cols.has(col));
}

/**
 * Everything that reads the place (h, v) of the padded image: output cell and tap.  A cell of the
 * image is also read through its copies on the border.
 * @param {Geometry} g @param {number} h @param {number} v
 * @returns {{p: number, q: number, i: number, j: number, h: number, v: number}[]}
 */
export function readersOf(g, h, v) {
  const inside = h >= 0 && v >= 0 && h < g.H && v < g.W;
  const found = [];
  for (const [p, q] of table(g.OH, g.OW))
    for (const [i, j] of table(g.KH, g.KW)) {
      const place = source(g, p, q, i, j);
      const read = inside ? cellAt(g, ...place) : place;
      if (read && read[0] === h && read[1] === v) found.push({ p, q, i, j, h: place[0], v: place[1] });
    }
  return found;
}

/**
 * How many windows read each row and each column of the padded image; a place is read as often as
 * its row times its column.
 * @param {Geometry} g
 */
export function readCounts(g) {
  const counts = paddedSize(g).map((size) => indices(size).map(() => 0));
  const [[top], [left]] = g.padding;
  for (const [p, i] of table(g.OH, g.KH)) counts[0][source(g, p, 0, i, 0)[0] + top]++;
  for (const [q, j] of table(g.OW, g.KW)) counts[1][source(g, 0, q, 0, j)[1] + left]++;
  return counts;
}

/** All cells of a table. @param {number} rows @param {number} cols @returns {[number, number][]} */
export const table = (rows, cols) =>
  indices(rows * cols).map((k) => [Math.floor(k / cols), k % cols]);
