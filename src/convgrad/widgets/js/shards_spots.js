// @ts-check
// What somebody looks at in ShardSum, in words: comes with the tools, since nobody looks that soon.

import { unravel } from "./conv.js";
import { contributors, holds, reads } from "./shards.js";
import { whoWords } from "./shards_words.js";
import { factor, formatNumber, subscript } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./shards.js").Shard} Shard */
/** @typedef {import("./shards.js").Run} Run */

/**
 * A chunk of a device, a number of the bucket or a row of the image; null where the step says it.
 * @param {import("./shards_images.js").Spot} spot @param {Geometry} g
 * @param {{shards: Shard[], chunks?: Run[], own?: ArrayLike<number>[]}} scene
 * @param {number | null} sends  how many steps of the ring are done; null before anything is computed
 */
export function spotWords({ kind, index: [a, b] }, g, { shards, chunks = [], own = [] }, sends) {
  if (kind === "row") return rowWords(shards, a);
  if (kind === "entry") return entryWords(g, a, own.map((bucket) => bucket[a]));
  if (kind !== "chunk" || sends === null) return null;
  const P = shards.length;
  const who = whoWords(contributors(P, sends, a, b), P);
  return `chunk ${b} is {result ${chunkWords(g, chunks[b])}}; device ${a} has in it the parts of ${who}`;
}

/** The name of a number of the bucket: grad_weight first, then grad_bias. @param {Geometry} g @param {number} k */
export function entryName(g, k) {
  const shape = [g.O, g.CG, g.KH, g.KW];
  const weights = shape.reduce((all, size) => all * size, 1);
  return k < weights ? subscript("grad_weight", unravel(k, shape)) : subscript("grad_bias", [k - weights]);
}

/** What a chunk holds. @param {Geometry} g @param {Run} chunk */
export const chunkWords = (g, [start, stop]) =>
  stop === start ? "nothing" : stop - start === 1 ? entryName(g, start) : `${entryName(g, start)} … ${entryName(g, stop - 1)}`;

/** One number of the bucket, device by device. @param {Geometry} g @param {number} k @param {number[]} values */
export const entryWords = (g, k, values) =>
  `{result ${entryName(g, k)}} = ${values.map((value) => factor(value)).join(" + ")} = ${formatNumber(values.reduce((a, b) => a + b))}, one term for each device`;

/** Who holds a row of the image, and who reads it. @param {Shard[]} shards @param {number} h */
export function rowWords(shards, h) {
  const readers = shards.filter((shard) => reads(shard).includes(h)).map(({ device }) => device);
  const owner = shards.find(({ owned }) => holds(owned, h))?.device;
  return `row ${h} of {x x} is held by device ${owner} and read by ${readers.length ? `device${readers.length > 1 ? "s" : ""} ${readers.join(", ")}` : "no window"}`;
}
