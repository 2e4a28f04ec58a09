// @ts-check
// conv.js on cases small enough for paper; its agreement with Python is tested from Python.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import * as conv from "../../src/convgrad/widgets/js/conv.js";
import { companions, slicesOf, spotIn, unread } from "../../src/convgrad/widgets/js/places.js";
import { spec } from "./specs.mjs";

const B = spec();

test("a row as a kernel over a row: every number by hand", () => {
  const g = conv.geometryOf({ ...B, H: 1, W: 3, KH: 1, KW: 2 });
  const operands = {
    x: { shape: [1, 1, 1, 3], data: [1, 2, 3] },
    weight: { shape: [1, 1, 1, 2], data: [10, 1] },
    grad_output: { shape: [1, 1, 1, 2], data: [5, -7] },
  };
  assert.deepEqual([...conv.forward(g, operands, [100])], [112, 123]);
  const { grad_input, grad_weight, grad_bias } = conv.gradients(g, operands);
  assert.deepEqual([...grad_weight], [5 * 1 - 7 * 2, 5 * 2 - 7 * 3]);
  assert.deepEqual([...grad_input], [50, 5 - 70, -7]);
  assert.deepEqual([...grad_bias], [-2]);
});

describe("a list of products", () => {
  const g = conv.geometryOf({ ...B, N: 2, C: 2, O: 2, padding: [[1, 0], [0, 1]] });
  test("can be entered anywhere", () => {
    const list = conv.ledger(g, "weight", "position", false);
    const walked = Array.from({ length: list.length }, (_, k) => list.at(k));
    assert.deepEqual(list.at(17), walked[17]);
    assert.notDeepEqual(list.at(17), list.at(18));
  });
  test("leaves out products with zero padding when asked", () => {
    const all = conv.ledger(g, "input", "tap", true);
    const some = conv.ledger(g, "input", "tap", false);
    const lost = Array.from(all.t).filter((t) => t < 0).length;
    assert.ok(lost > 0);
    assert.equal(some.length, all.length - lost);
  });
  test("gives a kernel its own stretch of steps", () => {
    const list = conv.ledger(g, "input", "kernel", true);
    const kernels = Array.from({ length: list.length }, (_, k) => list.at(k).o);
    assert.deepEqual(kernels, [...kernels].sort());
  });
});

test("the padding modes copy the cells that PyTorch copies", () => {
  const around = [-2, -1, 0, 3, 4, 5];
  const copies = (/** @type {string} */ mode) => around.map((k) => conv.imageIndex(k, 4, mode));
  assert.deepEqual(copies("zeros"), [-1, -1, 0, 3, -1, -1]);
  assert.deepEqual(copies("reflect"), [2, 1, 0, 3, 2, 1]);
  assert.deepEqual(copies("replicate"), [0, 0, 0, 3, 3, 3]);
  assert.deepEqual(copies("circular"), [2, 3, 0, 3, 0, 1]);
});

test("an array that grows keeps its numbers", () => {
  const before = { shape: [1, 1, 2, 2], data: [7, 8, 9, 10] };
  const after = conv.refit(before, [1, 1, 2, 3]);
  assert.deepEqual(
    [0, 1, 3, 4].map((k) => after.data[k]),
    [7, 8, 9, 10],
  );
  assert.deepEqual(conv.refit(after, [1, 1, 2, 2]), before);
});

test("an impossible geometry says what would mend it", () => {
  assert.throws(() => conv.geometryOf({ ...B, KH: 5, KW: 5, dilation: [2, 2] }), {
    message:
      "kernel 5×5 with dilation 2 spans 9×9, the padded input is 5×5: pad by 2 more on each side or use dilation 1",
  });
});

describe("cells that belong together", () => {
  const g = conv.geometryOf({ ...B, W: 6, stride: [2, 2] });
  const c = conv.ledger(g, "weight", "tap", true).at(5);
  test("by tap: where the tap meets the image, a stride apart", () => {
    assert.deepEqual(companions(g, { ...c, i: 0, j: 1 }, "tap"), [[0, 1], [0, 3], [2, 1], [2, 3]]);
  });
  test("by position: the window", () => {
    const window = companions(g, { ...c, p: 1, q: 1 }, "position");
    assert.deepEqual([window.length, window[0], window[8]], [9, [2, 2], [4, 4]]);
  });
  test("the leftover column is read by no window", () => {
    assert.deepEqual(unread(g), [[0, 5], [1, 5], [2, 5], [3, 5], [4, 5]]);
  });
});

test("the slices of a step follow its channel and its group", () => {
  const g = conv.geometryOf({ ...B, N: 2, C: 4, O: 4, groups: 2 });
  const list = conv.ledger(g, "weight", "tap", true);
  const c = list.at(list.length - 1);
  assert.deepEqual(slicesOf(g, "weight", c), {
    x: [1, 3],
    weight: [3, 1],
    grad_output: [1, 3],
    result: [3, 1],
    share: [0, 3],
  });
  assert.deepEqual(spotIn("weight", "result", c), [2, 2]);
  assert.deepEqual(spotIn("weight", "x", c), [4, 4]);
});
