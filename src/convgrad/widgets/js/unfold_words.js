// @ts-check
// UnfoldMatrix in words: what a cell copies, what a product is the sum of.  A part in the colour of
// what it names is written {key text}.

import { at, cellAt, indices } from "./conv.js";
import { memory, origin } from "./im2col.js";
import { channelIn, copiesOf } from "./unfold_steps.js";
import { factor, formatNumber, groupLetter, onPadding, sideOf, subscript } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./im2col.js").Block} Block */
/** @typedef {import("./unfold_steps.js").Scene} Scene */
/** @typedef {import("./unfold_steps.js").Spot} Spot */
/** @typedef {import("./unfold_steps.js").Stage} Stage */

const MOST_TERMS = 36; // of a sum that is spelled out

/** @type {Record<Stage, string>} */
export const CAPTIONS = {
  columns: "Every window written out as a column. A cell that many windows read is copied often.",
  forward: "A row of w, one kernel, times a column, one window, is one cell of the output.",
  weight: "A row of g, one map of the upstream gradient, times all that one tap has met.",
  input: "There is a number of wᵀ·g for every entry of the columns. Fold adds each back to its cell.",
};

/** @param {number} count @param {string} one */
const counted = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;

/** @param {number[]} values */
function summed(values) {
  const terms = values.slice(0, MOST_TERMS).map(factor);
  return terms.join(" + ") + rest(values.length);
}
/** @param {number} count */
const rest = (count) => (count > MOST_TERMS ? ` + … (${count - MOST_TERMS} more)` : "");

/** Which block is meant, where there are several. @param {Geometry} g @param {Block} block */
export function blockName(g, { n, k }) {
  const names = [g.N > 1 && `image ${n}`, g.groups > 1 && `group ${groupLetter(k)}`];
  return names.filter(Boolean).join(", ");
}

/** The name of a number of w, at row r of the columns. @param {Scene} scene @param {string} name @param {number} o @param {number} r */
function ofKernel({ g, block }, name, o, r) {
  const { c, i, j } = origin(g, r, 0);
  return subscript(name, [block.k * g.OG + o, c, i, j]);
}

/** The name of a number of y or g, at window l. @param {Scene} scene @param {string} name @param {number} o @param {number} l */
function ofOutput({ g, block }, name, o, l) {
  const { p, q } = origin(g, 0, l);
  return subscript(name, [block.n, block.k * g.OG + o, p, q]);
}

/** What a spot shows; `isStep` for the step that has just been done. @param {Scene} scene @param {Spot} spot @param {boolean} [isStep] */
export function spelled(scene, spot, isStep = false) {
  const { stage, g, block } = scene;
  const { place, r, l, o } = spot;
  if (spot.h !== undefined) return ofMap(scene, spot);
  if (r === undefined && o === undefined) return ofWindow(scene, /** @type {number} */ (l));
  if (place === "top" && stage !== "input") return ofEntry(scene, ...(/** @type {[number, number]} */ ([r, l])));
  if (place === "result") {
    const where = isStep && blockName(g, block);
    return (where ? `${where}: ` : "") + ofProduct(scene, spot);
  }
  return ofFactor(scene, spot);
}

/** A window is written out, or folded back. @param {Scene} scene @param {number} l */
function ofWindow({ g, stage, block, top }, l) {
  const { p, q } = origin(g, 0, l);
  const where = blockName(g, block);
  const window = `${where && `${where}, `}window (${p},${q})`;
  if (stage === "input") {
    return `fold: {result column ${l}} is added back to the cells under ${window}; +=, not =, for windows overlap`;
  }
  const values = indices(top.rows).map((r) => formatNumber(top.data[r * top.cols + l]));
  return `${window} becomes {x column ${l}}: ${values.slice(0, MOST_TERMS).join(" ")}${rest(values.length)}`;
}

/** An entry of the columns. @param {Scene} scene @param {number} r @param {number} l */
function ofEntry({ g, block, arrays }, r, l) {
  const { c, i, j, p, q, h, v, cell } = origin(g, r, l);
  const channel = channelIn(g, block, c);
  const side = onPadding(g, { h, v }) ? sideOf(g, { h, v }) : "";
  const tap = `tap (${i},${j})${g.C > 1 ? ` of channel ${channel}` : ""} in window (${p},${q})`;
  const name = `{x columns[${r},${l}]}`;
  if (!cell) return `${name} is {padding padding}: ${tap} lies ${side}, where a 0 is read`;
  const index = [block.n, channel, ...cell];
  const value = formatNumber(at(arrays.x, ...index));
  const copies = copiesOf(g, c, ...cell).length;
  const again = copies > 1 ? `; the cell is copied ${copies} times in all` : "";
  return `${name} copies {x ${subscript("x", index)}} = ${value}: ${tap}${side && `, ${side}`}${again}`;
}

