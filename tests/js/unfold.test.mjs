// @ts-check
// UnfoldMatrix without a page: columns, steps, what belongs together, words.  The numbers are held to
// Python's in test_js_matrices_agree.py.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { geometryOf } from "../../src/convgrad/widgets/js/conv.js";
import { blockSizes, fold, matrix, memory, multiply, origin, transpose, unfold } from "../../src/convgrad/widgets/js/im2col.js";
import { copiesOf, countSteps, related, reveal, sceneOf, span, stepAt } from "../../src/convgrad/widgets/js/unfold_steps.js";
import { inked } from "../../src/convgrad/widgets/js/inked.js";
import { memoryWords, spelled } from "../../src/convgrad/widgets/js/unfold_words.js";
import { plainText } from "../../src/convgrad/widgets/js/words.js";
import { spec } from "./specs.mjs";

/** @typedef {import("../../src/convgrad/widgets/js/unfold_steps.js").Stage} Stage */
/** @typedef {import("../../src/convgrad/widgets/js/unfold_steps.js").Spot} Spot */

const STAGES = /** @type {Stage[]} */ (["columns", "forward", "weight", "input"]);
const PADDED = /** @type {import("../../src/convgrad/widgets/js/conv.js").Spec["padding"]} */ ([[1, 0], [0, 1]]);

/** @param {Partial<import("../../src/convgrad/widgets/js/conv.js").Spec>} [differences] */
const geometry = (differences) => geometryOf(spec(differences));

/** Numbers that differ from cell to cell. @param {number[]} shape @param {number} step */
const counted = (shape, step) => ({
  shape,
  data: Array.from({ length: shape.reduce((a, b) => a * b) }, (_, k) => ((k * step) % 11) - 4),
});

/** @param {import("../../src/convgrad/widgets/js/conv.js").Geometry} g */
const arraysOf = (g) => ({
  x: counted([g.N, g.C, g.H, g.W], 5),
  weight: counted([g.O, g.CG, g.KH, g.KW], 3),
  grad_output: counted([g.N, g.O, g.OH, g.OW], 7),
});

test("three cells in a row, windows of two: every number by hand", () => {
  const g = geometry({ H: 1, W: 3, KH: 1, KW: 2 });
  const x = { shape: [1, 1, 1, 3], data: [7, 8, 9] };
  const columns = unfold(g, x, { n: 0, k: 0 });
  assert.deepEqual([columns.rows, columns.cols, ...columns.data], [2, 2, 7, 8, 8, 9]);
  assert.deepEqual([...fold(g, columns)], [7, 16, 9], "the middle is read twice");
  assert.deepEqual([...fold(g, columns, 1)], [7, 8, 0], "one window folded");
  const W = matrix(1, 2, (_, col) => [10, 1][col]);
  assert.deepEqual([...multiply(W, columns).data], [78, 89]);
  assert.deepEqual([...transpose(columns).data], [7, 8, 8, 9]);
});

test("padding has an origin and no cell", () => {
  const g = geometry({ padding: PADDED });
  const { h, v, cell } = origin(g, 0, 0);
  assert.deepEqual([h, v, cell], [-1, 0, null]);
  assert.deepEqual(origin(g, 3, 0).cell, [0, 0]);
});

