// @ts-check
// The sliding window without a page: what is looked at, its words, and the grey of its pictures.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { forward, geometryOf } from "../../src/convgrad/widgets/js/conv.js";
import { isThere, parseLook, placeOf, slicesOfLook, writeLook } from "../../src/convgrad/widgets/js/look.js";
import { extent, greyScale } from "../../src/convgrad/widgets/js/picture.js";
import { readersOf } from "../../src/convgrad/widgets/js/places.js";
import { asPictures } from "../../src/convgrad/widgets/js/sliding_drawing.js";
import { wordsOf } from "../../src/convgrad/widgets/js/sliding_words.js";
import { plainText } from "../../src/convgrad/widgets/js/words.js";
import { spec } from "./specs.mjs";

const g = geometryOf(spec({ H: 3, W: 3, KH: 2, KW: 2 }));
const x = { shape: [1, 1, 3, 3], data: [1, 2, 0, 0, 1, 2, 2, 0, 1] };
const weight = { shape: [1, 1, 2, 2], data: [1, -2, 3, 0] };
const bias = { shape: [1], data: [10] };

/** @param {import("../../src/convgrad/widgets/js/conv.js").Geometry} geometry */
const numbersOf = (geometry) => ({ x, weight, bias, y: forward(geometry, { x, weight }, bias.data) });

/** @param {string} look @param {number} [c] */
function said(look, c = 0, geometry = g, numbers = numbersOf(geometry)) {
  const parsed = parseLook(look);
  assert.ok(parsed);
  const { head, lines } = wordsOf(geometry, numbers, parsed, c);
  return { head: plainText(head), lines: lines.map(plainText) };
}

describe("a look", () => {
  test("is read and written alike", () => {
    for (const text of ["y[0,0,1,2]", "w[3,1,0,2]", "x[0,0,-1,4]"]) {
      assert.equal(writeLook(parseLook(text)), text);
    }
    for (const text of ["", "z[0,0,0,0]", "y[0,0,1]", "y[0,0,1,a]"]) {
      assert.equal(parseLook(text), null);
    }
    assert.equal(writeLook(null), "");
  });

  test("is there or is not; of x the border counts too", () => {
    const padded = geometryOf(spec({ padding: [[1, 0], [0, 2]] }));
    const there = (/** @type {string} */ text) => {
      const look = parseLook(text);
      return look !== null && isThere(padded, look);
    };
    assert.deepEqual(
      ["x[0,0,-1,0]", "x[0,0,-2,0]", "x[0,0,4,6]", "x[0,0,5,0]", "x[0,0,0,7]"].map(there),
      [true, false, true, false, false],
    );
    assert.deepEqual(
      ["y[0,0,3,4]", "y[0,0,4,0]", "w[0,0,2,2]", "w[0,0,3,0]", "y[0,0,-1,0]"].map(there),
      [true, false, true, false, false],
    );
  });

  test("says which slices are shown, and leaves the others", () => {
    const grouped = geometryOf(spec({ N: 2, C: 4, O: 6, groups: 2 }));
    const before = { n: 1, o: 1, c: 1 };
    const after = (/** @type {string} */ text) => slicesOfLook(grouped, parseLook(text), before);
    assert.deepEqual(after("y[0,5,0,0]"), { n: 0, o: 5, c: 1 });
    assert.deepEqual(after("w[2,0,1,1]"), { n: 1, o: 2, c: 0 });
    // channel 1 is in the group of kernel 1; channel 3 is in the other one
    assert.deepEqual(after("x[0,1,0,0]"), { n: 0, o: 1, c: 1 });
    assert.deepEqual(after("x[0,3,0,0]"), { n: 0, o: 3, c: 1 });
    assert.deepEqual(slicesOfLook(g, null, { n: 5, o: 5, c: 5 }), { n: 0, o: 0, c: 0 });
  });

  test("has a place among all output cells", () => {
    const two = geometryOf(spec({ N: 2, O: 3 }));
    assert.equal(placeOf(two, [1, 2, 0, 1]), 9 * 5 + 1);
  });
});

