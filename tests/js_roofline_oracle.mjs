// @ts-check
// What the roofline says about the cases of test_js_roofline_agrees.py: JSON in, JSON out.

import { readFileSync } from "node:fs";

import { geometryOf } from "../src/convgrad/widgets/js/conv.js";
import { MAPS, bound, moved, ridge } from "../src/convgrad/widgets/js/roofline_model.js";
import { amount, rows, sentence, three } from "../src/convgrad/widgets/js/roofline_words.js";

/** @typedef {import("../src/convgrad/widgets/js/roofline_model.js").Knob} Knob */
/** @typedef {import("../src/convgrad/widgets/js/roofline_model.js").Settings & {geometry: import("../src/convgrad/widgets/js/conv.js").Spec, card: import("../src/convgrad/widgets/js/roofline_model.js").Card, knob: Knob, value: number}} Case */

/** @param {Case} each */
function answer({ geometry, card, precision, columns, tile, splits, knob, value }) {
  const g = geometryOf(geometry);
  const settings = { precision, columns, tile, splits };
  const bounds = Object.fromEntries(MAPS.map((which) => [which, bound(g, which, card, settings)]));
  return {
    bounds,
    ridge: ridge(card, precision),
    sentences: MAPS.map((which) => sentence(which, bounds[which], card, precision)),
    rows: rows(/** @type {any} */ (bounds)),
    moved: moved(geometry, knob, value),
  };
}

const { cases, numbers } = JSON.parse(readFileSync(0, "utf8"));
console.log(
  JSON.stringify({
    answers: cases.map(answer),
    numbers: numbers.map((/** @type {number} */ value) => [
      three(value),
      amount("operations", value),
      amount("bytes", value),
      amount("milliseconds", value),
    ]),
  }),
);
