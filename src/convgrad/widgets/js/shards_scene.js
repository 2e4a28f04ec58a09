// @ts-check
// What ShardSum shows at a step: the steps, the shares, and all that the devices compute.

import { evenly, haloMessages, imageShards, outputOf, partOf, ringStates, rowShards, runs, whole } from "./shards.js";
import { bucketSize, movesOf } from "./shards_words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Operands} Operands */
/** @typedef {import("./shards.js").Part} Part */
/** @typedef {import("./shards_words.js").Options} Options */
/** @typedef {ReturnType<typeof imageScene>} ImageScene */
/** @typedef {ReturnType<typeof rowScene>} RowScene */

const LEAST = 3; // devices, where the shares have to be chosen anew

/** How many things there are to deal out. @param {{N: number, OH: number}} g @param {string} view */
export const countOf = (g, view) => (view === "images" ? g.N : g.OH);

/**
 * How much each device has: what is asked for, or even shares where that does not fit.
 * @param {{N: number, OH: number}} g @param {Record<string, any>} options @param {number} most  devices
 */
export function sizesOf(g, { view, shares }, most) {
  const count = countOf(g, view);
  const sizes = String(shares).split("-").map(Number);
  if (sizes.every((size) => size > 0) && sizes.reduce((a, b) => a + b) === count) return sizes;
  return evenly(count, Math.min(sizes.length > 1 ? sizes.length : LEAST, count, most));
}

/** The steps. @param {Geometry} g @param {Record<string, any>} options @param {number} most */
export function movesIn(g, options, most) {
  const sizes = sizesOf(g, options, most);
  const halo = options.view === "rows" && haloMessages(rowShards(g, sizes)).length > 0;
  return movesOf(/** @type {Options} */ (options), sizes.length, halo);
}

/** @param {Part} part */
const flat = ({ grad_weight, grad_bias }) => [...grad_weight, ...grad_bias];

/** Whether the numbers are the same up to the rounding of another order of sums. @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
function near(a, b) {
  const largest = (/** @type {number[]} */ values) => Math.max(0, ...values.map(Math.abs));
  return largest(Array.from(a, (value, k) => value - b[k])) <= 1e-12 * largest(Array.from(b));
}

/**
 * Images dealt out, and what the devices make of them; a bucket is grad_weight and grad_bias, flat.
 * @param {Geometry} g @param {Operands} arrays @param {Options} options @param {number[]} sizes
 */
export function imageScene(g, arrays, { loss, combine }, sizes) {
  const P = sizes.length;
  const shards = imageShards(g, sizes);
  const own = shards.map((shard, r) => flat(partOf(shard, arrays)).map((sum) => (loss === "mean" ? sum / sizes[r] : sum)));
  const ring = ringStates(own);
  const summed = ring[ring.length - 1];
  const agreed = combine === "average" ? summed.map((bucket) => bucket.map((sum) => sum / P)) : summed;
  const single = flat(whole(g, arrays)).map((sum) => (loss === "mean" ? sum / g.N : sum));
  const one = imageShards(g, Array(g.N).fill(1)).map((shard) => flat(partOf(shard, arrays)));
  return { shards, own, ring, summed, agreed, single, one, chunks: runs(evenly(bucketSize(g), P)), equal: near(agreed[0], single) };
}

/** Rows dealt out, and what the devices make of them. @param {Geometry} g @param {Operands} arrays @param {number[]} sizes */
export function rowScene(g, arrays, sizes) {
  const shards = rowShards(g, sizes);
  const parts = shards.map((shard) => partOf(shard, arrays));
  const single = whole(g, arrays);
  /** @param {"grad_weight" | "grad_input"} name */
  const total = (name) => single[name].map((_, k) => parts.reduce((sum, part) => sum + part[name][k], 0));
  const sums = { grad_weight: total("grad_weight"), grad_input: total("grad_input") };
  const equal = near(sums.grad_weight, single.grad_weight) && near(sums.grad_input, single.grad_input);
  return { shards, messages: haloMessages(shards), parts, single, sums, equal, outputs: shards.map((shard) => outputOf(shard, arrays)) };
}
