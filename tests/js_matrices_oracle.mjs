// @ts-check
// What the widgets of the matrices and of the groups compute for the cases of
// test_js_matrices_agree.py: JSON from stdin, JSON to stdout.

import { readFileSync } from "node:fs";

import { geometryOf } from "../src/convgrad/widgets/js/conv.js";
import { codeOf } from "../src/convgrad/widgets/js/blocks_words.js";
import { blockOf, meet, movesOf, share, standsAt, groupAt, tablesOf } from "../src/convgrad/widgets/js/grouped.js";
import { memory, unfold } from "../src/convgrad/widgets/js/im2col.js";
import { countSteps, sceneOf } from "../src/convgrad/widgets/js/unfold_steps.js";

/** @typedef {import("../src/convgrad/widgets/js/conv.js").Operands} Operands */
/** @typedef {import("../src/convgrad/widgets/js/unfold_steps.js").Stage} Stage */
/** @typedef {Operands & {geometry: import("../src/convgrad/widgets/js/conv.js").Spec}} Case */

/** @param {Case} each */
function matrices({ geometry: spec, ...arrays }) {
  const g = geometryOf(spec);
  /** @param {Stage} stage @param {number} n @param {number} k */
  const whole = (stage, n, k) => sceneOf(g, arrays, stage, { n, k }, countSteps(g, stage));
  const blocks = Array.from({ length: g.N * g.groups }, (_, b) => [Math.floor(b / g.groups), b % g.groups]);
  return {
    steps: ["columns", "forward", "weight", "input"].map((stage) => countSteps(g, /** @type {Stage} */ (stage))),
    memory: memory(g),
    blocks: blocks.map(([n, k]) => {
      const { sums, counts } = whole("input", n, k);
      const weight = whole("weight", n, k);
      return {
        columns: [...unfold(g, arrays.x, { n, k }).data],
        y: [...whole("forward", n, k).result.data],
        share: [...weight.result.data],
        grad_weight: Array.from(weight.result.data, (_, at) =>
          weight.at("result", Math.floor(at / weight.result.cols), at % weight.result.cols),
        ),
        products: [...whole("input", n, k).result.data],
        grad_input: [...sums],
        counts: [...counts],
      };
    }),
  };
}

/** All four ways to go: with the transpose or not, summed or not. */
const WAYS = [true, false].flatMap((transpose) => [false, true].map((per_image) => ({ transpose, per_image })));

/** @param {Case} each */
function groups({ geometry: spec, ...arrays }) {
  const g = geometryOf(spec);
  const count = (/** @type {number} */ size) => Array.from({ length: size }, (_, k) => k);
  return {
    ways: WAYS.map((options) => {
      const moves = movesOf(g, options);
      return {
        steps: moves.length - 1,
        code: codeOf(g, options).map(({ text }) => text),
        moves: moves.map(({ move }) => move),
        tables: moves.map(({ m }, step) => {
          const tables = tablesOf(g, options, moves.slice(0, step + 1).map(({ move }) => move), m);
          return Object.fromEntries(
            Object.entries(tables).map(([name, { shape, maps }]) => [
              name,
              { shape, maps: maps.map(({ index, at }) => [index, at]) },
            ]),
          );
        }),
      };
    }),
    shares: [true, false].map((transpose) =>
      count(g.N).map((n) => count(g.O).map((o) => count(g.CG).map((c) => share(g, arrays, transpose, c, n, o)))),
    ),
    uncropped: count(g.CG).map((c) =>
      count(g.N).map((n) =>
        count(g.O).map((o) => [...meet(g, arrays, standsAt(g, true, c, groupAt(g, n, o)), [n, o]).data]),
      ),
    ),
    grad_weight: count(g.O).map((o) => count(g.CG).map((c) => blockOf(g, arrays, true, c, o))),
  };
}

const { cases } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify({ matrices: cases.map(matrices), groups: cases.map(groups) }));
