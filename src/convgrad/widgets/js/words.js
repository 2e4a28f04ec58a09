// @ts-check
// Numbers and steps in words: what is written into cells, under the grids and read aloud.

import { channelOf } from "./conv.js";

/** A piece of text and the colour key of what it names. @typedef {{text: string, key?: string}} Piece */
/** @typedef {import("./conv.js").Contribution} Contribution */
/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Target} Target */
/** @typedef {import("./conv.js").Order} Order */

/** The public name of each gradient. @type {Record<Target, string>} */
export const GRADIENT = { weight: "grad_weight", input: "grad_input", bias: "grad_bias" };

/**
 * A number with up to `digits` significant digits, no trailing zeros and a true minus sign.
 * @param {number} value @param {number} [digits]
 */
export function formatNumber(value, digits = 6) {
  if (!Number.isFinite(value)) return String(value).replace("Infinity", "∞").replace("-", "−");
  const rounded = Number(value.toPrecision(digits)) + 0; // + 0 turns −0 into 0
  const magnitude = Math.abs(rounded);
  const plain = magnitude === 0 || (magnitude >= 1e-4 && magnitude < 10 ** digits);
  return typeset(plain ? String(rounded) : rounded.toExponential());
}

/** @param {string} text */
const typeset = (text) => text.replaceAll("-", "−").replace("e+", "e");

const ROOM = 6; // characters of a cell

/** A number for a cell: whole ones exactly where they fit, others with as many digits as fit. @param {number} value */
export function fitNumber(value) {
  for (let digits = Number.isInteger(value) ? ROOM : 4; digits; digits--) {
    const text = formatNumber(value, digits);
    if (text.length <= ROOM) return text;
  }
  return typeset(value.toExponential(0));
}

/** A number inside a product or a sum: negative ones in brackets. @param {number} value */
export const factor = (value) => (value < 0 ? `(${formatNumber(value)})` : formatNumber(value));

/**
 * What somebody typed into a cell: a number, or a sentence that says why it is none.
 * @param {string} text
 * @returns {{value: number} | {refusal: string}}
 */
export function parseNumber(text) {
  const plain = text.trim().replace(/[−–]/g, "-").replace(",", ".");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) {
    const said = text.trim() ? `“${text.trim()}” is not a number` : "the cell is empty";
    return { refusal: `${said}: write one such as 3, -2 or 0.5` };
  }
  const value = Number(plain);
  if (Math.abs(value) > 1e6)
    return { refusal: `${text.trim()} is too large to show: at most a million` };
  return { value: value + 0 };
}

/** `x[0,0,2,3]`. @param {string} name @param {readonly number[]} index */
export const subscript = (name, index) => `${name}[${index.map((k) => formatNumber(k)).join(",")}]`;

/** What each order does, in plain words. @type {Record<Target, Record<Order, string>>} */
const CAPTIONS = {
  weight: {
    tap: "finish one cell of grad_weight, then the next",
    position: "at each place of the window, one product for every cell of grad_weight",
    kernel: "finish one kernel’s gradient, position by position, then the next kernel’s",
  },
  input: {
    tap: "one weight meets every g of its kernel, then the next weight does",
    position: "at each place of the window, g is spread over the cells under it",
    kernel: "one kernel’s share alone, then the next; together they are grad_input",
  },
  bias: {
    tap: "a bias has no taps; add up one kernel’s g, then the next kernel’s",
    position: "at each position, one g for every kernel",
    kernel: "add up one kernel’s g, then the next kernel’s",
  },
};
const ALONE = "with a single kernel the same as ";

/** What the order of the products does. @param {Geometry} g @param {Target} target @param {Order} order */
export function caption({ O }, target, order) {
  const same = O === 1 && (target === "bias" ? order !== "position" : order === "kernel");
  return `by ${order}: ${same ? `${ALONE}by position` : CAPTIONS[target][order]}`;
}

