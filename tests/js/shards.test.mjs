// @ts-check
// ShardSum without a page: shares, steps and sentences.  The numbers are held to Python's in
// test_js_shards_agree.py.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { geometryOf } from "../../src/convgrad/widgets/js/conv.js";
import { inked } from "../../src/convgrad/widgets/js/inked.js";
import { evenly, haloMessages, imageShards, partOf, rowShards, whole } from "../../src/convgrad/widgets/js/shards.js";
import { imageScene, movesIn, rowScene, sizesOf } from "../../src/convgrad/widgets/js/shards_scene.js";
import { chunkWords, entryName, entryWords, rowWords } from "../../src/convgrad/widgets/js/shards_spots.js";
import { bucketSize, imageStepWords, rowFormula, rowStepWords, verdictOf, whoWords } from "../../src/convgrad/widgets/js/shards_words.js";
import { plainText } from "../../src/convgrad/widgets/js/words.js";
import { spec } from "./specs.mjs";

/** @typedef {import("../../src/convgrad/widgets/js/shards_words.js").Options} Options */
const D = { N: 3, C: 4, H: 5, W: 4, O: 6, KH: 3, KW: 2, groups: 2 };
/** @type {Options} */
const ADDED = { view: "images", loss: "sum", combine: "sum" };
/** @param {Partial<import("../../src/convgrad/widgets/js/conv.js").Spec>} [differences] */
const geometry = (differences) => geometryOf(spec(differences));
const plain = (/** @type {string} */ text) => plainText(inked(text));

describe("shares", () => {
  test("even ones, the first as large as any", () => {
    assert.deepEqual(evenly(7, 3), [3, 2, 2]);
    assert.deepEqual(evenly(2, 3), [1, 1, 0]);
  });
  for (const [shares, expected] of /** @type {[string, number[]][]} */ ([
    ["2-1", [2, 1]],
    ["2-2", [2, 1]],
    ["1-1-1-1", [1, 1, 1]],
    ["4", [1, 1, 1]],
    ["3-0", [2, 1]],
    ["nonsense", [1, 1, 1]],
  ])) {
    test(`${shares} of three`, () => {
      const options = { view: "images", shares };
      assert.deepEqual(sizesOf({ N: 3, OH: 9 }, options, 8), expected);
    });
  }
  test("no more devices than can be drawn", () => {
    assert.equal(sizesOf({ N: 30, OH: 9 }, { view: "images", shares: Array(20).fill(1).join("-") }, 8).length, 8);
  });
});

describe("the steps", () => {
  test("each message of the ring is one", () => {
    const moves = movesIn(geometry(D), { ...ADDED, shares: "1-1-1" }, 8);
    assert.deepEqual(moves, ["deal", "part", "ring", "ring", "ring", "ring", "compare"]);
    assert.deepEqual(movesIn(geometry(D), { ...ADDED, combine: "average", shares: "2-1" }, 8), ["deal", "part", "ring", "ring", "average", "compare"]);
    assert.deepEqual(movesIn(geometry(D), { ...ADDED, combine: "average", shares: "3" }, 8), ["deal", "part", "compare"]);
  });
  test("without a halo nothing is sent", () => {
    const options = { view: "rows", shares: "2-1" };
    assert.ok(movesIn(geometry(), options, 8).includes("back"));
    assert.ok(!movesIn(geometry({ H: 3, KH: 1 }), options, 8).includes("send"));
  });
});

describe("what devices compute", () => {
  const g = geometry({ N: 2, H: 1, W: 3, KH: 1, KW: 2 });
  const arrays = {
    x: { shape: [2, 1, 1, 3], data: [1, 2, 3, 10, 20, 30] },
    weight: { shape: [1, 1, 1, 2], data: [5, 7] },
    grad_output: { shape: [2, 1, 1, 2], data: [1, -1, 0, 2] },
  };
  test("by hand", () => {
    const parts = imageShards(g, [1, 1]).map((shard) => partOf(shard, arrays));
    assert.deepEqual(parts.map(({ grad_weight }) => [...grad_weight]), [[-1, -1], [40, 60]]);
    assert.deepEqual(parts.map(({ grad_bias }) => [...grad_bias]), [[0], [2]]);
    assert.deepEqual([...parts[1].grad_input], [0, 0, 0, 0, 10, 14]);
    assert.deepEqual([...whole(g, arrays).grad_weight], [39, 59]);
  });
  test("sum losses averaged, and means of uneven shares", () => {
    assert.ok(imageScene(g, arrays, ADDED, [1, 1]).equal);
    assert.ok(!imageScene(g, arrays, { ...ADDED, combine: "average" }, [1, 1]).equal);
    assert.ok(imageScene(g, arrays, { ...ADDED, loss: "mean", combine: "average" }, [1, 1]).equal);
    assert.ok(!imageScene(g, arrays, { ...ADDED, loss: "mean" }, [1, 1]).equal);
  });
  test("rows are those of one device", () => {
    const tall = geometry();
    const data = (/** @type {number} */ length) => Array.from({ length }, (_, k) => ((7 * k) % 5) - 2);
    const numbers = { x: { shape: [1, 1, 5, 5], data: data(25) }, weight: { shape: [1, 1, 3, 3], data: data(9) }, grad_output: { shape: [1, 1, 3, 3], data: data(9) } };
    assert.ok(rowScene(tall, numbers, [2, 1]).equal);
  });
});

