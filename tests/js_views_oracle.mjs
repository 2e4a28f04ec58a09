// @ts-check
// What GradientViews computes for the cases of test_js_views_agree.py: JSON from stdin, JSON to stdout.

import { readFileSync } from "node:fs";

import { geometryOf } from "../src/convgrad/widgets/js/conv.js";
import { readersOf } from "../src/convgrad/widgets/js/places.js";
import { busiest, countSteps, groupmates, inputShare, isAdded, kernelIn, operandAt, pageAt, searchSize, searched, slicesOf, spread, total, turned, underneath, weightShare, windowOf } from "../src/convgrad/widgets/js/views_scene.js";
import { TABS } from "../src/convgrad/widgets/js/views_words.js";

/** @typedef {import("../src/convgrad/widgets/js/conv.js").Operands} Operands */
/** @typedef {import("../src/convgrad/widgets/js/views_scene.js").Name} Name */
/** @typedef {Operands & {geometry: import("../src/convgrad/widgets/js/conv.js").Spec, wish: [number, number, number]}} Case */

/** @param {number} size */
const count = (size) => Array.from({ length: size }, (_, k) => k);

/** @param {Case} each */
function answer({ geometry: spec, wish: [image, kernel, channel], ...arrays }) {
  const g = geometryOf(spec);
  const slices = slicesOf(g, { image, kernel, channel });
  const { n, o, c } = slices;
  const L = g.OH * g.OW;
  const [rows, cols] = searchSize(g);
  const cell = busiest(g);
  const mates = groupmates(g, o);
  const steps = countSteps(g, "batch");
  return {
    steps: Object.keys(TABS).map((view) => countSteps(g, /** @type {Name} */ (view))),
    slices: [n, o, c],
    mates,
    shares: mates.map((mate) => [...inputShare(g, arrays, { n, o: mate, c })]),
    whole: total(mates.map((mate) => inputShare(g, arrays, { n, o: mate, c }))),
    thrown: count(L + 1).map((done) => [...inputShare(g, arrays, slices, done)]),
    windows: count(L).map((l) => windowOf(g, Math.floor(l / g.OW), l % g.OW).map(({ i, j, place, cell: into }) => [i, j, place, into])),
    busiest: cell,
    met: readersOf(g, ...cell)
      .filter((each) => each.h === cell[0] && each.v === cell[1])
      .map(({ p, q, i, j }) => [p, q, turned(g, i, j)]),
    size: [rows, cols],
    searched: [...searched(g, arrays, slices)],
    spread: { size: spread(g).size, cells: spread(g).cells.map(({ row, col, p, q }) => [row, col, p, q]) },
    under: count(rows * cols).map((k) => underneath(g, Math.floor(k / cols), k % cols)),
    images: count(g.N).map((image) => count(g.groups).map((k) => weightShare(g, arrays, { n: image, o: kernelIn(g, o, k), c }))),
    pages: count(steps).map((step) => pageAt(g, step + 1)),
    added: count(steps + 1).map((step) => count(g.N).map((image) => count(g.groups).map((k) => isAdded(g, step, image, k)))),
    operands: {
      x: operandAt(g, "convolution", slices, "x", 0, 0),
      w: operandAt(g, "kernels", slices, "w", 0, 0),
      g: operandAt(g, "batch", slices, "g", 0, 0),
      spread: spread(g).cells.map(({ row, col }) => operandAt(g, "convolution", slices, "g", row, col)),
    },
  };
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(answer)));
