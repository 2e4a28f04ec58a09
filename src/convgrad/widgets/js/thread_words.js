// @ts-check
// ThreadGrid in words: the figures of a schedule, a step, the address of an entry, two runs.

import { ravel, source } from "./conv.js";
import { OPERANDS, gemm, left, plain, result, right, shapeOf, three } from "./implicit.js";
import { bitsOf } from "./rounding.js";
import { runAt } from "./schedule.js";
import { formatNumber, groupLetter, subscript } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./implicit.js").Operand} Operand */
/** @typedef {import("./implicit.js").Target} Target */
/** @typedef {import("./schedule.js").Schedule} Schedule */
/** @typedef {import("./schedule.js").Run} Run */
/** @typedef {"left" | "right" | "result"} Side */

/** Palette key and short name of each array. @type {Record<Operand, [string, string]>} */
export const ARRAYS = { x: ["x", "x"], weight: ["kernel", "w"], grad_output: ["grad_output", "g"] };
/** What the three matrices are called. @type {Record<Target, Record<Side, string>>} */
export const MATRICES = {
  weight: { left: "G", right: "X", result: "grad_weight" },
  forward: { left: "X", right: "W", result: "y" },
  input: { left: "G", right: "W", result: "grad_input" },
};
/** What rows, columns and the numbers of the sum stand for. @type {Record<Target, [string, string, string]>} */
export const AXES = {
  weight: ["o", "c, i, j", "n, p, q"],
  forward: ["n, p, q", "o", "c, i, j"],
  input: ["n, h, v", "c", "o, i, j"],
};

/** What each view shows. @type {Record<"time" | "loop" | "runs", string>} */
export const CAPTIONS = {
  time: "who computes which tile, and when; a model: every block of K takes one step",
  loop: "what one program holds: a slice of the left factor, a slice of the right one, and its tile",
  runs: "the same shares in two runs of the same program, added in float32",
};

/** @param {number} count @param {string} word */
export const several = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

/** @param {number} whole */
const thousands = (whole) => whole.toLocaleString("en");

/** Bytes as people say them. @param {number} bytes */
export function bytes(bytes) {
  const [unit, size] = bytes < 1024 ? ["B", 1] : bytes < 1024 ** 2 ? ["KiB", 1024] : ["MiB", 1024 ** 2];
  return `${formatNumber(Math.round((10 * bytes) / Number(size)) / 10)} ${unit}`;
}

/** Part of a whole in per cent, never rounded to 0 or 100 that it is not. @param {number} share */
export function percent(share) {
  const exact = share * 100;
  const shown = exact < 10 ? Math.round(exact * 10) / 10 : Math.round(exact);
  const honest = shown === 100 && share < 1 ? 99 : shown === 0 && share > 0 ? 0.1 : shown;
  return `${formatNumber(honest)} %`;
}

/** The figures of a schedule: what is counted, and the count in words. @param {Schedule} s @returns {[string, string][]} */
export function figures(s) {
  const { sizes, tiles, parts, programs, waves, lastWave, time, busy, workspace, atomics } = s;
  const { processors } = s.options;
  const product = `${thousands(sizes.M)} × ${thousands(sizes.K)} · ${thousands(sizes.K)} × ${thousands(sizes.N)}`;
  return [
    ["product", product + (sizes.groups > 1 ? `, ${sizes.groups} groups` : "")],
    ["programs", `${thousands(programs)} = ${several(tiles, "tile")} × ${several(parts, "share")}`],
    ["waves", `${thousands(waves)}, the last with ${lastWave} of ${processors} busy`],
    ["time", several(time, "step")],
    ["at work", `${percent(busy)} of all multiprocessors’ time`],
    ["workspace", bytes(workspace)],
    ["atomics", `${thousands(atomics)} to each number`],
  ];
}

/** k = 16 … 19. @param {number} block @param {number} depth @param {number} most */
const range = (block, depth, most) => {
  const [first, last] = [block * depth, Math.min((block + 1) * depth, most) - 1];
  return first === last ? `k = ${thousands(first)}` : `k = ${thousands(first)} … ${thousands(last)}`;
};

/** The block of K that a run goes through in a step. @param {Schedule} s @param {Run} run @param {number} step */
export const blockIn = (s, run, step) => s.program(run.program).first + Math.min(Math.max(step, run.start), run.end - 1) - run.start;

/** A program by its tile and share. @param {Schedule} s @param {number} number */
export function programName(s, number) {
  const { tile, part, group } = s.program(number);
  const share = s.parts > 1 ? `, share ${part}` : "";
  return `tile ${tile}${share}${s.sizes.groups > 1 ? ` (group ${groupLetter(group)})` : ""}`;
}

/** How many processors work in a step. @param {Schedule} s @param {number} step */
export const working = (s, step) => s.rows.filter((_, processor) => runAt(s, processor, step)).length;

/** What happens in a step; step 0 is before all. @param {Schedule} s @param {number} step @param {number} watched */
export function stepWords(s, step, watched) {
  const { processors, tile } = s.options;
  const busy = working(s, Math.max(0, step - 1));
  const idle = processors - busy;
  const all = `${idle ? thousands(busy) : "all"} of ${several(processors, "multiprocessor")} work${idle ? `, ${thousands(idle)} idle` : ""}`;
  if (!step) return `${several(s.programs, "program")}: ${all} from the first step on.`;
  const run = runAt(s, watched, step - 1);
  const one = run ? `adds ${range(blockIn(s, run, step - 1), tile[2], s.sizes.K)} to {result ${programName(s, run.program)}}` : "is idle";
  return `Step ${thousands(step)}: ${all}; multiprocessor ${watched} ${one}.${step === s.time ? " All is done." : ""}`;
}

