// @ts-check
// How fast a layer can be at most: by arithmetic, by memory, by tiles.  Mirrors costs.py and
// roofline.py, which are the oracle: tests/test_js_roofline_agrees.py demands the same numbers.

import { shapes } from "./conv.js";
import { gemm } from "./implicit.js";
import { product } from "./limits.js";
import { cut } from "./schedule.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {"forward" | "grad_input" | "grad_weight"} Which */
/** @typedef {"float32" | "tf32" | "bfloat16" | "float16"} Precision */
/** What a data sheet says. @typedef {Record<Precision, number> & {memory: number, multiprocessors: number}} Card */
/** @typedef {{precision: Precision, columns: boolean, tile: number, splits: number}} Settings */
/**
 * @typedef {object} Bound
 * @property {number} operations
 * @property {number} bytes
 * @property {number} intensity  operations per byte
 * @property {number} tiles
 * @property {number} programs
 * @property {number} waves
 * @property {number} share  of the card's arithmetic
 * @property {number} ceiling  in TFLOP/s
 * @property {number} tflops
 * @property {number} milliseconds
 * @property {"arithmetic" | "memory" | "tiles"} limit
 */

export const MAPS = /** @type {Which[]} */ (["forward", "grad_input", "grad_weight"]);
export const PRECISIONS = /** @type {Precision[]} */ (["float32", "tf32", "bfloat16", "float16"]);
/** The names of the cards; what they can do comes with the model. */
export const CARDS = [
  ...["H200", "H100", "H100 PCIe", "A100-SXM4-80GB", "A100-SXM4-40GB", "A100-PCIE-40GB"],
  ...["L4", "RTX 4090", "RTX 3090", "T4"],
];
export const TILES = [0, 64, 128, 256];
/** @type {Record<Precision, number>} */
const BYTES = { float32: 4, tf32: 4, bfloat16: 2, float16: 2 };
/** @type {Record<Which, import("./implicit.js").Target>} */
const TARGET = { forward: "forward", grad_input: "input", grad_weight: "weight" };
const SHORTEST = 16;
export const NEARLY_ALL = 0.9;

/** Operations per byte from which on memory is no longer the limit. @param {Card} card @param {Precision} precision */
export const ridge = (card, precision) => card[precision] / card.memory;

/** The power of two that holds a size, within bounds. @param {number} size @param {number} most */
export const fitting = (size, most) => {
  let side = SHORTEST;
  while (side < size && side < most) side *= 2;
  return side;
};

/** Multiplications and additions of one map. @param {Geometry} g */
export const operations = (g) => 2 * product(shapes(g).grad_output) * g.CG * g.KH * g.KW;

/** Bytes that move at least. @param {Geometry} g @param {Precision} precision @param {boolean} columns  those of im2col too */
function traffic(g, precision, columns) {
  const once = Object.values(shapes(g)).map(product).reduce((a, b) => a + b);
  const pointwise = [g.KH, g.KW, ...g.stride].every((k) => k === 1) && !g.padding.flat().some(Boolean);
  const copied = columns && !pointwise ? 2 * g.N * g.C * g.KH * g.KW * g.OH * g.OW : 0;
  return BYTES[precision] * (once + copied);
}

/** @param {Geometry} g @param {Which} which @param {Card} card @param {Settings} settings @returns {Bound} */
export function bound(g, which, card, { precision, columns, tile, splits }) {
  const work = operations(g);
  let moved = traffic(g, precision, columns);
  let [tiles, programs, waves, share] = [0, 0, 0, 1];
  if (tile) {
    const { M, N } = gemm(g, TARGET[which]);
    const [rows, cols] = [fitting(M, tile), fitting(N, tile)];
    const options = { target: TARGET[which], tile: /** @type {[number, number, number]} */ ([rows, cols, 1]), splits: which === "grad_weight" ? splits : 1 };
    const pieces = cut(g, { ...options, processors: card.multiprocessors, two_passes: true });
    ({ tiles, programs } = pieces);
    waves = Math.ceil(programs / card.multiprocessors);
    if (pieces.parts > 1) moved += 2 * pieces.parts * 4 * product(shapes(g).weight);
    share = Math.min(1, work / (2 * waves * card.multiprocessors * rows * cols * pieces.share));
  }
  const ceiling = share * card[precision];
  const intensity = work / moved;
  const tflops = Math.min(ceiling, card.memory * intensity);
  const limit = tflops < ceiling ? "memory" : share >= NEARLY_ALL ? "arithmetic" : "tiles";
  return {
    ...{ operations: work, bytes: moved, intensity },
    ...{ tiles, programs, waves },
    ...{ share, ceiling, tflops, milliseconds: work / tflops / 1e9, limit },
  };
}

// ---- sliders ---------------------------------------------------------------------------------

/** @typedef {import("./conv.js").Spec} Spec */

const UP_TO_32 = Array.from({ length: 32 }, (_, k) => k + 1);
const COUNTS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 144, 192, 240, 256, 384, 512, 768, 1024, 1536, 2048];

/** Places of a slider; the present value is one of them. @param {number[]} stops @param {number} value */
export const withValue = (stops, value) => [...new Set([...stops, value])].sort((a, b) => a - b);

/** @param {number} a @param {number} b @returns {number[]} */
export const commonDivisors = (a, b) =>
  Array.from({ length: Math.min(a, b) }, (_, k) => k + 1).filter((d) => a % d === 0 && b % d === 0);

/** The stops of each slider. @param {Spec} spec @returns {Record<Knob, number[]>} */
export const stopsOf = (spec) => ({
  N: withValue([1, 2, 4, 8, 16, 32, 64, 128, 256], spec.N),
  C: withValue(COUNTS, spec.C),
  O: withValue(COUNTS, spec.O),
  groups: commonDivisors(spec.C, spec.O),
  H: withValue([4, 7, 8, 14, 16, 28, 32, 56, 64, 112, 128, 224, 256, 512], spec.H),
  KH: withValue([1, 2, 3, 4, 5, 7, 9, 11], spec.KH),
  stride: withValue([1, 2, 3, 4], spec.stride[0]),
});
export const SPLITS = [...UP_TO_32, 40, 48, 64, 96, 128, 192, 256];

/** @typedef {"N" | "C" | "O" | "groups" | "H" | "KH" | "stride"} Knob */

/** The convolution with one slider moved: a kernel keeps the size, and groups divide channels. @param {Spec} before @param {Knob} knob @param {number} value @returns {Spec} */
export function moved(before, knob, value) {
  const spec = structuredClone(before);
  const { C, O, groups } = before;
  if (knob === "H") spec.H = spec.W = value;
  else if (knob === "stride") spec.stride = [value, value];
  else if (knob === "KH") {
    spec.KH = spec.KW = value;
    const [down, across] = spec.dilation.map((d) => Math.floor((d * (value - 1)) / 2));
    spec.padding = [[down, down], [across, across]];
  } else spec[knob] = value;
  if (knob === "C" && groups === C && C === O && C > 1) {
    // depthwise stays depthwise
    spec.O = spec.groups = value;
  } else if (knob === "O" && groups === C && C === O && C > 1) {
    spec.C = spec.groups = value;
  } else spec.groups = Math.max(...commonDivisors(spec.C, spec.O).filter((d) => d <= spec.groups));
  return spec;
}
