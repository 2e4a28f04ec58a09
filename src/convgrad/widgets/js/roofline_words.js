// @ts-check
// What the roofline says: figures with their units, one sentence for a map, and the table.
// The same as roofline_words.py; a test compares them.

import { MAPS, ridge } from "./roofline_model.js";

/** @typedef {import("./roofline_model.js").Bound} Bound */
/** @typedef {import("./roofline_model.js").Card} Card */
/** @typedef {import("./roofline_model.js").Precision} Precision */
/** @typedef {import("./roofline_model.js").Which} Which */

/** @type {Record<Precision, string>} */
export const TITLES = { float32: "float32", tf32: "TF32", bfloat16: "bfloat16", float16: "float16" };

/** Three digits, plain. @param {number} value */
export const three = (value) => String(Number(value.toPrecision(3)));

const STEPS = /** @type {const} */ ({
  operations: [[1e15, "·10¹⁵"], [1e12, "·10¹²"], [1e9, "·10⁹"], [1e6, "·10⁶"], [1e3, "·10³"], [1, ""]],
  bytes: [[1e12, " TB"], [1e9, " GB"], [1e6, " MB"], [1e3, " kB"], [1, " B"]],
  milliseconds: [[1e3, " s"], [1, " ms"], [1e-3, " µs"], [1e-6, " ns"]],
});

/** A quantity in its unit: `51.4 MB`. @param {keyof typeof STEPS} kind @param {number} value */
export function amount(kind, value) {
  const steps = STEPS[kind];
  const [size, unit] = steps.find(([least]) => value >= least) ?? steps[steps.length - 1];
  return three(value / size) + unit;
}

/** @param {number} share */
export const percent = (share) => `${three(100 * share)} %`;

/** @param {number} count @param {string} word */
const many = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** How the tiles fall on the multiprocessors. @param {Bound} bound @param {Card} card */
export function tilesWords({ tiles, programs, waves, share }, { multiprocessors }) {
  const busy = programs / (waves * multiprocessors);
  const shares = programs > tiles ? ` in ${many(programs / tiles, "share")} each` : "";
  const turns = waves > 1 ? `in ${waves} waves` : "in one wave";
  const places = `${percent(busy)} of the places taken`;
  return (
    `${many(tiles, "tile")}${shares} on ${multiprocessors} multiprocessors, ${turns}: ${places}, ` +
    `${percent(Math.min(1, share / busy))} of their work needed`
  );
}

/** One map in a sentence: what limits it, and what that leaves. @param {Which} which @param {Bound} bound @param {Card} card @param {Precision} precision */
export function sentence(which, bound, card, precision) {
  const per = `${three(bound.intensity)} operations a byte`;
  const at = `the ridge is at ${three(ridge(card, precision))}`;
  const why = {
    memory: `waits for memory: ${per}, and ${at}`,
    arithmetic: `is held up by arithmetic alone: ${per}, and ${at}`,
    tiles: `is held up by its tiles: ${bound.tiles ? tilesWords(bound, card) : ""}`,
  }[bound.limit];
  return (
    `${which} ${why}. At most ${three(bound.tflops)} TFLOP/s, ` +
    `so at least ${amount("milliseconds", bound.milliseconds)}.`
  );
}

/** A row for each quantity, a column for each map. @param {Record<Which, Bound>} bounds @returns {string[][]} */
export function rows(bounds) {
  const all = MAPS.map((which) => bounds[which]);
  const tiled = all.some(({ tiles }) => tiles);
  /** @type {[string, (bound: Bound) => string, boolean?][]} */
  const quantities = [
    ["operations", (b) => amount("operations", b.operations)],
    ["bytes moved", (b) => amount("bytes", b.bytes)],
    ["operations a byte", (b) => three(b.intensity)],
    ["tiles", (b) => `${b.tiles}`, tiled],
    ["programs", (b) => `${b.programs}`, tiled],
    ["waves", (b) => `${b.waves}`, tiled],
    ["share of the arithmetic", (b) => percent(b.share), tiled],
    ["at most, TFLOP/s", (b) => three(b.tflops)],
    ["least time", (b) => amount("milliseconds", b.milliseconds)],
    ["what limits", (b) => b.limit],
  ];
  return quantities.filter(([, , shown = true]) => shown).map(([name, text]) => [name, ...all.map(text)]);
}
