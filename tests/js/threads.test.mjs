// @ts-check
// ThreadGrid without a page: what it says.  Tiles, time, addresses and sums are held to Python's in
// test_js_threads_agree.py.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { geometryOf } from "../../src/convgrad/widgets/js/conv.js";
import { inked } from "../../src/convgrad/widgets/js/inked.js";
import { bitsOf, runningSums } from "../../src/convgrad/widgets/js/rounding.js";
import { runAt, scheduleOf } from "../../src/convgrad/widgets/js/schedule.js";
import { addressWords, apart, bytes, endWords, nine, percent, sizeWords, stepWords, sumWords } from "../../src/convgrad/widgets/js/thread_words.js";
import { randomCode } from "../../src/convgrad/widgets/js/torch_code.js";
import { plainText } from "../../src/convgrad/widgets/js/words.js";
import { spec } from "./specs.mjs";

/** @typedef {import("../../src/convgrad/widgets/js/schedule.js").Options} Options */

const D = geometryOf(spec({ N: 3, C: 4, H: 5, W: 4, O: 6, KH: 3, KW: 2, groups: 2 }));
const F = geometryOf(spec({ N: 32, C: 64, H: 56, W: 56, O: 64, padding: [[1, 1], [1, 1]] }));
/** @type {Options} */
const SMALL = { target: "weight", tile: [2, 4, 4], splits: 1, processors: 4, two_passes: false };
/** @type {Options} */
const LARGE = { target: "weight", tile: [128, 128, 32], splits: 1, processors: 132, two_passes: false };
/** @param {string} text */
const plain = (text) => plainText(inked(text));

describe("a step in words", () => {
  test("before the first, in the middle, at the end", () => {
    const schedule = scheduleOf(D, SMALL);
    assert.equal(stepWords(schedule, 0, 0), "12 programs: from the first step on all of 4 multiprocessors work.");
    assert.equal(plain(stepWords(schedule, 5, 0)), "Step 5: all of 4 multiprocessors work; multiprocessor 0 adds k = 16 … 19 to tile 0 (group A).");
    // the last block has three products, and the second wave begins in step 8
    assert.match(plain(stepWords(schedule, 7, 3)), /adds k = 24 … 26 to tile 3/);
    assert.match(plain(stepWords(schedule, 8, 3)), /adds k = 0 … 3 to tile 7 \(group B\)/);
    assert.match(stepWords(schedule, 21, 1), /All is done\.$/);
  });
  test("idle multiprocessors are counted, and the one that is watched says so", () => {
    const schedule = scheduleOf(F, LARGE);
    assert.equal(stepWords(schedule, 0, 0), "5 programs: from the first step on 5 of 132 multiprocessors work, 127 idle.");
    assert.match(stepWords(schedule, 900, 77), /5 of 132 multiprocessors work, 127 idle; multiprocessor 77 is idle\.$/);
    assert.equal(runAt(schedule, 77, 0), null);
  });
  test("shares are named where there are several", () => {
    const schedule = scheduleOf(F, { ...LARGE, splits: 26 });
    assert.match(plain(stepWords(schedule, 1, 7)), /multiprocessor 7 adds k = 3,872 … 3,903 to tile 2, share 1\./);
  });
});

