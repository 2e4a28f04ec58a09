// @ts-check
// ShardSum in words and as code.  A part in the colour of what it names is written {key text}.

import { indices } from "./conv.js";
import { halo, numbersSent, ringSteps } from "./shards.js";
import { formatNumber } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./shards.js").Shard} Shard */
/** @typedef {import("./shards.js").Run} Run */
/** @typedef {import("./shards.js").Message} Message */
/** @typedef {{view: "images" | "rows", loss: "sum" | "mean", combine: "sum" | "average"}} Options */
/**
 * One step. Of images: dealt out, parts computed, a step of the ring, the average, the comparison
 * with one device.  Of rows: dealt out, halo sent, output made, parts of the weight gradient, what
 * falls on the block, halo sent back, the comparison.
 * @typedef {"deal" | "part" | "ring" | "average" | "send" | "forward" | "spread" | "back" | "compare"} Move
 */

/** @param {number} count @param {string} one */
export const counted = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;

/** `image 0`, `images 0–2`. @param {string} one @param {Run} run */
export const runWords = (one, [start, stop]) =>
  stop - start === 1 ? `${one} ${start}` : stop > start ? `${one}s ${start}–${stop - 1}` : `no ${one}s`;

/** @param {number[]} rows */
const rowsNamed = (rows) => `row${rows.length === 1 ? "" : "s"} ${rows.join(", ")}`;

const BYTES = 4; // of a number in float32

/** @param {number} numbers */
const inBytes = (numbers) => `${counted(numbers, "number")}, ${(BYTES * numbers).toLocaleString("en")} bytes in float32`;

// ---- the steps -------------------------------------------------------------------------------

/** All steps, the first of which is how things begin. @param {Options} options @param {number} P @param {boolean} anyHalo @returns {Move[]} */
export function movesOf({ view, combine }, P, anyHalo) {
  if (view === "rows") {
    const [send, back] = anyHalo ? /** @type {Move[][]} */ ([["send"], ["back"]]) : [[], []];
    return ["deal", ...send, "forward", "part", "spread", ...back, "compare"];
  }
  const ring = indices(2 * (P - 1)).map(() => /** @type {Move} */ ("ring"));
  return ["deal", "part", ...ring, ...(combine === "average" && P > 1 ? [/** @type {Move} */ ("average")] : []), "compare"];
}

/** Whose parts are in a chunk: `1 + 2`, `all`. @param {[number, number]} who  from which device on, of how many @param {number} P */
export function whoWords([first, count], P) {
  if (count === P) return "all";
  const who = indices(count).map((k) => (first + k) % P);
  return count > (P > 5 ? 1 : 3) ? `${first}…${who[count - 1]}` : who.join(" + ");
}

/** @param {Geometry} g */
export const bucketSize = (g) => g.O * g.CG * g.KH * g.KW + g.O;

/**
 * What a step of the images' view has done.
 * @param {Geometry} g @param {Options} options @param {number[]} sizes
 * @param {{move: Move, sends: number}} step  sends: how many steps of the ring are done
 * @param {string} verdict  of the comparison
 */
export function imageStepWords(g, { loss }, sizes, { move, sends }, verdict) {
  const P = sizes.length;
  const size = bucketSize(g);
  const weights = `${counted(size - g.O, "number")} of {result grad_weight} and ${g.O} of {result grad_bias}`;
  if (move === "deal")
    return `${counted(g.N, "image")} for ${counted(P, "device")}: ${sizes.join(" + ")}. Each device has all the kernels, and {x x} and {grad_output g} of its own images`;
  if (move === "part") {
    const mean = loss === "mean" ? ", divided by their number" : "";
    return `each device adds up its own images${mean}: ${weights}, in ${counted(P, "chunk")}. grad_input is complete already: no image has two owners`;
  }
  if (move === "ring") {
    const [{ phase }] = ringSteps(P)[sends - 1];
    const gather = phase === "gather";
    const round = gather ? sends - (P - 1) : sends;
    const does = gather ? "a complete chunk to the next, which keeps it" : "a chunk to the next, which adds it to its own";
    const end = round < P - 1 ? "" : gather ? ". Now all have all" : ". Now each has one complete chunk";
    return `${gather ? "all-gather" : "reduce-scatter"} ${round} of ${P - 1}: every device sends ${does}${end}. Sent so far: ${mostWords(numbersSent(size, P, sends))}`;
  }
  if (move === "average") return `average: each device divides by ${P}, their number, as DistributedDataParallel does`;
  const all = numbersSent(size, P);
  return `${verdict}${P > 1 ? `. Each sent ${mostWords(all)}: ${size % P ? "about " : ""}2·(${P} − 1)/${P} of ${size}` : ""}`;
}