// ---- where an entry lies ---------------------------------------------------------------------

/** @param {number} k @param {number} A @param {number} B */
const triple = (k, A, B) => `(${three(k, A, B).join(", ")})`;

/** `h = 1·2 + 1·1 − 0 = 3`. @param {Geometry} g @param {0 | 1} axis @param {number} place @param {number} tap @param {number} sum */
const sourceWords = ({ stride, dilation, padding }, axis, place, tap, sum) =>
  `${"hv"[axis]} = ${stride[axis]}·${place} + ${dilation[axis]}·${tap} − ${padding[axis][0]} = ${formatNumber(sum)}`;

/**
 * What an entry of the left or right matrix is, and where it lies in memory.
 * @param {Geometry} g @param {Target} target @param {"left" | "right"} side @param {number} group
 * @param {number} row @param {number} col @param {(name: Operand, at: number) => number | null} valueAt
 */
export function addressWords(g, target, side, group, row, col, valueAt) {
  const name = OPERANDS[target][side === "left" ? 0 : 1];
  const [key, letter] = ARRAYS[name];
  const entry = (side === "left" ? left : right)(g, target, group, row, col);
  const k = side === "left" ? col : row;
  const head = `{${key} ${MATRICES[target][side]}[${thousands(row)}, ${thousands(col)}]}`;
  const window = target === "weight" ? k : row;
  const windowWords = `${target === "weight" ? "k" : "m"} = ${thousands(window)} is window (n, p, q) = ${triple(window, g.OH, g.OW)}`;
  const isWindow = name === "x";
  const parts = [];
  if (isWindow) {
    const [i, j] = /** @type {number[]} */ (entry.tap);
    const [, p, q] = three(window, g.OH, g.OW);
    const [h, v] = source(g, p, q, i, j);
    parts.push(windowWords, `${target === "weight" ? "r" : "k"} = ${col} is (c, i, j) = ${triple(col, g.KH, g.KW)}`, sourceWords(g, 0, p, i, h), sourceWords(g, 1, q, j, v));
  } else if (target === "weight") {
    parts.push(`o = ${row}`, windowWords);
  } else if (side === "left") {
    const { H, W } = plain(g);
    parts.push(`m = ${thousands(row)} is cell (n, h, v) = ${triple(row, H, W)}`, `k = ${k} is (o, i, j) = ${triple(k, g.KH, g.KW)}`);
  } else {
    const [first, other] = target === "forward" ? "co" : "oc";
    parts.push(`k = ${k} is (${first}, i, j) = ${triple(k, g.KH, g.KW)}`, `${other} = ${col}`);
  }
  if (!entry.index) {
    const why = isWindow ? "on the padding, so 0, and nothing is read" : "no output reads this cell through this tap, so 0";
    return `${head}: ${parts.join(", ")}: ${why}`;
  }
  const at = ravel(entry.index, shapeOf(g, name));
  const value = valueAt(name, at);
  const equals = value === null ? "" : ` = ${formatNumber(value)}`;
  return `${head}: ${parts.join(", ")}: {${key} ${subscript(letter, entry.index)}}${equals}, number ${thousands(at)} of ${letter} in memory`;
}

/** A number of the tile and its sum so far. @param {Geometry} g @param {Schedule} s @param {number} group @param {number} row @param {number} col @param {number} sum @param {number} first @param {number} before */
export function sumWords(g, s, group, row, col, sum, first, before) {
  const { target } = s.options;
  const name = subscript(MATRICES[target].result, result(g, target, group, row, col));
  const share = s.parts > 1 ? "this share of " : "";
  const end = Math.min(before, s.sizes.K);
  const span = end > first ? `summed over k = ${first} … ${end - 1}` : "before the first step";
  return `${share}{result ${name}}, ${MATRICES[target].result}’s row ${row}, column ${col}: {result ${formatNumber(sum)}}, ${span}`;
}

// ---- two runs --------------------------------------------------------------------------------

/** A float32 number with the nine digits that tell it from all others. @param {number} value */
export const nine = (value) => (value === 0 ? "0" : Math.abs(value) >= 1e-4 ? value.toPrecision(9) : value.toExponential(8)).replaceAll("-", "−");

/** How many float32 numbers apart two of them are. @param {number} a @param {number} b */
export function apart(a, b) {
  /** @param {number} value */
  const place = (value) => {
    const bits = parseInt(bitsOf(value), 16);
    return bits < 0x80000000 ? bits : 0x80000000 - bits;
  };
  return Math.abs(place(a) - place(b));
}

/** How two runs end. @param {number[]} ends @param {number} different  results of twenty runs @param {boolean} twoPasses */
export function endWords([a, b], different, twoPasses) {
  const gap = apart(a, b);
  const both = gap
    ? `The runs differ: {result ${nine(a)}} (bits ${bitsOf(a)}) and {result ${nine(b)}} (bits ${bitsOf(b)}), ${several(gap, "float32 number")} apart.`
    : `Both runs end with {result ${nine(a)}}, bits ${bitsOf(a)}.`;
  const why = twoPasses ? " The second pass adds share 0, share 1, …, whoever came first." : "";
  return `${both}${why} Twenty runs give ${several(different, "different result")}.`;
}

/** The sizes in the notation of the book. @param {Geometry} g @param {Target} target */
export function sizeWords(g, target) {
  const { M, N, K } = gemm(g, target);
  const [rows, cols, sum] = AXES[target];
  return `M_gemm = ${several(M, "row")} (${rows}), N_gemm = ${several(N, "column")} (${cols}), K_gemm = ${several(K, "product")} in each sum (${sum})`;
}