describe("the words", () => {
  test("of an output cell: the sum in letters and in numbers", () => {
    const { head, lines } = said("y[0,0,0,1]");
    assert.equal(
      head,
      "y[0,0,0,1] = 15: the bias and 4 products, where h = 1·0 + 1·i − 0,  v = 1·1 + 1·j − 0",
    );
    assert.deepEqual(lines, [
      "y[0,0,0,1] = b[0] + w[0,0,0,0]·x[0,0,0,1] + w[0,0,0,1]·x[0,0,0,2]" +
        " + w[0,0,1,0]·x[0,0,1,1] + w[0,0,1,1]·x[0,0,1,2]",
      "= 10 + 1·2 + (−2)·0 + 3·1 + 0·2 = 15",
    ]);
  });

  test("of a tap: every place where it is used", () => {
    const { head, lines } = said("w[0,0,0,1]");
    assert.equal(head, "w[0,0,0,1] = −2 is used 4 times: once at each position of the window");
    assert.match(lines[0], /^y\[0,0,0,0\] has \(−2\)·x\[0,0,0,1\] = \(−2\)·2; {2}y\[0,0,0,1\] has/);
    assert.equal(lines[0].split(";").length, 4);
  });

  test("of an input cell: every output that it touches, and the tap", () => {
    const { head, lines } = said("x[0,0,1,1]");
    assert.equal(head, "x[0,0,1,1] = 1 is read 4 times");
    assert.equal(
      lines[0],
      "y[0,0,0,0] through w[0,0,1,1]: 0·1;  y[0,0,0,1] through w[0,0,1,0]: 3·1;  " +
        "y[0,0,1,0] through w[0,0,0,1]: (−2)·1;  y[0,0,1,1] through w[0,0,0,0]: 1·1",
    );
    assert.equal(said("x[0,0,0,0]").head, "x[0,0,0,0] = 1 is read 1 time");
  });

  test("of padding, of copies, and of what no window reads", () => {
    const padded = geometryOf(spec({ H: 3, W: 3, KH: 2, KW: 2, padding: [[1, 0], [0, 0]] }));
    assert.match(said("y[0,0,0,0]", 0, padded).lines[0], /w\[0,0,0,0\]·padding \+/);
    assert.match(said("x[0,0,-1,0]", 0, padded).head, /^x\[0,0,−1,0\], zero padding, is read 1 time/);
    assert.match(said("w[0,0,0,0]", 0, padded).head, /6 times: .*, 2 of them on zero padding$/);
    const copied = geometryOf({ ...padded, padding_mode: "replicate" });
    assert.match(said("y[0,0,0,0]", 0, copied).lines[0], /w\[0,0,0,0\]·x\[0,0,0,0\] \+/);
    assert.match(said("x[0,0,0,0]", 0, copied).head, /is read 3 times, 1 of them through copies$/);
    assert.match(said("x[0,0,-1,0]", 0, copied).head, /, a copy of x\[0,0,0,0\] = 1 is read 1 time$/);
    const left = geometryOf(spec({ H: 3, W: 3, KH: 2, KW: 2, stride: [2, 2] }));
    assert.match(said("x[0,0,2,2]", 0, left).head, /is read by no window: it has no part in y$/);
  });

  test("of a sum that is too long: each channel's, and the one that is shown", () => {
    const many = geometryOf(spec({ C: 6, H: 3, W: 3 }));
    const tensor = (/** @type {number[]} */ shape) => ({ shape, data: Array(54).fill(2) });
    const own = { x: tensor([1, 6, 3, 3]), weight: tensor([1, 6, 3, 3]), bias };
    const y = forward(many, own, bias.data);
    const { head, lines } = said("y[0,0,0,0]", 4, many, { ...own, y });
    assert.match(head, /= 226: the bias and 54 products/);
    assert.equal(lines[0], "bias and channels: = 10 + 36 + 36 + 36 + 36 + 36 (shown) + 36 = 226");
    assert.match(lines[1], /^channel 4: w\[0,4,0,0\]·x\[0,4,0,0\] \+ … = 2·2 .* = 36$/);
  });
});

test("who reads a place: each window once, and copies where they lie", () => {
  assert.deepEqual(
    readersOf(g, 1, 1).map(({ p, q, i, j }) => [p, q, i, j]),
    [[0, 0, 1, 1], [0, 1, 1, 0], [1, 0, 0, 1], [1, 1, 0, 0]],
  );
  const circular = geometryOf(
    spec({ H: 1, W: 3, KH: 1, KW: 2, padding: [[0, 0], [1, 0]], padding_mode: "circular" }),
  );
  assert.deepEqual(readersOf(circular, 0, 2).map(({ v }) => v), [-1, 2]);
  assert.deepEqual(readersOf(circular, 0, -1).map(({ v }) => v), [-1]);
});

describe("a picture", () => {
  test("keeps the scale of an image without negative numbers", () => {
    assert.deepEqual(greyScale([-40, 300], [0, 255], [0, -1, 5, -1, -1, -1]), [0, 255]);
    assert.deepEqual(greyScale([3], [0, 200], [0.25, 0.25]), [0, 100]);
  });
  test("has nothing in the middle for a kernel that adds up to nothing", () => {
    assert.deepEqual(greyScale([-30, 12], [0, 255], [-1, 0, 1]), [-30, 30]);
    assert.deepEqual(greyScale([0, 0], [0, 255], [-1, 1]), [-1, 1]);
  });
  test("else goes from the least number to the largest", () => {
    assert.deepEqual(greyScale([-3, 9], [-4, 4], [1, 2]), [-3, 9]);
    assert.deepEqual(greyScale([7, 7], [-4, 4], [1, 2]), [7, 8]);
  });
  test("is drawn where a table would be too large", () => {
    assert.equal(asPictures(spec({ H: 20, W: 20 })), false);
    assert.equal(asPictures(spec({ H: 20, W: 20, padding: [[1, 0], [0, 0]] })), true);
  });
  test("finds its least and its largest number", () => {
    assert.deepEqual(extent([3, -1, 2]), [-1, 3]);
  });
});
