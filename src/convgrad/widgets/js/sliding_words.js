// @ts-check
// What is looked at in words, letters and numbers: a sum, or everything that one number feeds.

import { at, cellAt, channelOf, source } from "./conv.js";
import { placeOf } from "./look.js";
import { readersOf, table } from "./places.js";
import { factor, formatNumber, subscript } from "./words.js";

/** @typedef {import("./words.js").Piece} Piece */
/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Tensor} Tensor */
/** @typedef {{x: Tensor, weight: Tensor, bias: Tensor, y: ArrayLike<number>}} Numbers */
/** A sentence, and lines that spell it out. @typedef {{head: Piece[], lines: Piece[][]}} Words */

const MOST = 40; // products of a sum that are written out
const LISTED = 9; // places of a list

/** @param {Geometry} g @param {Numbers} numbers @param {import("./look.js").Look} look @param {number} c  the channel that is shown @returns {Words} */
export function wordsOf(g, numbers, { name, index }, c) {
  if (name === "y") return sumWords(g, numbers, index, c);
  return name === "w" ? tapWords(g, numbers, index) : cellWords(g, numbers, index);
}

/** `y[0,0,1,2]`. @param {readonly number[]} index @returns {Piece} */
const output = (index) => ({ text: subscript("y", index), key: "output" });
/** @param {readonly number[]} index @returns {Piece} */
const weight = (index) => ({ text: subscript("w", index), key: "kernel" });

/** @param {number} count @param {string} one */
const counted = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;

/**
 * The factors of one product: the weight, and what stands under it.
 * @param {Geometry} g @param {Numbers} numbers @param {number} n @param {number} o @param {number} c
 * @param {number} i @param {number} j @param {number} h @param {number} v
 */
function factorsAt(g, { x, weight: w }, n, o, c, i, j, h, v) {
  const cell = cellAt(g, h, v);
  const tap = [o, c, i, j];
  const onX = cell && [n, channelOf(g, o, c), ...cell];
  const copied = cell && (cell[0] !== h || cell[1] !== v);
  return {
    tap,
    /** @type {Piece} */
    read: onX
      ? { text: subscript("x", onX), key: copied ? "padding" : "x" }
      : { text: "padding", key: "padding" },
    a: at(w, ...tap),
    b: onX ? at(x, ...onX) : 0,
  };
}

/**
 * The window's place in numbers, `h = 2·1 + 1·i − 0`.
 * @param {Geometry} g @param {number} p @param {number} q @returns {Piece[]}
 */
function indexMap(g, p, q) {
  const parts = /** @type {const} */ ([
    ["h", "i", p],
    ["v", "j", q],
  ]).map(([to, tap, at], axis) => {
    const [s, d, [before]] = [g.stride[axis], g.dilation[axis], g.padding[axis]];
    return `${to} = ${s}·${at} + ${d}·${tap} − ${before}`;
  });
  return [{ text: parts.join(",  ") }];
}

/** @param {Geometry} g @param {Numbers} numbers @param {readonly number[]} index @param {number} shown @returns {Words} */
function sumWords(g, numbers, index, shown) {
  const [n, o, p, q] = index;
  const total = { text: formatNumber(numbers.y[placeOf(g, index)]), key: "output" };
  const bias = numbers.bias.data[o];
  const planes = Array.from({ length: g.CG }, (_, c) =>
    table(g.KH, g.KW).map(([i, j]) =>
      factorsAt(g, numbers, n, o, c, i, j, ...source(g, p, q, i, j)),
    ),
  );
  const products = planes.flat();
  const head = [
    output(index),
    { text: ` = ` },
    total,
    { text: `: the bias and ${counted(products.length, "product")}, where ` },
    ...indexMap(g, p, q),
  ];
  if (products.length <= MOST) {
    const letters = products.flatMap(({ tap, read }) => [
      { text: " + " },
      weight(tap),
      { text: "·" },
      read,
    ]);
    const sum = products.map(({ a, b }) => ` + ${factor(a)}·${factor(b)}`).join("");
    return {
      head,
      lines: [
        [output(index), { text: ` = ${subscript("b", [o])}` }, ...letters],
        [{ text: `= ${factor(bias)}${sum} = ` }, total],
      ],
    };
  }
  // too many to write: the sum of each channel, and the products of the one that is shown
  const plane = planes[shown];
  const sums = planes.map((all) => all.reduce((sum, { a, b }) => sum + a * b, 0));
  const parts = sums.map((sum, c) => ` + ${factor(sum)}${c === shown ? " (shown)" : ""}`);
  const some = plane.slice(0, MOST).map(({ a, b }) => `${factor(a)}·${factor(b)}`);
  const more = plane.length > MOST ? ` + … (${plane.length - MOST} more)` : "";
  const first = plane[0];
  return {
    head,
    lines: [
      [
        { text: g.CG > 1 ? "bias and channels: = " : "= " },
        { text: `${factor(bias)}${parts.join("")} = ` },
        total,
      ],
      [
        { text: `channel ${shown}: ` },
        weight(first.tap),
        { text: "·" },
        first.read,
        { text: ` + … = ${some.join(" + ")}${more} = ${formatNumber(sums[shown])}` },
      ],
    ],
  };
}

