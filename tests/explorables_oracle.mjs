// @ts-check
// What the explorables say about the cases of test_explorables_agree.py: JSON in, JSON out.

import { readFileSync } from "node:fs";

import * as conv from "../src/convgrad/widgets/js/conv.js";
import { formulas, isOneDimensional } from "../src/convgrad/widgets/js/explorer_words.js";
import { isThere, parseLook } from "../src/convgrad/widgets/js/look.js";
import { readCounts, readersOf, unread } from "../src/convgrad/widgets/js/places.js";

/** @typedef {{geometry: conv.Spec, x: conv.Tensor, weight: conv.Tensor, bias: number[], place: [number, number], looks: string[]}} Case */

/** @param {Case} each */
function answer({ geometry: spec, x, weight, bias, place, looks }) {
  const g = conv.geometryOf(spec);
  const [rows, cols] = readCounts(g);
  /** @type {unknown} */
  let same;
  try {
    same = conv.samePadding(g);
  } catch (error) {
    same = error instanceof conv.GeometryError ? error.message : "a bug";
  }
  return {
    y: [...conv.forward(g, { x, weight }, bias)],
    maps: conv.readMaps(g),
    reads: rows.map((row) => cols.map((col) => row * col)),
    readers: readersOf(g, ...place).map(({ p, q, i, j, h, v }) => [p, q, i, j, h, v]),
    unread: unread(g),
    formulas: [formulas(g, false), formulas(g, true)],
    one: isOneDimensional(g),
    same,
    there: looks.map((text) => {
      const look = parseLook(text);
      return look !== null && isThere(g, look);
    }),
  };
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(answer)));
