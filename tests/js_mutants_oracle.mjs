// @ts-check
// What the modules behind BreakTheGradient make of the cases of test_js_mutants.py: JSON in, JSON
// out.  The mistakes come in the order in which the widget lists them.

import { readFileSync } from "node:fs";

import { geometryOf } from "../src/convgrad/widgets/js/conv.js";
import { roundOf, showing } from "../src/convgrad/widgets/js/duel.js";
import { MUTANTS, right, wrong } from "../src/convgrad/widgets/js/mutants.js";
import { findings, scattered } from "../src/convgrad/widgets/js/noticing.js";

/** @typedef {import("../src/convgrad/widgets/js/conv.js").Operands} Operands */
/** @typedef {import("../src/convgrad/widgets/js/conv.js").Spec} Spec */
/** @typedef {import("../src/convgrad/widgets/js/conv.js").Tensor} Tensor */
/** @typedef {import("../src/convgrad/widgets/js/duel.js").Named} Named */

/** @param {Tensor | null} made */
const plain = (made) => made && { shape: made.shape, data: Array.from(made.data) };

/** @type {{mistakes: Named[], cases: ({geometry: Spec, seed: number} & Operands)[]}} */
const { mistakes, cases } = JSON.parse(readFileSync(0, "utf8"));

/** @param {(typeof cases)[number]} each */
function answer({ geometry, seed, ...operands }) {
  const g = geometryOf(geometry);
  const made = Object.fromEntries(mistakes.map(({ name }) => [name, wrong(name, g, operands)]));
  const should = (/** @type {Named["target"]} */ target) => right(target, g, operands);
  const shown = showing(mistakes, (name) => made[name], should);
  return {
    made: Object.fromEntries(Object.entries(made).map(([name, array]) => [name, plain(array)])),
    right: { weight: plain(should("weight")), input: plain(should("input")), bias: plain(should("bias")) },
    findings: Object.fromEntries(
      mistakes.map(({ name, target }) => [name, findings(name, target, g, operands)]),
    ),
    shown: shown.map(({ name }) => name),
    rounds: [0, 1, 2, 30].map((round) => {
      const found = roundOf(shown, seed, round);
      return found && [found.hidden.name, found.among.map(({ name }) => name)];
    }),
  };
}

console.log(
  JSON.stringify({
    known: Object.keys(MUTANTS),
    scattered: Array.from({ length: 100 }, (_, k) => scattered(k, k % 7)),
    answers: cases.map(answer),
  }),
);
