// @ts-check
// What conv.js says about the cases of test_js_agrees.py: JSON from stdin, JSON to stdout.

import { readFileSync } from "node:fs";

import * as conv from "../src/convgrad/widgets/js/conv.js";
import { formatNumber } from "../src/convgrad/widgets/js/words.js";

/** @typedef {import("../src/convgrad/widgets/js/conv.js").Spec} Spec */
/** @typedef {import("../src/convgrad/widgets/js/conv.js").Tensor} Tensor */
/**
 * @typedef {object} Case
 * @property {Spec} geometry
 * @property {conv.Target} target
 * @property {conv.Order} order
 * @property {boolean} include_padding
 * @property {Tensor} x
 * @property {Tensor} weight
 * @property {Tensor} grad_output
 * @property {number[]} bias
 */

/** @param {() => unknown} compute */
function attempt(compute) {
  try {
    return compute();
  } catch (error) {
    if (error instanceof conv.GeometryError) return { error: error.message };
    throw error;
  }
}

/** @param {Case} each */
function answer({ geometry: spec, target, order, include_padding, bias, ...operands }) {
  const geometry = conv.geometryOf(spec);
  const list = conv.ledger(geometry, target, order, include_padding);
  const gradients = conv.gradients(geometry, operands);
  return {
    forward: [...conv.forward(geometry, operands, bias)],
    grad_input: [...gradients.grad_input],
    grad_weight: [...gradients.grad_weight],
    grad_bias: [...gradients.grad_bias],
    products: Array.from({ length: list.length }, (_, k) => {
      const { n, o, c, p, q, i, j, h, v, cell, target: lands } = list.at(k);
      const [a, b] = conv.factors(list, k, operands);
      return [n, o, c, p, q, i, j, h, v, cell, lands, a * b];
    }),
    half: [...conv.accumulate(list, operands, Math.floor(list.length / 2))],
  };
}

const { cases, specs, refits, numbers } = JSON.parse(readFileSync(0, "utf8"));

console.log(
  JSON.stringify({
    cases: cases.map(answer),
    specs: specs.map((/** @type {Spec} */ spec) =>
      attempt(() => {
        const { OH, OW, CG, OG, leftover } = conv.geometryOf(spec);
        return { OH, OW, CG, OG, leftover };
      }),
    ),
    refits: refits.map((/** @type {[Tensor, number[]]} */ [tensor, shape]) =>
      conv.refit(tensor, shape),
    ),
    numbers: numbers.map((/** @type {number} */ value) => formatNumber(value)),
  }),
);