describe("steps", () => {
  const g = geometry({ N: 2, C: 4, O: 6, groups: 2, H: 4, padding: PADDED });
  for (const stage of STAGES) {
    test(`of ${stage} fill every cell once, block by block`, () => {
      const seen = new Set();
      const blocks = [];
      for (let k = 0; k < countSteps(g, stage); k++) {
        const { n, k: group, spot } = stepAt(g, stage, k);
        seen.add(JSON.stringify([n, group, spot]));
        if (blocks.at(-1) !== `${n} ${group}`) blocks.push(`${n} ${group}`);
      }
      assert.equal(seen.size, countSteps(g, stage));
      assert.deepEqual(blocks, ["0 0", "0 1", "1 0", "1 1"]);
    });
    test(`of ${stage} show what is done and nothing else`, () => {
      const steps = Math.floor(countSteps(g, stage) / 2) + 3;
      const { n, k, spot } = stepAt(g, stage, steps - 1);
      const arrays = arraysOf(g);
      const scene = sceneOf(g, arrays, stage, { n, k }, steps);
      const all = sceneOf(g, arrays, stage, { n, k }, countSteps(g, stage));
      const { r, l, o } = blockSizes(g);
      const side = stage === "columns" ? "top" : "result";
      const [rows, cols] = { columns: [r, l], forward: [o, l], weight: [o, r], input: [r, l] }[stage];
      let filled = 0;
      for (let row = 0; row < rows; row++) {
        for (let col = 0; col < cols; col++) {
          const value = scene.at(side, row, col);
          if (value === null) continue;
          filled++;
          if (stage !== "weight") assert.equal(value, all.at(side, row, col));
        }
      }
      if (stage === "columns") assert.equal(filled, r * (Number(spot.l) + 1));
      if (stage === "forward") assert.equal(filled, Number(spot.l) * o + Number(spot.o) + 1);
      if (stage === "weight") assert.equal(filled, rows * cols, "the first image is complete");
      const next = stepAt(g, stage, steps);
      assert.notDeepEqual(next.spot, spot);
    });
  }
  test("fold begins when the last product is there, one column a step", () => {
    const small = geometry();
    const arrays = arraysOf(small);
    const folded = [80, 81, 82, 85, 90].map((step) => sceneOf(small, arrays, "input", { n: 0, k: 0 }, step).folded);
    assert.deepEqual(folded, [0, 0, 1, 4, 9]);
    const { counts } = sceneOf(small, arrays, "input", { n: 0, k: 0 }, 82);
    assert.equal(counts.reduce((a, b) => a + b), 9, "one window of nine taps");
    assert.deepEqual(stepAt(small, "input", 81).spot, { place: "result", l: 0 });
  });
  test("the weight gradient adds up over the images", () => {
    const arrays = arraysOf(g);
    const each = countSteps(g, "weight") / 4;
    const [one, two] = [2 * each, 4 * each].map((steps) => sceneOf(g, arrays, "weight", { n: 0, k: 1 }, steps));
    const second = sceneOf(g, arrays, "weight", { n: 1, k: 1 }, 0).result;
    assert.equal(two.at("result", 1, 2), Number(one.at("result", 1, 2)) + second.data[second.cols + 2]);
  });
});

describe("what belongs together", () => {
  const g = geometry();
  /** @param {Stage} stage @param {Spot} spot @param {import("../../src/convgrad/widgets/js/unfold_steps.js").Side} side @param {number} rows @param {number} cols @param {number} answer */
  const inMatrix = (stage, spot, side, rows, cols, answer) => {
    const { inMatrix: ask } = related(g, stage, spot);
    const found = [];
    for (let a = 0; a < rows; a++) for (let b = 0; b < cols; b++) if (ask(side, a, b) === answer) found.push([a, b]);
    return found;
  };
  test("an entry and the image cell that it copies; the other copies are company", () => {
    const spot = /** @type {Spot} */ ({ place: "top", r: 4, l: 4 });
    const { inMap } = related(g, "columns", spot);
    assert.deepEqual([inMap("x", 0, 2, 2), inMap("x", 0, 2, 1)], [2, 0]);
    assert.equal(inMatrix("columns", spot, "top", 9, 9, 1).length, 9);
    assert.deepEqual(copiesOf(g, 0, 2, 2).map(([r, l]) => r + l), Array(9).fill(8));
  });
  test("an image cell and all its copies", () => {
    const spot = /** @type {Spot} */ ({ place: "x", c: 0, h: 0, v: 1 });
    assert.deepEqual(inMatrix("columns", spot, "top", 9, 9, 2), [[0, 1], [1, 0]]);
    assert.deepEqual(inMatrix("weight", spot, "top", 9, 9, 2), [[0, 1], [1, 0]], "transposed");
  });
  test("a cell of a product, its row and its column", () => {
    const spot = /** @type {Spot} */ ({ place: "result", o: 0, l: 4 });
    assert.equal(inMatrix("forward", spot, "left", 1, 9, 2).length, 9);
    assert.deepEqual(inMatrix("forward", spot, "top", 9, 9, 2), Array.from({ length: 9 }, (_, r) => [r, 4]));
    const { inMap } = related(g, "forward", spot);
    assert.deepEqual([inMap("x", 0, 1, 1), inMap("x", 0, 3, 3), inMap("x", 0, 0, 0)], [1, 1, 0]);
  });
  test("a place on the border and what reads it", () => {
    const padded = geometry({ padding: PADDED });
    assert.deepEqual(copiesOf(padded, 0, -1, 0), [[0, 0]]);
    const copied = geometry({ padding: PADDED, padding_mode: "circular" });
    assert.deepEqual(copiesOf(copied, 0, -1, 0), [[0, 0]]);
    assert.equal(copiesOf(copied, 0, 4, 0).length, 4, "once itself, three times by its copies on the border");
  });
});