describe("where an entry lies", () => {
  const value = (/** @type {string} */ _name, /** @type {number} */ at) => at / 2;
  const none = () => null;
  test("of x: window, tap, source, and the number in memory", () => {
    assert.equal(
      plain(addressWords(D, "weight", "right", 1, 16, 9, value)),
      "X[16, 9]: k = 16 is window (n, p, q) = (1, 2, 1), r = 9 is (c, i, j) = (1, 1, 1), h = 1·2 + 1·1 − 0 = 3, v = 1·1 + 1·1 − 0 = 2: " +
        "x[1,3,3,2] = 77, number 154 of x in memory",
    );
  });
  test("on the padding nothing is read", () => {
    assert.match(plain(addressWords(F, "weight", "right", 0, 0, 0, none)), /h = 1·0 \+ 1·0 − 1 = −1, .*: on the padding, so 0, and nothing is read$/);
  });
  test("of g, of the weight, and for the other two maps", () => {
    assert.match(plain(addressWords(D, "weight", "left", 1, 2, 16, value)), /^G\[2, 16\]: o = 2, k = 16 is window .*: g\[1,5,2,1\] = 53, number 106 of g/);
    assert.match(plain(addressWords(D, "forward", "left", 0, 16, 3, none)), /^X\[16, 3\]: m = 16 is window \(n, p, q\) = \(1, 2, 1\), k = 3 is \(c, i, j\)/);
    assert.match(plain(addressWords(D, "forward", "right", 0, 3, 1, none)), /^W\[3, 1\]: k = 3 is \(c, i, j\) = \(0, 1, 1\), o = 1: w\[1,0,1,1\]/);
    assert.match(plain(addressWords(D, "input", "right", 1, 7, 1, none)), /^W\[7, 1\]: k = 7 is \(o, i, j\) = \(1, 0, 1\), c = 1: w\[4,1,0,1\]/);
    assert.match(plain(addressWords(D, "input", "left", 0, 0, 1, none)), /m = 0 is cell \(n, h, v\) = \(0, 0, 0\), .*: no output reads this cell through this tap, so 0$/);
  });
  test("a sum so far, and a share of it", () => {
    const schedule = scheduleOf(D, SMALL);
    assert.equal(plain(sumWords(D, schedule, 1, 2, 7, -3, 0, 20)), "grad_weight[5,1,0,1], grad_weight’s row 2, column 7: −3, summed over k = 0 … 19");
    assert.match(sumWords(D, scheduleOf(D, { ...SMALL, splits: 2 }), 0, 0, 0, 0, 16, 16), /^this share of .*before the first step$/);
  });
  test("the sizes by their names", () => {
    assert.equal(sizeWords(D, "weight"), "M_gemm = 3 rows (o), N_gemm = 12 columns (c, i, j), K_gemm = 27 products in each sum (n, p, q)");
    assert.match(sizeWords(geometryOf(spec()), "weight"), /^M_gemm = 1 row \(o\)/);
  });
});

describe("figures", () => {
  test("bytes and parts of a whole", () => {
    assert.deepEqual([0, 1023, 3744, 26 * 36864 * 4].map(bytes), ["0 B", "1023 B", "3.7 KiB", "3.7 MiB"]);
    assert.deepEqual([0, 1e-9, 0.0379, 0.98, 0.9999, 1].map(percent), ["0 %", "0.1 %", "3.8 %", "98 %", "99 %", "100 %"]);
  });
});

describe("two runs", () => {
  test("nine digits tell every float32 number from its neighbours", () => {
    const one = Math.fround(0.1);
    const bits = new Uint32Array(new Float32Array([one]).buffer);
    bits[0]++;
    const next = new Float32Array(bits.buffer)[0];
    assert.notEqual(nine(one), nine(next));
    assert.equal(apart(one, next), 1);
    assert.equal(apart(Math.fround(1e-45), -Math.fround(1e-45)), 2);
    assert.deepEqual([nine(0), nine(-0.25), nine(1e-7)], ["0", "−0.250000000", "1.00000000e−7"]);
    assert.equal(bitsOf(1), "3f800000");
  });
  test("sums are rounded after every addition", () => {
    const shares = new Float32Array([2 ** 24, 1, 1]);
    assert.deepEqual([runningSums(shares, [0, 1, 2])[2], runningSums(shares, [1, 2, 0])[2]], [2 ** 24, 2 ** 24 + 2]);
  });
  test("how they end", () => {
    const same = plain(endWords([0.5, 0.5], 1, true));
    assert.equal(same, "Both runs end with 0.500000000, bits 3f000000. The second pass adds share 0, share 1, …, whoever came first. Twenty runs give 1 different result.");
    assert.match(plain(endWords([1, 1 + 2 ** -22], 7, false)), /^The runs differ: 1\.00000000 \(bits 3f800000\) and 1\.00000024 \(bits 3f800002\), 2 float32 numbers apart\. Twenty runs give 7/);
  });
});

test("a large layer as PyTorch code takes random numbers", () => {
  const code = randomCode(F, "grad_weight");
  assert.match(code, /x = torch\.randn\(32, 64, 56, 56, requires_grad=True\)/);
  assert.match(code, /y = F\.conv2d\(x, weight, padding=\(1, 1\)\)\ny\.backward/);
  assert.match(code, /print\(weight\.grad\.shape\)/);
  assert.doesNotMatch(randomCode(F, "y"), /backward/);
});
