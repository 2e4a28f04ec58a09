// @ts-check
// GradientViews without a page: steps, what meets what, and the words.  The numbers are held to
// Python's in test_js_views_agree.py.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { geometryOf, ravel } from "../../src/convgrad/widgets/js/conv.js";
import { inked } from "../../src/convgrad/widgets/js/inked.js";
import { readersOf } from "../../src/convgrad/widgets/js/places.js";
import { busiest, countSteps, groupmates, inputShare, kernelIn, operandAt, pageAt, slicesOf, spread, turned, underneath } from "../../src/convgrad/widgets/js/views_scene.js";
import { borderWords, captionOf, collectWords, kernelWords, metWords, ownWords, pageTapWords, pageWords, searchedWords, shareWords, stackWords, sumWords, tapWords, throwWords } from "../../src/convgrad/widgets/js/views_words.js";
import { plainText } from "../../src/convgrad/widgets/js/words.js";
import { spec } from "./specs.mjs";

/** @typedef {import("../../src/convgrad/widgets/js/conv.js").Spec} Spec */

const D = { N: 3, C: 4, H: 5, W: 4, O: 6, KH: 3, KW: 2, groups: 2 };
/** @type {Partial<Spec>} */
const C = { N: 2, H: 6, W: 7, stride: [2, 2] };
/** @param {Partial<Spec>} [differences] */
const geometry = (differences) => geometryOf(spec(differences));
/** @param {string} text */
const plain = (text) => plainText(inked(text));
/** Counting up from 1, in a shape. @param {number[]} shape */
const counted = (shape) => ({ shape, data: Array.from({ length: shape.reduce((a, b) => a * b) }, (_, k) => k + 1) });

describe("steps", () => {
  test("kernels; throws and catches; taps; pages", () => {
    const g = geometry(D);
    assert.equal(countSteps(g, "kernels"), 6);
    assert.equal(countSteps(g, "scatter-gather"), 9 + 20);
    assert.equal(countSteps(g, "convolution"), 6);
    assert.equal(countSteps(g, "batch"), 6);
  });
  test("the crop is a step of its own, where a leftover makes one", () => {
    assert.equal(countSteps(geometry(C), "convolution"), 4 * 3 + 1);
    assert.equal(countSteps(geometry({ ...C, dilation: [2, 2] }), "convolution"), 9, "this leftover holds no dilation step");
  });
  test("pages go image by image, group by group", () => {
    const g = geometry(D);
    assert.deepEqual([0, 1, 2, 3, 6].map((step) => pageAt(g, step)), [{ n: 0, k: 0 }, { n: 0, k: 0 }, { n: 0, k: 1 }, { n: 1, k: 0 }, { n: 2, k: 1 }]);
    assert.deepEqual([0, 1].map((k) => kernelIn(g, 5, k)), [2, 5]);
    assert.deepEqual(groupmates(g, 4), [3, 4, 5]);
  });
  test("an image, kernel or channel that does not exist becomes the nearest", () => {
    assert.deepEqual(slicesOf(geometry(D), { image: 9, kernel: -2, channel: 3 }), { n: 2, o: 0, c: 1 });
  });
});

