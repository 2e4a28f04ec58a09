// @ts-check
// What ThreadGrid computes for the cases of test_js_threads_agree.py: JSON from stdin, JSON to
// stdout.

import { readFileSync } from "node:fs";

import { geometryOf, ravel } from "../src/convgrad/widgets/js/conv.js";
import { OPERANDS, gemm, left, result, right, shapeOf } from "../src/convgrad/widgets/js/implicit.js";
import { arrivals, bitsOf, noise, runningSums, shareSums, tenths } from "../src/convgrad/widgets/js/rounding.js";
import { cut, isDrawn, scheduleOf, usual } from "../src/convgrad/widgets/js/schedule.js";
import { figures } from "../src/convgrad/widgets/js/thread_words.js";

/** @typedef {import("../src/convgrad/widgets/js/implicit.js").Operand} Operand */
/** @typedef {{shape: number[], data: number[]}} Tensor */
/** @typedef {{geometry: import("../src/convgrad/widgets/js/conv.js").Spec, options: import("../src/convgrad/widgets/js/schedule.js").Options, entries: number[][], cell: [number, number, number], seed: number, arrays: Record<Operand, Tensor> | null}} Case */

const NAMES = /** @type {Operand[]} */ (["x", "weight", "grad_output"]);
/** @param {Float32Array | number[]} values */
const bits = (values) => Array.from(values, (value) => bitsOf(value));

const { cases, limits } = JSON.parse(readFileSync(0, "utf8"));

/** @param {Case} each */
function answer({ geometry: spec, options, entries, cell: [group, row, col], seed, arrays }) {
  const g = geometryOf(spec);
  const { target } = options;
  const schedule = scheduleOf(g, options);
  const [a, b] = OPERANDS[target];
  /** @param {number[] | null} index @param {Operand} name */
  const offset = (index, name) => (index ? ravel(index, shapeOf(g, name)) : -1);
  const numbers = /** @type {Record<Operand, import("../src/convgrad/widgets/js/rounding.js").Numbers>} */ (
    Object.fromEntries(NAMES.map((name) => [name, arrays ? tenths(arrays[name].data) : noise(name)]))
  );
  const shares = shareSums(g, schedule, numbers, group, row, col);
  const tile = (group * schedule.down + Math.floor(row / options.tile[0])) * schedule.across + Math.floor(col / options.tile[1]);
  const orders = [0, 1, 2, 3].map((run) => arrivals(schedule, tile, seed + run));
  const { time, busy, waves, lastWave, workspace, atomics } = schedule;
  return {
    gemm: Object.values(gemm(g, target)),
    cut: cut(g, options),
    entries: entries.map(([m, k, n]) => [
      offset(left(g, target, group, m, k).index, a),
      offset(right(g, target, group, k, n).index, b),
      result(g, target, group, m, n),
    ]),
    programs: schedule.runs.map(({ program }) => Object.values(schedule.program(program))),
    runs: schedule.runs.map(({ program, processor, start, end }) => [program, processor, start, end]),
    counts: { time, busy, waves, lastWave, workspace, atomics },
    figures: figures(schedule),
    usual: usual(g, target, isDrawn(g, limits)),
    shares: bits(shares),
    orders,
    sums: orders.map((order) => bits(runningSums(shares, order))),
  };
}

console.log(JSON.stringify(cases.map(answer)));
