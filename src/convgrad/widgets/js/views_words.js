// @ts-check
// What GradientViews says: a caption for each view, each step, and each cell that is looked at.
// A part in the colour of what it names is written {key text}, see inked.js.

import { at, cellAt, channelOf, groupOf, indices, short } from "./conv.js";
import { surplus } from "./grouped.js";
import { readersOf } from "./places.js";
import { groupmates, searchSize, underneath, windowOf } from "./views_scene.js";
import { factor, formatNumber, groupLetter, subscript } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Operands} Operands */
/** @typedef {import("./conv.js").Pair} Pair */
/** @typedef {import("./places.js").Operand} Operand */
/** @typedef {import("./views_scene.js").Name} Name */
/** @typedef {import("./views_scene.js").Slices} Slices */

const MOST_TERMS = 36; // of a sum that is written out

/** @type {Record<Name, string>} */
export const TABS = {
  kernels: "kernel by kernel",
  "scatter-gather": "scatter and gather",
  convolution: "as a convolution",
  batch: "image by image",
};

/** What the view shows. @param {Geometry} g @param {Name} view */
export const captionOf = (g, view) =>
  ({
    kernels: "a kernel meets its own map of g alone: it has its own gradient and a share of grad_input, and the shares add up",
    "scatter-gather": "the same products twice: every g throws them into the window it came from; every cell of x collects its own, and meets the kernel turned by 180°",
    convolution: `like a kernel, g slides over x, and each place gives a tap; stride and dilation change places: g’s cells stand ${short(g.stride)} apart, the stride, and g moves by ${short(g.dilation)}, the dilation`,
    batch: `every image is a page with its share of ${g.groups > 1 ? "each group’s gradient" : "the gradient"}, and the pages add up`,
  })[view];

// ---- pieces ----------------------------------------------------------------------------------

/** @param {number} count @param {string} name */
export const some = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;

/** @param {string[]} terms @param {number} value */
function sum(terms, value) {
  const shown = terms.slice(0, MOST_TERMS).join(" + ") || "0";
  return `${shown}${terms.length > MOST_TERMS ? ` + … (${terms.length})` : ""} = {result ${formatNumber(value)}}`;
}

/** @param {"input" | "weight"} of @param {number[]} index */
const grad = (of, index) => `{result ${subscript(`grad_${of}`, index)}}`;

/** The map of grad_input that these slices have a share in, or a cell of it. @param {Geometry} g @param {Slices} slices @param {number[]} cell */
const onInput = (g, { n, o, c }, ...cell) => grad("input", [n, channelOf(g, o, c), ...cell]);

/** “kernel 3, group B”. @param {string} who @param {Geometry} g @param {number} k */
export const inGroup = (who, g, k) => (g.groups > 1 ? `${who}, group ${groupLetter(k)}` : who);

const INK = { x: ["x", "x"], weight: ["kernel", "w"], grad_output: ["grad_output", "g"] };

/** A number of x, w or g by its name. @param {Operands} arrays @param {Operand} name @param {number[]} index */
export function operandWords(arrays, name, index) {
  const [key, letter] = INK[name];
  return `{${key} ${subscript(letter, index)}} = ${formatNumber(at(arrays[name], ...index))}`;
}

/** A place of x on the border. @param {Geometry} g @param {Operands} arrays @param {Slices} slices @param {number} h @param {number} v */
export function borderWords(g, arrays, { n, o, c }, h, v) {
  const cell = cellAt(g, h, v);
  return cell ? `a copy of ${operandWords(arrays, "x", [n, channelOf(g, o, c), ...cell])}` : "zero padding: what lands here is lost";
}

// ---- kernel by kernel ------------------------------------------------------------------------

/** @param {Geometry} g @param {Slices} slices @param {number} step */
export function kernelWords(g, slices, step) {
  const { o } = slices;
  const mates = groupmates(g, o);
  const place = mates.indexOf(o) + 1;
  const who = inGroup(`kernel ${o}`, g, groupOf(g, o));
  const all = place === mates.length ? "; now whole" : "";
  return `${who}: share ${place} of ${mates.length} of ${onInput(g, slices)}${step ? all : " is still to be added"}`;
}

/** A cell of kernel o's share. @param {Geometry} g @param {Operands} arrays @param {Slices} slices @param {Pair} cell @param {number} value */
export const shareWords = (g, arrays, slices, cell, value) =>
  `kernel ${slices.o}’s share of ${onInput(g, slices, ...cell)} = ${products(g, arrays, slices, cell, value)}`;

/** A number that is a sum of shares, as far as they have been added. @param {string} name @param {number[]} values @param {number} most @param {string} whose */
function stack(name, values, most, whose) {
  if (!values.length) return `${name}: nothing is added yet`;
  return `${name}${values.length < most ? " so far" : ""} = ${sum(values.map(factor), values.reduce((a, b) => a + b))}, the share${values.length > 1 ? "s" : ""} of ${whose}`;
}

/** A cell of grad_input, or of what it is so far. @param {Geometry} g @param {Slices} slices @param {Pair} cell @param {number[]} values  of the kernels added */
export function stackWords(g, slices, cell, values) {
  const mates = groupmates(g, slices.o).slice(0, values.length);
  return stack(onInput(g, slices, ...cell), values, g.OG, `kernel${mates.length > 1 ? "s" : ""} ${mates.join(", ")}`);
}

