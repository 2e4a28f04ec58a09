// @ts-check
// The geometry explorer without a page: formulas, counts, and what a cell says.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { GeometryError, geometryOf, samePadding } from "../../src/convgrad/widgets/js/conv.js";
import {
  ends,
  formulas,
  isOneDimensional,
  mapWords,
  spotName,
  spotWords,
} from "../../src/convgrad/widgets/js/explorer_words.js";
import { parseSpot } from "../../src/convgrad/widgets/js/geometry_explorer.js";
import { readCounts } from "../../src/convgrad/widgets/js/places.js";
import { spec } from "./specs.mjs";

/** Six rows of which the last is left over. */
const leftover = geometryOf(spec({ H: 6, W: 7, stride: [2, 2] }));
const row = geometryOf(spec({ H: 1, KH: 1, W: 7, stride: [1, 2], padding: [[0, 0], [1, 1]] }));

describe("sizes", () => {
  test("are formulas with the numbers put in", () => {
    assert.deepEqual(formulas(leftover, false), [
      [
        "span = dilation·(KH − 1) + 1 = 1·(3 − 1) + 1 = 3",
        "padded = 0 + 6 + 0 = 6",
        "OH = ⌊(padded − span) / stride⌋ + 1 = ⌊(6 − 3) / 2⌋ + 1 = 2",
        "the division leaves 1: 1 row is left over at the bottom",
      ],
      [
        "span = dilation·(KW − 1) + 1 = 1·(3 − 1) + 1 = 3",
        "padded = 0 + 7 + 0 = 7",
        "OW = ⌊(padded − span) / stride⌋ + 1 = ⌊(7 − 3) / 2⌋ + 1 = 3",
      ],
    ]);
  });
  test("are read backwards by a transposed convolution", () => {
    assert.deepEqual(formulas(leftover, true)[0].slice(1), [
      "H = (OH − 1)·stride + span − padding + output_padding",
      "H = (2 − 1)·2 + 3 − (0 + 0) + 1 = 6",
    ]);
  });
  test("along one axis leave the other out", () => {
    assert.equal(isOneDimensional(row), true);
    assert.equal(isOneDimensional(leftover), false);
    assert.equal(formulas(row, false).length, 1);
    assert.equal(spotName(row, "x", [0, -1]), "x[−1]");
    assert.equal(spotName(leftover, "x", [0, -1]), "x[0,−1]");
  });
  test("the rows and columns from which on all is left over", () => {
    assert.deepEqual(ends(leftover), [5, 7]);
  });
});

describe("“same”", () => {
  test("has the odd cell after", () => {
    assert.deepEqual(samePadding(spec({ KH: 3, KW: 4 })), [[1, 1], [1, 2]]);
    assert.deepEqual(samePadding(spec({ KH: 2, KW: 3, dilation: [3, 2] })), [[1, 2], [2, 2]]);
    const wide = geometryOf(spec({ W: 6, KW: 4, padding: samePadding(spec({ KW: 4 })) }));
    assert.deepEqual([wide.OH, wide.OW], [5, 6]);
    assert.match(formulas(wide, false)[1].at(-1) ?? "", /3 cells in all, the odd one after/);
  });
  test("needs stride 1, as Python says", () => {
    assert.throws(() => samePadding(spec({ stride: [2, 1] })), (error) => {
      assert.ok(error instanceof GeometryError);
      assert.match(error.message, /^padding='same' with stride \(2, 1\): 'same' needs stride 1, .*\(\(1, 1\), \(1, 1\)\)$/);
      return true;
    });
  });
});

test("how often places are read: rows times columns, border included", () => {
  assert.deepEqual(readCounts(leftover), [[1, 1, 2, 1, 1, 0], [1, 1, 2, 1, 2, 1, 1]]);
  assert.deepEqual(readCounts(row), [[1], [1, 1, 2, 1, 2, 1, 2, 1, 1]]);
});

describe("the map in a sentence", () => {
  test("says how often, and what is left over", () => {
    assert.equal(
      mapWords(leftover, false),
      "Windows read a cell of x 0, 1, 2 or 4 times; left over: 1 row at the bottom",
    );
    const plain = geometryOf(spec({ KH: 1, KW: 1 }));
    assert.equal(mapWords(plain, false), "Windows read a cell of x 1 time; nothing is left over");
    const many = geometryOf(spec({ H: 8, W: 8 }));
    assert.match(mapWords(many, false), /^Windows read a cell of x from 1 to 9 times; nothing/);
    const both = geometryOf(spec({ H: 6, W: 7, KH: 1, KW: 1, stride: [3, 4] }));
    assert.match(mapWords(both, false), /: 2 rows at the bottom and 2 columns on the right$/);
  });
  test("says whether a transposed convolution is even", () => {
    const checkers = geometryOf(spec({ H: 7, W: 7, stride: [2, 2] }));
    assert.equal(
      mapWords(checkers, true),
      "In a cell of x 1, 2 or 4 products meet: uneven, which shows as a pattern",
    );
    const even = geometryOf(spec({ H: 6, W: 6, KH: 2, KW: 2, stride: [2, 2] }));
    assert.equal(
      mapWords(even, true),
      "In every cell of x 1 product meets: the same number everywhere",
    );
  });
});

describe("a cell", () => {
  /** @param {string} text @param {import("../../src/convgrad/widgets/js/conv.js").Geometry} g */
  const said = (text, g, transposed = false) => {
    const spot = parseSpot(text);
    assert.ok(spot);
    return spotWords(g, spot, transposed);
  };
  test("is written as in Python", () => {
    assert.deepEqual(parseSpot("x[-1,2]"), { name: "x", index: [-1, 2] });
    assert.equal(parseSpot("w[0,0]"), null);
    assert.equal(parseSpot("x[0,0,1,2]"), null);
  });
  test("of y says where its window lies", () => {
    assert.deepEqual(said("y[1,2]", leftover), [
      "y[1,2] is made from the window that is lit",
      "h = stride·p + dilation·i − padding = 2·1 + 1·i − 0 = 2, 3, 4",
      "v = stride·q + dilation·j − padding = 2·2 + 1·j − 0 = 4, 5, 6",
    ]);
  });
  test("of x says who reads it, and through which tap", () => {
    assert.deepEqual(said("x[2,4]", leftover), [
      "x[2,4] is read 4 times",
      "y[0,1] through w[2,2];  y[0,2] through w[2,0];  y[1,1] through w[0,2];  y[1,2] through w[0,0]",
    ]);
    assert.deepEqual(said("x[5,0]", leftover), ["x[5,0] is read by no window: it is left over", ""]);
    assert.deepEqual(said("x[0,0]", leftover, true), ["x[0,0] is the sum of 1 product", "y[0,0]·w[0,0]"]);
  });
  test("of the border says what it reads", () => {
    assert.match(said("x[0,-1]", row)[0], /^x\[−1\], on the border, reads the number 0: it is read 1/);
    const mirrored = geometryOf({ ...row, padding_mode: "reflect" });
    assert.match(said("x[0,-1]", mirrored)[0], /^x\[−1\], on the border, reads x\[1\]: it is read 1/);
    assert.match(said("x[0,1]", mirrored)[0], /is read 3 times, 1 of them through copies/);
    assert.match(said("x[0,-1]", row, true)[0], /lies on the border, which is cropped; lost here: 1/);
  });
});
