// @ts-check
// Numbers and steps in words.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { geometryOf, ledger } from "../../src/convgrad/widgets/js/conv.js";
import {
  formatNumber,
  formula,
  groupLetter,
  parseNumber,
  plainText,
  spell,
} from "../../src/convgrad/widgets/js/words.js";

/** @typedef {import("../../src/convgrad/widgets/js/conv.js").Spec} Spec */
/** @typedef {import("../../src/convgrad/widgets/js/conv.js").Target} Target */

/** @param {Partial<Spec>} [differences] */
const geometry = (differences) =>
  geometryOf({
    N: 1,
    C: 1,
    H: 5,
    W: 5,
    O: 1,
    KH: 3,
    KW: 3,
    stride: [1, 1],
    padding: [
      [0, 0],
      [0, 0],
    ],
    dilation: [1, 1],
    groups: 1,
    padding_mode: "zeros",
    ...differences,
  });

describe("formatNumber", () => {
  for (const [value, text] of /** @type {[number, string][]} */ ([
    [3, "3"],
    [-3, "−3"],
    [-0, "0"],
    [0.1 + 0.2, "0.3"],
    [4.5, "4.5"],
    [1234567, "1.23457e6"],
    [0.00001, "1e−5"],
  ])) {
    test(`${value} is written ${text}`, () => assert.equal(formatNumber(value), text));
  }
  test("with fewer digits for a cell", () => assert.equal(formatNumber(3.14159, 3), "3.14"));
});

describe("parseNumber", () => {
  for (const [text, value] of /** @type {[string, number][]} */ ([
    ["3", 3],
    [" -2 ", -2],
    ["−2", -2],
    ["0.5", 0.5],
    ["0,5", 0.5],
    [".5", 0.5],
    ["2.", 2],
    ["+4", 4],
    ["1e3", 1000],
    ["-0", 0],
  ])) {
    test(`“${text}” is ${value}`, () => assert.deepEqual(parseNumber(text), { value }));
  }
  for (const text of [
    "",
    "  ",
    "abc",
    "1 2",
    "--1",
    "1.2.3",
    "0x10",
    "Infinity",
    "NaN",
    "1e",
    "-",
  ]) {
    test(`“${text}” is refused in words`, () => {
      const parsed = parseNumber(text);
      assert.ok("refusal" in parsed && /write one such as/.test(parsed.refusal));
    });
  }
  test("what does not fit a cell is refused", () => {
    const parsed = parseNumber("1e9");
    assert.ok("refusal" in parsed && /too large/.test(parsed.refusal));
  });
});

/** @param {Target} target @param {Partial<Spec>} differences @param {(c: any) => boolean} which */
function spelled(target, differences, which) {
  const g = geometry(differences);
  const list = ledger(g, target, "tap", true);
  for (let k = 0; k < list.length; k++) {
    const c = list.at(k);
    if (which(c)) return plainText(spell(g, target, c, [3, -0.5], 4.5));
  }
  throw new Error("no such step");
}

describe("a step spelled out", () => {
  test("grad_weight", () => {
    assert.equal(
      spelled("weight", {}, (c) => c.i === 1 && c.j === 2 && c.p === 1 && c.q === 1),
      "grad_weight[0,0,1,2] += x[0,0,2,3]·g[0,0,1,1] = 3·(−0.5); now 4.5",
    );
  });
  test("grad_input, with the channel counted in x and the kernel's in its group", () => {
    assert.equal(
      spelled("input", { C: 4, O: 2, groups: 2 }, (c) => c.o === 1 && c.c === 1 && c.i === 1),
      "grad_input[0,3,1,0] += w[1,1,1,0]·g[0,1,0,0] = 3·(−0.5); now 4.5",
    );
  });
  test("grad_bias has one factor", () => {
    assert.equal(
      spelled("bias", {}, (c) => c.p === 2),
      "grad_bias[0] += g[0,0,2,0] = −0.5; now 4.5",
    );
  });
  const padding = /** @type {Spec["padding"]} */ ([
    [1, 1],
    [1, 1],
  ]);
  test("a product with zero padding says so", () => {
    assert.equal(
      spelled("weight", { padding }, () => true),
      "grad_weight[0,0,0,0] += x[0,0,−1,−1]·g[0,0,0,0] = 3·(−0.5); now 4.5 (zero padding)",
    );
  });
  test("a product that is lost says so", () => {
    assert.equal(
      spelled("input", { padding }, () => true),
      "lost: w[0,0,0,0]·g[0,0,0,0] = 3·(−0.5) lands on the padding at (−1, −1), outside grad_input",
    );
  });
  test("a copy says what it copies", () => {
    const copies = { padding, padding_mode: "circular" };
    assert.equal(
      spelled("weight", copies, () => true),
      "grad_weight[0,0,0,0] += x[0,0,−1,−1]·g[0,0,0,0] = 3·(−0.5); now 4.5 (a copy of x[0,0,4,4])",
    );
    assert.equal(
      spelled("input", copies, () => true),
      "grad_input[0,0,4,4] += w[0,0,0,0]·g[0,0,0,0] = 3·(−0.5); now 4.5 " +
        "(the tap lies on x[0,0,−1,−1], a copy of x[0,0,4,4])",
    );
  });
});

test("a formula in numbers", () => {
  const terms = [
    { values: /** @type {[number, number]} */ ([3, 0.5]) },
    { values: /** @type {[number, number]} */ ([-1, 2]) },
  ];
  assert.equal(plainText(formula("weight", terms, -0.5)), "= 3·0.5 + (−1)·2 = −0.5");
  assert.equal(plainText(formula("bias", terms, 2.5)), "= 0.5 + 2 = 2.5");
  assert.equal(plainText(formula("input", [], 0)), "= 0 = 0");
});

test("groups have letters", () => assert.deepEqual([0, 1, 25].map(groupLetter), ["A", "B", "Z"]));
