// @ts-check
// The form's arithmetic: one field for both axes, or one for each.

import assert from "node:assert/strict";
import { test } from "node:test";

import { copySpec, differsPerAxis, knobs } from "../../src/convgrad/widgets/js/knobs.js";
import { spec } from "./specs.mjs";

/** Two groups of a channel each, and no two sizes alike. */
const grouped = () => spec({ C: 2, W: 6, O: 4, KW: 2, groups: 2 });

test("one field turns both axes, and all four sides", () => {
  const wish = grouped();
  for (const knob of knobs(false).steps) knob.set(wish, 2);
  assert.deepEqual([wish.stride, wish.dilation, wish.padding], [[2, 2], [2, 2], [[2, 2], [2, 2]]]);
  assert.equal(differsPerAxis(wish), false);
});

test("a field for each axis turns that one alone", () => {
  const wish = grouped();
  knobs(true).stride[1].set(wish, 3);
  knobs(true).padding[1].set(wish, 2);
  assert.deepEqual([wish.stride, wish.padding], [[1, 3], [[0, 2], [0, 0]]]);
  assert.equal(differsPerAxis(wish), true);
});

test("every number of the spec has its knob", () => {
  const turned = grouped();
  for (const knob of Object.values(knobs(true)).flat()) knob.set(turned, knob.get(turned) + 1);
  assert.deepEqual(turned, {
    ...grouped(),
    ...{ N: 2, C: 3, H: 6, W: 7, O: 5, KH: 4, KW: 3, groups: 3 },
    ...{ stride: [2, 2], padding: [[1, 1], [1, 1]], dilation: [2, 2] },
  });
});

test("a copy shares nothing with its original", () => {
  const original = grouped();
  copySpec(original).padding[0][0] = 9;
  assert.deepEqual(original, grouped());
});
