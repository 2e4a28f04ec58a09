// @ts-check
// GroupBlocks without a page: where maps go, what they give, words and code.  The reshapes and the
// numbers are held to Python's in test_js_matrices_agree.py.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { codeOf, isRight, mapName, meetWords, misplaced, moveWords, zeroWords } from "../../src/convgrad/widgets/js/blocks_words.js";
import { geometryOf } from "../../src/convgrad/widgets/js/conv.js";
import { blockOf, meet, movesOf, share, standsAt, surplus, tablesOf, total } from "../../src/convgrad/widgets/js/grouped.js";
import { inked } from "../../src/convgrad/widgets/js/inked.js";
import { plainText } from "../../src/convgrad/widgets/js/words.js";
import { spec } from "./specs.mjs";

/** @typedef {import("../../src/convgrad/widgets/js/grouped.js").Move} Move */

const D = { N: 3, C: 4, H: 5, W: 4, O: 6, KH: 3, KW: 2, groups: 2 };
const PLAIN = { transpose: true, per_image: false };
/** @param {Partial<import("../../src/convgrad/widgets/js/conv.js").Spec>} [differences] */
const geometry = (differences) => geometryOf(spec(differences));
/** @param {import("../../src/convgrad/widgets/js/grouped.js").Options} options @param {Partial<import("../../src/convgrad/widgets/js/conv.js").Spec>} [differences] */
const names = (options, differences = D) => movesOf(geometry(differences), options).map(({ move }) => move);
const six = /** @type {Move[]} */ (Array(6).fill("meet"));

describe("the steps", () => {
  test("of three images and two groups", () => {
    assert.deepEqual(names(PLAIN), ["start", "split", "turn", "list", ...six, "sum", "weight", "dense"]);
  });
  test("without the transpose x is dealt in one step", () => {
    assert.deepEqual(names({ transpose: false, per_image: false }).slice(0, 3), ["start", "deal", "list"]);
  });
  test("for each image by itself nothing is summed", () => {
    assert.deepEqual(names({ transpose: true, per_image: true }).slice(-2), ["meet", "weight"]);
  });
  test("a leftover that holds another dilation step is cropped", () => {
    const leftover = { ...D, H: 6, stride: /** @type {[number, number]} */ ([2, 1]) };
    assert.deepEqual(surplus(geometry(leftover)), [1, 0]);
    assert.ok(names(PLAIN, leftover).includes("crop"));
    assert.ok(!names(PLAIN).includes("crop"));
  });
});

describe("where the maps stand", () => {
  const g = geometry(D);
  test("every table holds every map once, within its sizes", () => {
    for (const options of [PLAIN, { transpose: false, per_image: false }, { transpose: true, per_image: true }]) {
      const moves = movesOf(g, options);
      moves.forEach(({ m }, step) => {
        const tables = tablesOf(g, options, moves.slice(0, step + 1).map(({ move }) => move), m);
        for (const [name, { maps, height, width }] of Object.entries(tables)) {
          const indices = new Set(maps.map(({ index }) => `${index}`));
          assert.equal(indices.size, maps.length, `${name} at step ${step}`);
          for (const { at: [row, col] } of maps) assert.ok(row < height && col < width, `${name} at step ${step}`);
          if (name !== "result") assert.equal(maps.length, height * width);
        }
      });
    }
  });
  test("with the transpose each group of the convolution has the channels of its group", () => {
    assert.deepEqual(standsAt(g, true, 1, 5), [2, 3]);
    assert.deepEqual([0, 1].map((c) => standsAt(g, true, c, 2)), [[1, 0], [1, 1]]);
  });
  test("without it they are dealt like cards", () => {
    const one = geometry({ C: 6, O: 3, groups: 3 });
    assert.deepEqual([0, 1].map((c) => standsAt(one, false, c, 0)), [[0, 0], [0, 3]], "not 0 and 1");
    assert.equal(misplaced(g), 10);
  });
  for (const [differences, words] of /** @type {[Partial<import("../../src/convgrad/widgets/js/conv.js").Spec>, string][]} */ ([
    [{ C: 4, O: 4, groups: 4, N: 3 }, "a group has one channel"],
    [{ C: 4, O: 4, groups: 1, N: 1 }, "there is one image and one group"],
  ])) {
    test(`it goes unnoticed where ${words}`, () => {
      const lucky = geometry(differences);
      assert.equal(misplaced(lucky), 0);
      assert.ok(isRight(lucky, lucky.CG - 1, 0));
      const said = moveWords(lucky, { transpose: false, per_image: false }, { move: "deal", m: -1 }, "");
      assert.match(said, new RegExp(words));
    });
  }
});

