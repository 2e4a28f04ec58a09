// @ts-check
// What the widgets of the matrices and of the groups compute for the cases of
// test_js_matrices_agree.py: JSON from stdin, JSON to stdout.

import { readFileSync } from "node:fs";

import { geometryOf } from "../src/convgrad/widgets/js/conv.js";
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

const { cases } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify({ matrices: cases.map(matrices) }));
