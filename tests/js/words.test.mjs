// @ts-check
// Numbers and steps in words.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { geometryOf, ledger } from "../../src/convgrad/widgets/js/conv.js";
import {
  caption,
  factorNames,
  fitNumber,
  formatNumber,
  formula,
  groupLetter,
  parseNumber,
  plainText,
  spell,
  standingWords,
} from "../../src/convgrad/widgets/js/words.js";
import { spec } from "./specs.mjs";

/** @typedef {import("../../src/convgrad/widgets/js/conv.js").Spec} Spec */
/** @typedef {import("../../src/convgrad/widgets/js/conv.js").Target} Target */

/** @param {Partial<Spec>} [differences] */
const geometry = (differences) => geometryOf(spec(differences));

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
      "grad_weight[0,0,0,0] += x[0,0,−1,−1]·g[0,0,0,0] = 3·(−0.5); now 4.5 " +
        "(zero padding, above and left of the image)",
    );
  });
  test("a product that is lost says so", () => {
    assert.equal(
      spelled("input", { padding }, () => true),
      "lost: w[0,0,0,0]·g[0,0,0,0] = 3·(−0.5) lands on the padding, above and left of the image",
    );
  });
  test("each side of the image has its words", () => {
    const sides = new Set();
    for (let p = 0; p < 5; p++) {
      for (let q = 0; q < 5; q++) {
        const text = spelled("weight", { padding }, (c) => c.p === p && c.q === q && c.i === p % 3 && c.j === q % 3);
        sides.add(/zero padding, (.*) the image/.exec(text)?.[1] ?? "inside");
      }
    }
    assert.deepEqual([...sides].sort(), ["above", "above and left of", "inside", "left of"]);
    const far = (/** @type {any} */ c) => c.i === 2 && c.j === 2 && c.p === 4;
    assert.match(spelled("weight", { padding }, (c) => far(c) && c.q === 4), /, below and right of the image\)$/);
    assert.match(spelled("weight", { padding }, (c) => far(c) && c.q === 1), /, below the image\)$/);
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

test("a factor on zero padding has no index where there is no room to explain it", () => {
  const g = geometry({ padding: [[1, 1], [1, 1]] });
  const first = ledger(g, "weight", "tap", true).at(0);
  assert.equal(plainText(factorNames(g, "weight", first, true)), "padding·g[0,0,0,0]");
  assert.equal(plainText(factorNames(g, "weight", first)), "x[0,0,−1,−1]·g[0,0,0,0]");
});

describe("numbers that fit a cell", () => {
  for (const [value, text] of /** @type {[number, string][]} */ ([
    [-12345, "−12345"],
    [123456, "123456"],
    [-123456, "−1.2e5"],
    [0.001234, "0.0012"],
    [-1 / 3, "−0.333"],
    [12.3456, "12.35"],
    [-1.2345e11, "−1e11"],
    [0.1 + 0.2, "0.3"],
    [-0, "0"],
  ])) {
    test(`${value} is written ${text}`, () => assert.equal(fitNumber(value), text));
  }
  test("any number that can be typed, and sums of their products, take six characters", () => {
    for (let e = -9; e <= 13; e++) {
      for (const m of [1, 1.5, 3.14159, 9.9996]) {
        for (const v of [m * 10 ** e, -m * 10 ** e, Math.round(m * 10 ** e)]) {
          assert.ok(fitNumber(v).length <= 6, `${v}: ${fitNumber(v)}`);
        }
      }
    }
  });
});

describe("the orders in words", () => {
  /** @type {Target[]} */
  const targets = ["weight", "input", "bias"];
  const orders = /** @type {const} */ (["tap", "position", "kernel"]);
  test("every order of every target says what it does", () => {
    const g = geometry({ O: 2 });
    const said = targets.flatMap((target) => orders.map((order) => caption(g, target, order)));
    assert.equal(new Set(said).size, 9);
    assert.equal(said[0], "by tap: finish one cell of grad_weight, then the next");
  });
  for (const O of [1, 2]) {
    test(`with O = ${O} an order is called the same as by position exactly where it is`, () => {
      const g = geometry({ O, N: 2, C: 2 });
      for (const target of targets) {
        for (const order of orders) {
          const [a, b] = [order, /** @type {const} */ ("position")].map((each) => {
            const list = ledger(g, target, each, true);
            return JSON.stringify([...list.x, ...list.w, ...list.g]);
          });
          const says = caption(g, target, order).includes("the same as by position");
          assert.equal(says, order !== "position" && a === b, `${target} ${order}`);
        }
      }
    });
  }
});

test("how full a cell is", () => {
  assert.equal(standingWords(0, 9, 0, 9), "; none fell so far: now 0, in the end 9");
  assert.equal(standingWords(2, 9, -0.5, 9), "; 2 fell so far (underlined): now −0.5, in the end 9");
  assert.equal(standingWords(9, 9, 9, 9), "; all fell");
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