describe("the part that is drawn", () => {
  test("is all where there is room, and never leaves the matrix", () => {
    assert.deepEqual(span(9, 14, 3), { start: 0, shown: 9, size: 9 });
    assert.deepEqual(span(30, 14, 25), { start: 16, shown: 14, size: 30 });
  });
  test("moves as little as it must", () => {
    const part = span(30, 10, 5);
    assert.equal(reveal(part, 7).start, 5);
    assert.equal(reveal(part, 20).start, 11);
    assert.equal(reveal(part, 2).start, 2);
    assert.equal(reveal(part, undefined).start, 5);
  });
});

describe("in words", () => {
  const g = geometry({ padding: PADDED, C: 2, O: 2, N: 2 });
  const arrays = arraysOf(g);
  /** @param {Stage} stage @param {Spot} spot @param {boolean} [isStep] */
  const said = (stage, spot, isStep) =>
    plainText(inked(spelled(sceneOf(g, arrays, stage, { n: 1, k: 0 }, countSteps(g, stage)), spot, isStep)));
  test("an entry", () => {
    assert.equal(
      said("columns", { place: "top", r: 13, l: 5 }),
      "columns[13,5] copies x[1,1,1,2] = −1: tap (1,1) of channel 1 in window (1,1); the cell is copied 9 times in all",
    );
    assert.equal(
      said("columns", { place: "top", r: 0, l: 0 }),
      "columns[0,0] is padding: tap (0,0) of channel 0 in window (0,0) lies above the image, where a 0 is read",
    );
  });
  test("an image cell, and the padding", () => {
    assert.match(said("columns", { place: "x", c: 1, h: 0, v: 0 }), /^x\[1,1,0,0\] = .+ is copied 2 times, once/);
    assert.match(said("columns", { place: "x", c: 1, h: -1, v: 0 }), /is padding above the image, copied 1 time,/);
  });
  test("a cell of each product is a row times a column that adds up", () => {
    const spots = /** @type {[Stage, Spot][]} */ ([
      ["forward", { place: "result", o: 1, l: 3 }],
      ["weight", { place: "result", o: 1, r: 4 }],
      ["input", { place: "result", r: 4, l: 3 }],
    ]);
    for (const [stage, spot] of spots) {
      const text = said(stage, spot).replaceAll("−", "-").replaceAll("·", "*");
      const [, terms, sum] = /= ([^=]*) = (-?\d+)/.exec(text.slice(text.indexOf("column "))) ?? [];
      assert.equal(Function(`return ${terms}`)(), Number(sum), text);
    }
    assert.match(said("weight", spots[1][1]), /^image 1’s share of grad_weight\[1,0,1,1\] = row 1 of g · column 4 of columnsᵀ/);
    assert.match(said("input", { place: "result", r: 0, l: 0 }), /lost: the tap lies on the padding, above the image$/);
  });
  test("a cell of grad_input is the sum of what is folded into it", () => {
    const text = said("input", { place: "image", c: 0, h: 0, v: 0 });
    assert.match(text, /^grad_input\[1,0,0,0\] = .+ = −?\d+: 2 products$/);
  });
  test("steps say which image they belong to", () => {
    assert.match(said("columns", { place: "top", l: 2 }, true), /^image 1, window \(0,2\) becomes column 2: /);
    assert.match(said("input", { place: "result", l: 2 }, true), /^fold: column 2 is added back to the cells under image 1, window/);
  });
  test("colours are told apart from text", () => {
    assert.deepEqual(inked("{x x[0]} = 3"), [{ text: "" }, { text: "x[0]", key: "x" }, { text: " = 3" }]);
  });
});

test("the bytes of the columns, of the image and of a view", () => {
  const g = geometry();
  assert.deepEqual(memory(g), { image: 25, padded: 25, columns: 81 });
  assert.deepEqual(memoryWords(g).map(([, , , words]) => words), [
    "100 bytes, 4 for each number",
    "324 bytes, 3.24 times the image",
    "0 bytes more: windows are only looked at",
  ]);
  assert.match(memoryWords(geometry({ padding: PADDED }))[2][3], /^144 bytes more, for x with its border/);
});