/** The names of the factors of a product. @param {Geometry} g @param {Target} target @param {Contribution} c @param {boolean} [brief]  zero padding has no index @returns {Piece[]} */
export function factorNames(g, target, c, brief = false) {
  const upstream = { text: subscript("g", [c.n, c.o, c.p, c.q]), key: "grad_output" };
  if (target === "bias") return [upstream];
  const [channel, i, j] = [Number(c.c), Number(c.i), Number(c.j)];
  if (brief && target === "weight" && !c.cell)
    return [{ text: "padding", key: "padding" }, { text: "·" }, upstream];
  const first =
    target === "input"
      ? { text: subscript("w", [c.o, channel, i, j]), key: "kernel" }
      : {
          text: subscript("x", [c.n, channelOf(g, c.o, channel), Number(c.h), Number(c.v)]),
          key: onPadding(g, c) ? "padding" : "x",
        };
  return [first, { text: "·" }, upstream];
}

/** Whether a place lies outside the image. @param {Geometry} g @param {{h: number | null, v: number | null}} place */
export const onPadding = (g, { h, v }) =>
  h !== null && v !== null && (h < 0 || v < 0 || h >= g.H || v >= g.W);

/**
 * One step in index letters and numbers:
 * `grad_weight[0,0,1,2] += x[0,0,2,3]·g[0,0,1,1] = 3·0.5; now 4.5`.
 * @param {Geometry} g @param {Target} target @param {Contribution} c
 * @param {[number, number]} values  the two factors; the bias has the second alone
 * @param {number} sum  what stands in the cell now
 * @returns {Piece[]}
 */
export function spell(g, target, c, [a, b], sum) {
  const numbers = target === "bias" ? formatNumber(b) : `${factor(a)}·${factor(b)}`;
  if (!c.target) {
    return [
      { text: "lost: " },
      ...factorNames(g, target, c),
      { text: ` = ${numbers} lands on the padding, ${sideOf(g, c)}` },
    ];
  }
  return [
    { text: subscript(GRADIENT[target], c.target), key: "result" },
    { text: " += " },
    ...factorNames(g, target, c),
    { text: ` = ${numbers}; now ` },
    { text: formatNumber(sum), key: "result" },
    ...aside(g, target, c),
  ];
}

/** On which side of the image a place lies that is outside of it. @param {Geometry} g @param {{h: number | null, v: number | null}} place */
export function sideOf(g, { h, v }) {
  const sides = [
    Number(h) < 0 ? "above" : Number(h) >= g.H ? "below" : "",
    Number(v) < 0 ? "left of" : Number(v) >= g.W ? "right of" : "",
  ];
  return `${sides.filter(Boolean).join(" and ")} the image`;
}

/** What is special about a tap on padding. @param {Geometry} g @param {Target} target @param {Contribution} c @returns {Piece[]} */
function aside(g, target, c) {
  if (!onPadding(g, c)) return [];
  if (!c.cell) return [{ text: ` (zero padding, ${sideOf(g, c)})`, key: "padding" }];
  const index = [c.n, channelOf(g, c.o, Number(c.c))];
  const here = subscript("x", [...index, Number(c.h), Number(c.v)]);
  const copied = subscript("x", [...index, ...c.cell]);
  const why =
    target === "input" ? `the tap lies on ${here}, a copy of ${copied}` : `a copy of ${copied}`;
  return [{ text: ` (${why})`, key: "padding" }];
}

/**
 * All contributions to one gradient cell as one sum in numbers: `= 3·0.5 + 1·(−1) = 0.5`.
 * @param {Target} target
 * @param {{values: [number, number]}[]} terms
 * @param {number} sum
 * @param {string} [more]  what stands for terms that are left out
 * @returns {Piece[]}
 */
export function formula(target, terms, sum, more = "") {
  const numbers = terms.map(({ values: [a, b] }) =>
    target === "bias" ? factor(b) : `${factor(a)}·${factor(b)}`,
  );
  const result = { text: formatNumber(sum), key: "result" };
  return [{ text: `= ${numbers.join(" + ") || "0"}${more} = ` }, result];
}

/**
 * How full a cell is: `; 2 fell so far (underlined): now 3, in the end 9`.
 * @param {number} fallen @param {number} all @param {number} now @param {number} end
 */
export function standingWords(fallen, all, now, end) {
  if (fallen === all) return "; all fell";
  const some = fallen ? `${fallen} fell so far (underlined)` : "none fell so far";
  return `; ${some}: now ${formatNumber(now)}, in the end ${formatNumber(end)}`;
}

/** The letter of a group: 0 → A. @param {number} group */
export const groupLetter = (group) => String.fromCharCode(65 + (group % 26));

/** @param {Piece[]} pieces */
export const plainText = (pieces) => pieces.map(({ text }) => text).join("");