describe("in words", () => {
  const g = geometry(D);
  test("whose parts are in a chunk", () => {
    assert.equal(whoWords([2, 1], 3), "2");
    assert.equal(whoWords([2, 2], 3), "2 + 0");
    assert.equal(whoWords([1, 3], 3), "all");
    assert.equal(whoWords([3, 4], 5), "3…1");
    assert.equal(whoWords([6, 3], 8), "6…0");
  });
  test("a number of the bucket by its name", () => {
    assert.equal(bucketSize(g), 78);
    assert.equal(entryName(g, 0), "grad_weight[0,0,0,0]");
    assert.equal(entryName(g, 71), "grad_weight[5,1,2,1]");
    assert.equal(entryName(g, 73), "grad_bias[1]");
    assert.equal(chunkWords(g, [70, 72]), "grad_weight[5,1,2,0] … grad_weight[5,1,2,1]");
    assert.equal(chunkWords(g, [4, 4]), "nothing");
    assert.equal(plain(entryWords(g, 77, [3, -1])), "grad_bias[5] = 3 + (−1) = 2, one term for each device");
  });
  test("every step of the ring says which one it is, and what was sent", () => {
    const say = (/** @type {number} */ sends) => plain(imageStepWords(g, ADDED, [1, 1, 1], { move: "ring", sends }, ""));
    assert.match(say(1), /^reduce-scatter 1 of 2: .* adds it to its own\. Sent so far: 26 numbers, 104 bytes in float32$/);
    assert.match(say(2), /Now each has one complete chunk\. Sent so far: 52 numbers/);
    assert.match(say(4), /^all-gather 2 of 2: .* Now all have all\. Sent so far: 104 numbers/);
    assert.match(plain(imageStepWords(g, ADDED, [3, 2, 1], { move: "deal", sends: 0 }, "")), /3 \+ 2 \+ 1/);
  });
  test("uneven chunks are said to be", () => {
    const said = plain(imageStepWords(geometry(), ADDED, [1, 1, 1], { move: "compare", sends: 4 }, "equal"));
    assert.match(said, /^equal\. Each sent up to 14 numbers, 56 bytes in float32: about 2·\(3 − 1\)\/3 of 10$/);
  });
  test("the verdict names what went wrong", () => {
    const said = (/** @type {Partial<Options>} */ options) => plain(verdictOf({ ...ADDED, ...options }, [2, 1], false));
    assert.match(said({ combine: "average" }), /^2 times too small/);
    assert.match(said({ loss: "mean" }), /^too large: 2 means were added, an image of device 0 by 1\/2, of device 1 by 1\/1, and not 1\/3/);
    assert.match(said({ loss: "mean", combine: "average" }), /weighs an image of device 0 by 1\/4, of device 1 by 1\/2, and not 1\/3$/);
  });
  test("the formula of the rows with its numbers", () => {
    const strided = geometry({ H: 9, stride: [2, 1], padding: [[1, 0], [0, 0]], dilation: [2, 1] });
    const [, second] = rowShards(strided, evenly(strided.OH, 2));
    assert.equal(
      rowFormula(strided, second),
      "device 1 makes output row 2. h = stride·p + dilation·i − padding: it reads from 2·2 + 2·0 − 1 = 3 to 2·2 + 2·2 − 1 = 7. It holds rows 5–8; its halo: row 3",
    );
    const padded = geometry({ padding: [[1, 1], [0, 0]], padding_mode: "circular" });
    assert.match(rowFormula(padded, rowShards(padded, [5])[0]), /= −1 .* = 5 \(beyond the image are circular copies\)\. It holds rows 0–4; no halo$/);
  });
  test("who sends which row to whom, and back", () => {
    const small = geometry();
    const shards = rowShards(small, [1, 1, 1]);
    const messages = haloMessages(shards);
    assert.match(plain(rowStepWords(small, shards, messages, "send", true)), /row 2 \(1 → 0\); row 1 \(0 → 1\); row 3 \(2 → 1\); row 2 \(1 → 2\)\. Together 20 numbers, 80 bytes/);
    assert.match(plain(rowStepWords(small, shards, messages, "back", true)), /row 2 \(0 → 1\); row 1 \(1 → 0\)/);
    assert.match(plain(rowStepWords(small, shards, messages, "compare", false)), /not the numbers/);
    assert.equal(plain(rowWords(shards, 2)), "row 2 of x is held by device 1 and read by devices 0, 1, 2");
    const leftover = geometry({ H: 6, W: 7, stride: [2, 2] });
    assert.equal(plain(rowWords(rowShards(leftover, [1, 1]), 5)), "row 5 of x is held by device 1 and read by no window");
  });
});
