// @ts-check
// The same shares added in two orders, in float32: why two runs differ in the last digits.
// Mirrors convgrad's rounding.py, and is equal to it to the last bit.

import { ravel } from "./conv.js";
import { OPERANDS, left, right, shapeOf } from "./implicit.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./implicit.js").Operand} Operand */
/** @typedef {import("./schedule.js").Schedule} Schedule */
/** From an offset in an array to the number that stands there. @typedef {(at: number) => number} Numbers */

const { fround, imul } = Math;
/** @type {Record<Operand, number>} */
const SALTS = { x: 1, weight: 2, grad_output: 3 };
const GOLDEN = 0x9e3779b9;

/** Scrambles 32 bits, so that neighbours have nothing in common. @param {number} bits */
function mix(bits) {
  bits = imul(bits ^ (bits >>> 16), 0x7feb352d);
  bits = imul(bits ^ (bits >>> 15), 0x846ca68b);
  return (bits ^ (bits >>> 16)) >>> 0;
}

/** The numbers of an array, each divided by 10 and rounded to float32. @param {ArrayLike<number>} data @returns {Numbers} */
export const tenths = (data) => (at) => fround(data[at] / 10);

/** Numbers by a formula, from −1 to 1, for an array too large to be kept in a page. @param {Operand} name @returns {Numbers} */
export function noise(name) {
  const salt = imul(SALTS[name], GOLDEN);
  return (at) => fround((mix((at + salt) | 0) % 2001) / 1000 - 1);
}

/**
 * The shares of one number of the result, each summed one product after the other.
 * @param {Geometry} g @param {Schedule} schedule @param {Record<Operand, Numbers>} numbers
 * @param {number} group @param {number} row @param {number} col
 */
export function shareSums(g, { options: { target, tile }, sizes, share, parts }, numbers, group, row, col) {
  const [a, b] = OPERANDS[target];
  const [shapeA, shapeB] = [shapeOf(g, a), shapeOf(g, b)];
  const depth = share * tile[2];
  const sums = new Float32Array(parts);
  for (let k = 0; k < sizes.K; k++) {
    const [one, other] = [left(g, target, group, row, k).index, right(g, target, group, k, col).index];
    const product = one && other ? fround(numbers[a](ravel(one, shapeA)) * numbers[b](ravel(other, shapeB))) : 0;
    sums[Math.floor(k / depth)] += product; // a Float32Array rounds what it stores
  }
  return sums;
}

/** In which order the shares of a tile come in, in the run with this seed. @param {Schedule} schedule @param {number} tile @param {number} seed */
export function arrivals({ runs, parts, tiles }, tile, seed) {
  const start = mix(imul(seed, GOLDEN));
  const shares = Array.from({ length: parts }, (_, part) => ({ part, end: runs[part * tiles + tile].end, luck: mix((part + start) | 0) }));
  return shares.sort((a, b) => a.end - b.end || a.luck - b.luck || a.part - b.part).map(({ part }) => part);
}

/** What stands in the number of the result after each addition. @param {Float32Array} shares @param {number[]} order */
export function runningSums(shares, order) {
  let sum = 0;
  return order.map((part) => (sum = fround(sum + shares[part])));
}

/** The 32 bits of a float32 number, as PyTorch and NumPy would show them. @param {number} value */
export const bitsOf = (value) => new Uint32Array(new Float32Array([value]).buffer)[0].toString(16).padStart(8, "0");