/** @param {Geometry} g @param {Numbers} numbers @param {readonly number[]} index @returns {Words} */
function tapWords(g, numbers, index) {
  const [o, c, i, j] = index;
  const w = formatNumber(at(numbers.weight, ...index));
  const uses = table(g.OH, g.OW).map(([p, q]) => ({
    p,
    q,
    ...factorsAt(g, numbers, 0, o, c, i, j, ...source(g, p, q, i, j)),
  }));
  const onZero = uses.filter(({ read }) => read.text === "padding").length;
  const padded = onZero ? `, ${onZero} of them on zero padding` : "";
  const images = g.N > 1 ? `, in each of ${g.N} images` : "";
  return {
    head: [
      weight(index),
      { text: ` = ${w} is used ${counted(uses.length, "time")}: ` },
      { text: `once at each position of the window${padded}${images}` },
    ],
    lines: [
      list(
        uses.map(({ p, q, read, a, b }) => [
          output([0, o, p, q]),
          { text: ` has ${factor(a)}·` },
          read,
          { text: ` = ${factor(a)}·${factor(b)}` },
        ]),
      ),
    ],
  };
}

/** @param {Geometry} g @param {Numbers} numbers @param {readonly number[]} index @returns {Words} */
function cellWords(g, numbers, index) {
  const [n, k, h, v] = index;
  const cell = cellAt(g, h, v);
  const inside = cell && cell[0] === h && cell[1] === v;
  const readers = readersOf(g, h, v);
  const group = Math.floor(k / g.CG);
  const o = group * g.OG;
  const copies = readers.filter((each) => each.h !== h || each.v !== v).length;
  const value = cell ? at(numbers.x, n, k, ...cell) : 0;
  const what = inside
    ? ` = ${formatNumber(value)}`
    : cell
      ? `, a copy of ${subscript("x", [n, k, ...cell])} = ${formatNumber(value)}`
      : ", zero padding,";
  const times = readers.length
    ? ` is read ${counted(readers.length, "time")}${copies ? `, ${copies} of them through copies` : ""}`
    : " is read by no window: it has no part in y";
  const kernels = readers.length && g.OG > 1 ? `, by each of ${g.OG} kernels` : "";
  const name = { text: subscript("x", index), key: inside ? "x" : "padding" };
  return {
    head: [name, { text: what + times + kernels }],
    lines: readers.length
      ? [
          list(
            readers.map(({ p, q, i, j }) => {
              const tap = [o, k % g.CG, i, j];
              const a = at(numbers.weight, ...tap);
              return [
                output([n, o, p, q]),
                { text: " through " },
                weight(tap),
                { text: `: ${factor(a)}·${factor(value)}` },
              ];
            }),
          ),
        ]
      : [],
  };
}

/** Items one after another, the first of them where they are many. @param {Piece[][]} items @returns {Piece[]} */
function list(items) {
  const some = items.slice(0, LISTED).flatMap((item, k) => (k ? [{ text: ";  " }, ...item] : item));
  return items.length > LISTED ? [...some, { text: `;  and ${items.length - LISTED} more` }] : some;
}