/** @param {number[]} sent  of each device */
function mostWords(sent) {
  const most = Math.max(...sent);
  return `${sent.every((each) => each === most) ? "" : "up to "}${inBytes(most)}`;
}

/**
 * How what the devices agree on compares with what one device computes.
 * @param {Options} options @param {number[]} sizes @param {boolean} equal  up to rounding
 */
export function verdictOf({ loss, combine }, sizes, equal) {
  const P = sizes.length;
  const N = sizes.reduce((all, size) => all + size, 0);
  if (equal) return `every device holds what one device computes from all images`;
  if (loss === "sum") return `{error ${P} times too small}: gradients of a sum loss have to be added, and were averaged`;
  if (combine === "sum") return `{error too large}: ${counted(P, "mean")} were added, ${weightWords(sizes, 1)}, and not 1/${N}`;
  return `{error not the mean of all images}: shares are uneven, so a mean of means weighs ${weightWords(sizes, P)}, and not 1/${N}`;
}

/** @param {number[]} sizes @param {number} P */
const weightWords = (sizes, P) => `an image of ${sizes.map((size, r) => `device ${r} by 1/${size * P}`).join(", of ")}`;

// ---- rows ------------------------------------------------------------------------------------

/** A term of the index map in numbers: `2·1`. @param {number} a @param {number} b */
const product = (a, b) => `${a}·${b}`;

/** Which rows a device makes, reads, holds. @param {Geometry} g @param {Shard} shard */
export function rowFormula(g, shard) {
  const [first, stop] = shard.outputs;
  const [top] = g.padding[0];
  /** @param {number} p @param {number} i */
  const at = (p, i) => ({ sum: `${product(g.stride[0], p)} + ${product(g.dilation[0], i)} − ${top}`, h: g.stride[0] * p + g.dilation[0] * i - top });
  const [from, to] = [at(first, 0), at(stop - 1, g.KH - 1)];
  const copied = g.padding_mode === "zeros" ? "beyond the image is zero padding" : `beyond the image are ${g.padding_mode} copies`;
  const beyond = from.h < 0 || to.h >= g.H ? ` (${copied})` : "";
  const missing = halo(shard);
  return (
    `device ${shard.device} makes output ${runWords("row", shard.outputs)}. h = stride·p + dilation·i − padding: ` +
    `it reads from ${from.sum} = ${formatNumber(from.h)} to ${to.sum} = ${formatNumber(to.h)}${beyond}. ` +
    `It holds ${runWords("row", shard.owned)}; ${missing.length ? `its halo: ${rowsNamed(missing)}` : "no halo"}`
  );
}

/** @param {Message[]} messages @param {boolean} back */
function sentWords(messages, back) {
  return messages
    .map(({ sender, receiver, rows }) => `${rowsNamed(rows)} (${back ? receiver : sender} → ${back ? sender : receiver})`)
    .join("; ");
}

/** @param {Geometry} g @param {Message[]} messages */
const rowNumbers = (g, messages) => g.N * g.C * g.W * messages.reduce((all, { rows }) => all + rows.length, 0);

/**
 * What a step of the rows' view has done.
 * @param {Geometry} g @param {Shard[]} shards @param {Message[]} messages @param {Move} move @param {boolean} equal
 */
export function rowStepWords(g, shards, messages, move, equal) {
  const P = shards.length;
  switch (move) {
    case "deal":
      return rowFormula(g, shards[Math.min(1, P - 1)]);
    case "send":
      return `forward, halo rows of {x x} are sent: ${sentWords(messages, false)}. Together ${inBytes(rowNumbers(g, messages))}`;
    case "forward":
      return "forward: each device convolves its block, and needs nothing else";
    case "part":
      return "backward: each device adds up x·{grad_output g} over its own output rows: a part of {result grad_weight}";
    case "spread":
      return "backward: each device spreads w·g over its block. What falls on the halo belongs to a neighbour’s rows of {result grad_input}";
    case "back":
      return `backward, the halo goes back, and is added to what the owner has: ${sentWords(messages, true)}`;
    default:
      return equal
        ? "{result grad_input}, row by row, is that of one device, and so is {result grad_weight}, the sum over devices"
        : "{error these are not the numbers of one device}";
  }
}