describe("what a cell meets", () => {
  const g = geometry();
  /** The taps met by a cell, in the reading order of g. @param {import("../../src/convgrad/widgets/js/conv.js").Geometry} g @param {number} h @param {number} v */
  const taps = (g, h, v) => readersOf(g, h, v).map(({ i, j }) => `${i}${j}`).join(" ");
  test("in the middle the whole kernel, last tap first: it is turned by 180°", () => {
    assert.deepEqual(busiest(g), [2, 2]);
    assert.equal(taps(g, 2, 2), "22 21 20 12 11 10 02 01 00");
    assert.deepEqual(readersOf(g, 2, 2).map(({ i, j }) => ravel(turned(g, i, j), [3, 3])), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });
  test("in a corner one tap alone", () => {
    assert.equal(taps(g, 0, 0), "00");
  });
  test("with a stride some taps are skipped", () => {
    assert.equal(taps(geometry(C), 2, 2), "22 20 02 00");
    assert.equal(taps(geometry(C), 3, 2), "12 10");
    assert.equal(taps(geometry(C), 5, 2), "", "the leftover row");
  });
});

describe("g on x", () => {
  test("its cells stand a stride apart and move by the dilation", () => {
    const g = geometry({ H: 9, W: 9, stride: [2, 3], dilation: [2, 1] });
    assert.deepEqual(spread(g).size, [2 * (g.OH - 1) + 1, 3 * (g.OW - 1) + 1]);
    assert.deepEqual(underneath(g, 0, 0).slice(0, 2), [[0, 0], [0, 3]]);
    assert.deepEqual(underneath(g, 1, 1)[0], [2, 1]);
  });
  test("between them there is nothing to edit", () => {
    const g = geometry(C);
    const slices = { n: 1, o: 0, c: 0 };
    assert.deepEqual(operandAt(g, "convolution", slices, "g", 2, 4), ["grad_output", [1, 0, 1, 2]]);
    assert.equal(operandAt(g, "convolution", slices, "g", 1, 0), null);
    assert.deepEqual(operandAt(g, "kernels", slices, "g", 1, 0), ["grad_output", [1, 0, 1, 0]]);
  });
});

describe("in words", () => {
  const g = geometry(D);
  const slices = { n: 1, o: 4, c: 1 };
  const arrays = { x: counted([3, 4, 5, 4]), weight: counted([6, 2, 3, 2]), grad_output: counted([3, 6, 3, 3]) };
  test("every view says what it shows; stride and dilation by their numbers", () => {
    const views = /** @type {const} */ (["kernels", "scatter-gather", "convolution", "batch"]);
    assert.equal(new Set(views.map((view) => captionOf(g, view))).size, 4);
    assert.match(captionOf(geometry({ ...C, dilation: [1, 2], W: 9 }), "convolution"), /cells stand 2 apart.*moves by \(1, 2\)/);
    assert.match(captionOf(g, "batch"), /each group’s gradient/);
    assert.doesNotMatch(captionOf(geometry(), "batch"), /group/);
  });
  test("kernel by kernel", () => {
    assert.equal(plain(kernelWords(g, slices, 5)), "kernel 4, group B: share 2 of 3 of grad_input[1,3]");
    assert.match(plain(kernelWords(g, { ...slices, o: 5 }, 6)), /share 3 of 3 .*; now whole$/);
    assert.match(plain(kernelWords(g, { ...slices, o: 0 }, 0)), /still to be added$/);
    assert.equal(plain(kernelWords(geometry(), { n: 0, o: 0, c: 0 }, 1)), "kernel 0: share 1 of 1 of grad_input[0,0]; now whole");
    assert.equal(plain(ownWords(g, [4, 1, 0, 0], 7)), "grad_weight[4,1,0,0] = 7, a sum of 27 products x·g");
  });
  test("a share in products, a sum in shares", () => {
    const [value] = inputShare(g, arrays, slices);
    assert.equal(plain(shareWords(g, arrays, slices, [0, 0], value)), "kernel 4’s share of grad_input[1,3,0,0] = 55·91 = 5005");
    assert.equal(plain(stackWords(g, slices, [0, 1], [2, -1])), "grad_input[1,3,0,1] so far = 2 + (−1) = 1, the shares of kernels 3, 4");
    assert.equal(plain(stackWords(g, slices, [0, 1], [2, -1, 4])), "grad_input[1,3,0,1] = 2 + (−1) + 4 = 5, the shares of kernels 3, 4, 5");
    assert.match(plain(stackWords(g, slices, [0, 1], [])), /nothing is added yet/);
  });
  test("a cell throws, a cell collects", () => {
    assert.equal(plain(throwWords(g, arrays, slices, [1, 2])), "g[1,4,1,2] = 96 throws g·w into its window of grad_input[1,3], from row 1, column 2 on");
    const padded = geometry({ ...D, padding: [[1, 1], [1, 1]] });
    const more = { ...arrays, grad_output: counted([3, 6, padded.OH, padded.OW]) };
    assert.match(plain(throwWords(padded, more, slices, [0, 0])), /from row −1, column −1 on; 4 of 6 products are lost on padding$/);
    assert.equal(plain(collectWords(g, arrays, slices, [0, 0], 5005)), "kernel 4’s share of grad_input[1,3,0,0] collects 1 product: 55·91 = 5005");
    const left = geometry(C);
    const few = { x: counted([2, 1, 6, 7]), weight: counted([1, 1, 3, 3]), grad_output: counted([2, 1, 2, 3]) };
    assert.match(plain(collectWords(left, few, { n: 0, o: 0, c: 0 }, [5, 0], 0)), /collects 0 products: 0: no window reads this cell/);
  });
  test("a tap is met or skipped", () => {
    assert.match(plain(metWords(slices, [2, 1], { p: 0, q: 1 })), /^w\[4,1,2,1\] meets g\[1,4,0,1\]; .* turned by 180°$/);
    assert.match(plain(metWords(slices, [2, 1], undefined)), /meets nothing: a gap that the stride leaves/);
  });
  test("a border", () => {
    assert.match(borderWords(g, arrays, slices, -1, 0), /^zero padding/);
    const copied = geometry({ ...D, padding: [[1, 1], [1, 1]], padding_mode: "replicate" });
    assert.equal(plain(borderWords(copied, arrays, slices, -1, 0)), "a copy of x[1,3,0,0] = 141");
  });
  test("a tap of x ⋆ g, one that does not exist, and the crop", () => {
    const left = geometry(C);
    const one = { n: 1, o: 0, c: 0 };
    assert.equal(plain(tapWords(left, one, [1, 2], [[3, 2], [-1, 4]], 2)), "image 1’s share of grad_weight[0,0,1,2], g laid on x from row 1, column 2 on: 3·2 + (−1)·4 = 2");
    assert.match(plain(tapWords(left, one, [3, 0], [], 0)), /^there is no tap \(3, 0\)/);
    assert.match(plain(searchedWords(left, one)), /^x\[1,0\] ⋆ g\[1,0\] is image 1’s share of grad_weight\[0,0\]; 1 row cropped, 4×3 to 3×3/);
    assert.equal(plain(searchedWords(geometry(), { n: 0, o: 0, c: 0 })), "x[0,0] ⋆ g[0,0] is grad_weight[0,0]");
    const both = geometry({ H: 6, W: 6, stride: [2, 2] });
    assert.match(plain(searchedWords(both, { n: 0, o: 0, c: 0 })), /1 row, 1 column cropped/);
  });
  test("a long sum is cut, and says of how many", () => {
    const many = Array.from({ length: 50 }, () => [1, 1]);
    assert.match(plain(tapWords(g, slices, [0, 0], many, 50)), /1·1 \+ … \(50\) = 50$/);
  });
  test("pages and their sum", () => {
    assert.equal(plain(pageWords(g, slices, 4)), "image 1, group B: x ⋆ g is its share of grad_weight[4,1]; 2 of 3 pages");
    assert.match(plain(pageWords(g, slices, 0)), /still to be added$/);
    assert.equal(plain(pageWords(g, slices, 6)), "grad_weight is the sum of 3 pages in each of 2 groups");
    assert.equal(plain(pageTapWords(slices, [0, 1], -3)), "image 1’s share of grad_weight[4,1,0,1] is −3");
    assert.equal(plain(sumWords(slices, [0, 1], [5, -3], 3)), "grad_weight[4,1,0,1] so far = 5 + (−3) = 2, the shares of images 0, 1");
    assert.match(plain(sumWords(slices, [0, 1], [5], 1)), /= 5 = 5, the share of image 0$/);
    assert.match(plain(sumWords(slices, [0, 1], [], 3)), /nothing is added yet/);
  });
});