/** A place of x, of grad_input, or of the overlaps. @param {Scene} scene @param {Spot} spot */
function ofMap({ g, block, arrays, stage, result, folded }, { place, c = 0, h = 0, v = 0 }) {
  const copies = copiesOf(g, c, h, v);
  const index = [block.n, channelIn(g, block, c), h, v];
  const outside = onPadding(g, { h, v });
  const side = outside && sideOf(g, { h, v });
  if (place === "overlap") {
    return `{padding overlap[${h},${v}]}: ${counted(copies.length, "product")} of each channel meet${copies.length === 1 ? "s" : ""} in this cell. fold(unfold(x)) is x times this`;
  }
  if (stage === "input") {
    if (outside) return `{padding padding} ${side}: what is computed for it ${g.padding_mode === "zeros" ? "has no cell to go to" : "goes to the cell that is copied"}`;
    const values = copies.map(([r, l]) => result.data[r * result.cols + l]);
    const fallen = copies.filter(([, l]) => l < folded).length;
    const sum = formatNumber(values.reduce((a, b) => a + b, 0));
    const so = fallen < values.length ? `, ${fallen} of them folded so far` : "";
    return `{result ${subscript("grad_input", index)}} = ${summed(values) || "0"} = {result ${sum}}: ${counted(values.length, "product")}${so}`;
  }
  const cell = cellAt(g, h, v);
  const value = formatNumber(cell ? at(arrays.x, ...index.slice(0, 2), ...cell) : 0);
  const times = copies.length ? `copied ${counted(copies.length, "time")}, once for every tap that reads it` : "read by no window: it is not in the columns";
  if (!outside) return `{x ${subscript("x", index)}} = ${value} is ${times}`;
  return `{padding ${subscript("x", index)}} = ${value} is ${cell ? "a copy on the border" : "padding"} ${side}, ${times}`;
}

/** The names of the factors. @type {Record<Stage, [string, string]>} */
const FACTORS = {
  columns: ["", ""],
  forward: ["{kernel w}", "{x the columns}"],
  weight: ["{grad_output g}", "{x columnsᵀ}"],
  input: ["{kernel wᵀ}", "{grad_output g}"],
};

/** A cell of the product: its row times its column. @param {Scene} scene @param {Spot} spot */
function ofProduct(scene, { r = 0, l = 0, o = 0 }) {
  const { g, stage, left, top, block } = scene;
  const [row, col] = { columns: [0, 0], forward: [o, l], weight: [o, r], input: [r, l] }[stage];
  const pairs = indices(left.cols).map((m) => [left.data[row * left.cols + m], top.data[m * top.cols + col]]);
  const written = pairs.slice(0, MOST_TERMS).map(([a, b]) => `${factor(a)}·${factor(b)}`).join(" + ");
  const sum = formatNumber(pairs.reduce((all, [a, b]) => all + a * b, 0));
  const ink = stage === "forward" ? "y" : "result";
  const name = { columns: "", forward: ofOutput(scene, "y", o, l), weight: ofKernel(scene, "grad_weight", o, r), input: `product[${r},${l}]` }[stage];
  const [a, b] = FACTORS[stage];
  const several = stage === "weight" && g.N > 1;
  let text = `${several ? `image ${block.n}’s share of ` : ""}{${ink} ${name}} = row ${row} of ${a} · column ${col} of ${b} = `;
  text += `${written}${rest(pairs.length)} = {${ink} ${sum}}`;
  const now = several ? scene.at("result", row, col) : null;
  if (now !== null) text += `; images so far {result ${formatNumber(now)}}`;
  if (stage !== "input") return text;
  const { c, h, v, cell } = origin(g, r, l);
  if (!cell) return `${text}; lost: the tap lies on the padding, ${sideOf(g, { h, v })}`;
  return `${text}; goes to {result ${subscript("grad_input", [block.n, channelIn(g, block, c), ...cell])}}`;
}

/** A number of w or g. @param {Scene} scene @param {Spot} spot */
const ofFactor = (scene, { r = 0, l, o = 0 }) =>
  `${l === undefined ? `{kernel ${ofKernel(scene, "w", o, r)}}` : `{grad_output ${ofOutput(scene, "g", o, l)}}`}: all that it meets is outlined`;

/**
 * What the columns cost, against the image and against a view: name, palette key, numbers, words.
 * @param {Geometry} g
 * @returns {[string, string, number, string][]}
 */
export function memoryWords(g) {
  const { image, padded, columns } = memory(g);
  const bytes = (/** @type {number} */ count) => `${(4 * count).toLocaleString("en")} bytes`;
  const more = padded > image ? padded : 0;
  return [
    ["x", "x", image, `${bytes(image)}, 4 for each number`],
    ["columns", "x", columns, `${bytes(columns)}, ${formatNumber(columns / image, 3)} times the image`],
    ["a view", "padding", more, `${bytes(more)} more${more ? ", for x with its border" : ""}: windows are only looked at`],
  ];
}