/** A tap of the kernel's own gradient. @param {Geometry} g @param {number[]} index @param {number} value */
export const ownWords = (g, index, value) =>
  `${grad("weight", index)} = {result ${formatNumber(value)}}, a sum of ${some(g.N * g.OH * g.OW, "product")} x·g`;

// ---- scatter and gather ----------------------------------------------------------------------

/** The products that reach a cell, in numbers. @param {Geometry} g @param {Operands} arrays @param {Slices} slices @param {Pair} cell @param {number} value */
function products(g, { weight, grad_output }, { n, o, c }, [h, v], value) {
  const terms = readersOf(g, h, v);
  return terms.length ? sum(terms.map(({ p, q, i, j }) => `${factor(at(weight, o, c, i, j))}·${factor(at(grad_output, n, o, p, q))}`), value) : "0: no window reads this cell";
}

/** The cell (p, q) of g throws. @param {Geometry} g @param {Operands} arrays @param {Slices} slices @param {Pair} cell */
export function throwWords(g, arrays, slices, [p, q]) {
  const { n, o } = slices;
  const window = windowOf(g, p, q);
  const lost = window.filter(({ cell }) => !cell).length;
  const away = lost ? `; ${lost} of ${window.length} products are lost on padding` : "";
  return `${operandWords(arrays, "grad_output", [n, o, p, q])} throws {grad_output g}·{kernel w} into its window of ${onInput(g, slices)}, from ${placeWords(window[0].place)} on${away}`;
}

/** @param {Pair} place */
const placeWords = ([row, col]) => `row ${formatNumber(row)}, column ${formatNumber(col)}`;

/** The cell (h, v) collects. @param {Geometry} g @param {Operands} arrays @param {Slices} slices @param {Pair} cell @param {number} value */
export function collectWords(g, arrays, slices, cell, value) {
  const whose = g.OG > 1 ? `kernel ${slices.o}’s share of ` : "";
  return `${whose}${onInput(g, slices, ...cell)} collects ${some(readersOf(g, ...cell).length, "product")}: ${products(g, arrays, slices, cell, value)}`;
}

/** A tap that is met, or a gap. @param {Slices} slices @param {number[]} tap @param {{p: number, q: number} | undefined} met */
export const metWords = ({ n, o, c }, tap, met) =>
  `{kernel ${subscript("w", [o, c, ...tap])}} meets ${met ? `{grad_output ${subscript("g", [n, o, met.p, met.q])}}; row by row, the taps come last to first: the kernel turned by 180°` : "nothing: a gap that the stride leaves, or an edge"}`;

// ---- as a convolution ------------------------------------------------------------------------

/** One tap of x ⋆ g. @param {Geometry} g @param {Slices} slices @param {Pair} tap @param {number[][]} pairs  of x and g @param {number} value */
export function tapWords(g, { n, o, c }, [i, j], pairs, value) {
  if (i >= g.KH || j >= g.KW) return `there is no tap (${i}, ${j}): the leftover makes room for it, the crop takes it away`;
  const terms = pairs.map((pair) => pair.map(factor).join("·"));
  return `${shareOf(g, n, [o, c, i, j])}, g laid on x from ${placeWords(underneath(g, i, j)[0])} on: ${sum(terms, value)}`;
}

/** @param {Geometry} g @param {number} n @param {number[]} index */
const shareOf = (g, n, index) => `${g.N > 1 ? `image ${n}’s share of ` : ""}${grad("weight", index)}`;

/** All taps are there; the crop, where there is one. @param {Geometry} g @param {Slices} slices */
export function searchedWords(g, { n, o, c }) {
  const [rows, cols] = surplus(g);
  const parts = [rows && some(rows, "row"), cols && some(cols, "column")].filter(Boolean).join(", ");
  const crop = parts ? `; ${parts} cropped, ${searchSize(g).join("×")} to ${g.KH}×${g.KW}: the leftover ${short(g.leftover)} lets g go on` : "";
  return `{x ${subscript("x", [n, channelOf(g, o, c)])}} ⋆ {grad_output ${subscript("g", [n, o])}} is ${shareOf(g, n, [o, c])}${crop}`;
}

// ---- image by image --------------------------------------------------------------------------

/** @param {Geometry} g @param {Slices} slices  of the page @param {number} step */
export function pageWords(g, { n, o, c }, step) {
  if (step === g.N * g.groups) return `grad_weight is the sum of ${some(g.N, "page")}${g.groups > 1 ? ` in each of ${g.groups} groups` : ""}`;
  return `${inGroup(`image ${n}`, g, groupOf(g, o))}: x ⋆ g is its share of ${grad("weight", [o, c])}${step ? `; ${n + 1} of ${some(g.N, "page")}` : ", still to be added"}`;
}

/** A tap of a page. @param {Slices} slices @param {Pair} tap @param {number} value */
export const pageTapWords = ({ n, o, c }, tap, value) => `image ${n}’s share of ${grad("weight", [o, c, ...tap])} is {result ${formatNumber(value)}}`;

/** A tap of the sum. @param {Slices} slices @param {Pair} tap @param {number[]} values  of the images added @param {number} images */
export const sumWords = ({ o, c }, tap, values, images) =>
  stack(grad("weight", [o, c, ...tap]), values, images, `image${values.length > 1 ? "s" : ""} ${indices(values.length).join(", ")}`);
