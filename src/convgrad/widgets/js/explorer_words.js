// @ts-check
// The sizes of a convolution as formulas with the numbers put in, and what is looked at in words.
// The formulas are those of explorer_words.py; a test compares them.

import { cellAt, paddedSize, source, spanOf } from "./conv.js";
import { readCounts, readersOf } from "./places.js";
import { formatNumber } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Spec} Spec */
/** @typedef {{name: "x" | "y", index: [number, number]}} Spot */

const AXES = /** @type {const} */ ([
  ["row", "OH", "H", "KH"],
  ["column", "OW", "W", "KW"],
]);

/** Whether there is nothing to see in the other axis: one row, one tap, no padding. @param {Spec} g */
export const isOneDimensional = (g) => g.H === 1 && g.KH === 1 && !g.padding[0].some(Boolean);

/** For each axis, lines such as `OH = ⌊(6 − 3) / 2⌋ + 1 = 2`. @param {Geometry} g @param {boolean} transposed */
export const formulas = (g, transposed) =>
  (isOneDimensional(g) ? [1] : [0, 1]).map((axis) => axisWords(g, axis, transposed));

/** @param {Geometry} g @param {number} axis @param {boolean} transposed */
function axisWords(g, axis, transposed) {
  const [word, out, size, kernel] = AXES[axis];
  const [s, d, [before, after]] = [g.stride[axis], g.dilation[axis], g.padding[axis]];
  const [span, padded, left] = [spanOf(g)[axis], paddedSize(g)[axis], g.leftover[axis]];
  const lines = [`span = dilation·(${kernel} − 1) + 1 = ${d}·(${g[kernel]} − 1) + 1 = ${span}`];
  if (transposed) {
    return [
      ...lines,
      `${size} = (${out} − 1)·stride + span − padding + output_padding`,
      `${size} = (${g[out]} − 1)·${s} + ${span} − (${before} + ${after}) + ${left} = ${g[size]}`,
    ];
  }
  lines.push(
    `padded = ${before} + ${g[size]} + ${after} = ${padded}`,
    `${out} = ⌊(padded − span) / stride⌋ + 1 = ⌊(${padded} − ${span}) / ${s}⌋ + 1 = ${g[out]}`,
  );
  if (left) {
    const words = left > 1 ? `${left} ${word}s are` : `1 ${word} is`;
    const where = axis ? "on the right" : "at the bottom";
    lines.push(`the division leaves ${left}: ${words} left over ${where}`);
  }
  if (before !== after && before + after === span - 1 && s === 1) {
    lines.push(`“same”: ${before + after} cells in all, the odd one after`);
  }
  return lines;
}

/** Rows and columns from which on everything is left over, in padded coordinates. @param {Geometry} g */
export const ends = (g) => paddedSize(g).map((size, axis) => size - g.leftover[axis]);

/** `x[0,−1]`, and along one axis `x[−1]`. @param {Geometry} g @param {string} name @param {readonly number[]} index */
export const spotName = (g, name, index) =>
  `${name}[${(isOneDimensional(g) ? index.slice(1) : index).map((k) => formatNumber(k)).join(",")}]`;

/** @param {Geometry} g @param {Spot} spot @param {boolean} transposed @returns {string[]} a sentence, and what spells it out */
export const spotWords = (g, { name, index }, transposed) =>
  name === "y" ? windowWords(g, index, transposed) : placeWords(g, index, transposed);

/** @param {Geometry} g @param {[number, number]} at @param {boolean} transposed */
function windowWords(g, at, transposed) {
  const axes = (isOneDimensional(g) ? [1] : [0, 1]).map((axis) => {
    const [letter, output, tap, taps] = axis ? ["v", "q", "j", g.KW] : ["h", "p", "i", g.KH];
    const all = Array.from(
      { length: Number(taps) },
      (_, k) => source(g, at[0], at[1], k, k)[axis],
    ).map((k) => formatNumber(k));
    const [s, d, [before]] = [g.stride[axis], g.dilation[axis], g.padding[axis]];
    return (
      `${letter} = stride·${output} + dilation·${tap} − padding = ` +
      `${s}·${at[axis]} + ${d}·${tap} − ${before} = ${all.join(", ")}`
    );
  });
  const does = transposed ? "spreads its products over" : "is made from";
  return [`${spotName(g, "y", at)} ${does} the window that is lit`, ...axes];
}

/** @param {Geometry} g @param {[number, number]} at @param {boolean} transposed */
function placeWords(g, [h, v], transposed) {
  const name = spotName(g, "x", [h, v]);
  const inside = h >= 0 && v >= 0 && h < g.H && v < g.W;
  const cell = cellAt(g, h, v);
  const readers = readersOf(g, h, v);
  const list = readers.map(({ p, q, i, j }) => {
    const [y, w] = [spotName(g, "y", [p, q]), spotName(g, "w", [i, j])];
    return transposed ? `${y}·${w}` : `${y} through ${w}`;
  });
  const times = `${readers.length} ${transposed ? "product" : "time"}${readers.length === 1 ? "" : "s"}`;
  if (transposed) {
    const where = inside ? "is the sum of" : "lies on the border, which is cropped; lost here:";
    return [`${name} ${where} ${times}`, list.join(" + ")];
  }
  const copies = readers.filter((each) => each.h !== h || each.v !== v).length;
  const through = copies ? `, ${copies} of them through copies on the border` : "";
  const [bottom, right] = ends(g);
  const over = h + g.padding[0][0] >= bottom || v + g.padding[1][0] >= right;
  const left = over && !copies ? ": it is left over" : "";
  const what = inside
    ? ""
    : cell
      ? `, on the border, reads ${spotName(g, "x", cell)}:`
      : ", on the border, reads the number 0:";
  const read = readers.length ? `is read ${times}${through}` : `is read by no window${left}`;
  return [`${name}${what}${inside ? " " : " it "}${read}`, list.join(";  ")];
}

/** What the whole map says, in a sentence. @param {Geometry} g @param {boolean} transposed */
export function mapWords(g, transposed) {
  const [rows, cols] = readCounts(g);
  const [[top], [left]] = g.padding;
  const counts = new Set();
  for (const row of rows.slice(top, top + g.H))
    for (const col of cols.slice(left, left + g.W)) counts.add(row * col);
  const each = [...counts].sort((a, b) => a - b).map(String);
  const last = each.at(-1);
  const some =
    each.length > 4
      ? `from ${each[0]} to ${last}`
      : [each.slice(0, -1).join(", "), last].filter(Boolean).join(" or ");
  const times = some === "1" ? "time" : "times";
  if (transposed) {
    const even = "the same number everywhere";
    return each.length === 1
      ? `In every cell of x ${some} ${some === "1" ? "product meets" : "products meet"}: ${even}`
      : `In a cell of x ${some} products meet: uneven, which shows as a pattern`;
  }
  const [short, wide] = g.leftover;
  const over = [
    short && `${short} row${short > 1 ? "s" : ""} at the bottom`,
    wide && `${wide} column${wide > 1 ? "s" : ""} on the right`,
  ].filter(Boolean);
  return (
    `Windows read a cell of x ${some} ${times}` +
    (over.length ? `; left over: ${over.join(" and ")}` : "; nothing is left over")
  );
}
