// @ts-check
// Which mistakes a duel offers.  Parity with Python: tests/test_js_mutants.py.

import assert from "node:assert/strict";
import { test } from "node:test";

import { alike, draw, roundOf, showing } from "../../src/convgrad/widgets/js/duel.js";

/** @param {...number} data */
const array = (...data) => ({ shape: [data.length], data });
/** @typedef {import("../../src/convgrad/widgets/js/duel.js").Named} Named */

/** @type {Named[]} */
const mistakes = ["a", "b", "c", "d", "e", "f"].map((name) => ({ name, target: "weight" }));

test("what looks right, and what looks like an earlier one, is left out", () => {
  /** @type {Record<string, ReturnType<typeof array> | null>} */
  const made = {
    ...{ a: array(1, 2), b: array(2, 1), c: array(2, 1), d: null, e: null },
    f: array(1, 2, 3),
  };
  const shown = showing(mistakes, (name) => made[name], () => array(1, 2));
  assert.deepEqual(shown.map(({ name }) => name), ["b", "d", "f"]);
});

test("the same wrong array for another gradient is another mistake", () => {
  /** @type {Named[]} */
  const two = [{ name: "a", target: "weight" }, { name: "b", target: "input" }];
  const shown = showing(two, () => array(5), () => array(1));
  assert.equal(shown.length, 2);
});

test("rounding is no difference, a whole unit is", () => {
  assert.ok(alike(array(0.1 + 0.2), array(0.3)));
  assert.ok(!alike(array(3), array(4)));
  assert.ok(!alike(array(3), { shape: [1, 1], data: [3] }));
});

test("a round hides one of at most four, all of one gradient, in their usual order", () => {
  for (let seed = 0; seed < 40; seed++) {
    const round = roundOf(mistakes, seed, seed % 5);
    assert.ok(round);
    const names = round.among.map(({ name }) => name);
    assert.equal(names.length, 4);
    assert.ok(names.includes(round.hidden.name));
    assert.deepEqual(names, [...names].sort());
  }
});

test("a gradient with a single mistake is no riddle", () => {
  /** @type {Named[]} */
  const lonely = [{ name: "z", target: "bias" }];
  assert.equal(roundOf(lonely, 1, 0), null);
  for (let round = 0; round < 12; round++) {
    assert.notEqual(roundOf([...lonely, ...mistakes], 1, round)?.hidden.name, "z");
  }
});

test("draws stay below their limit, hit every number, and follow from what is given", () => {
  const seen = new Set();
  for (let k = 0; k < 300; k++) seen.add(draw(7, 3, k));
  assert.deepEqual([...seen].sort(), [0, 1, 2, 3, 4, 5, 6]);
  assert.equal(draw(1000, 1, 2, 3), draw(1000, 1, 2, 3));
  assert.notEqual(draw(1000, 1, 2, 3), draw(1000, 1, 3, 2));
});