describe("numbers", () => {
  const g = geometryOf(spec({ N: 2, C: 2, H: 1, W: 3, O: 2, KH: 1, KW: 2, groups: 2 }));
  const arrays = {
    x: { shape: [2, 2, 1, 3], data: [1, 2, 3, 10, 20, 30, 4, 5, 6, 40, 50, 60] },
    weight: { shape: [2, 1, 1, 2], data: [0, 0, 0, 0] },
    grad_output: { shape: [2, 2, 1, 2], data: [1, -1, 2, 0, 0, 3, 1, 1] },
  };
  test("one map searched with another, by hand", () => {
    assert.deepEqual([...meet(g, arrays, [0, 0], [0, 0]).data], [1 - 2, 2 - 3]);
    assert.deepEqual(share(g, arrays, true, 0, 1, 1), [40 + 50, 50 + 60]);
  });
  test("stride and dilation change places", () => {
    const far = geometry({ H: 1, W: 7, KH: 1, KW: 2, stride: [1, 3], dilation: [1, 2] });
    const row = { shape: [1, 1, 1, 7], data: [1, 2, 3, 4, 5, 6, 7] };
    const given = { x: row, weight: { shape: [1, 1, 1, 2], data: [0, 0] }, grad_output: { shape: [1, 1, 1, 2], data: [10, 1] } };
    // taps are 2 apart, windows 3 apart
    assert.deepEqual(share(far, given, true, 0, 0, 0), [10 * 1 + 4, 10 * 3 + 6]);
  });
  test("the shares add up", () => {
    assert.deepEqual(blockOf(g, arrays, true, 0, 0), total([[-1, -1], [15, 18]]));
  });
});

describe("in words", () => {
  const g = geometry(D);
  const plain = (/** @type {string} */ text) => plainText(inked(text));
  test("every step says what it does", () => {
    const said = movesOf(g, PLAIN).map((step) => plain(moveWords(g, PLAIN, step, "")));
    assert.equal(new Set(said).size, said.length);
    assert.equal(said[7], "image 1, group B: 2 maps of x searched with 3 maps of g; stride and dilation have changed places");
    assert.match(said[12], /12 of 24 blocks exist/);
  });
  test("a map, a share, a block that does not exist", () => {
    assert.equal(plain(mapName(g, "x", [1, 3])), "x[1,3] is image 1, channel 3, group B");
    assert.equal(plain(meetWords(g, true, [1, 2, 5])), "x[2,3] searched with g[2,5] is the share of image 2 in grad_weight[5,1]");
    assert.match(plain(meetWords(g, false, [1, 2, 0])), /^x\[2,2\] searched .* It should be x\[2,1\]/);
    assert.match(plain(zeroWords(g, 0, 3)), /^kernel 0, group A, never reads channel 3, group B: there is no such weight/);
  });
  test("the code names every shape", () => {
    assert.deepEqual(codeOf(g, PLAIN).map(({ text }) => text), [
      "xi = x.reshape(6, 2, 5, 4).transpose(0, 1)",
      "wi = g.reshape(18, 1, 3, 3)",
      "t = F.conv2d(xi, wi, stride=1, padding=0, dilation=1, groups=6)",
      "grad_weight = t.reshape(2, 3, 6, 3, 2).sum(1).transpose(0, 1)",
    ]);
  });
});
