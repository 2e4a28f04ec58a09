// @ts-check
// Predict without a page: what counts as a number, what counts as right, what is said otherwise.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";

import { agrees, judge, placeOf, readAnswer, readNumber } from "../../src/convgrad/widgets/js/answers.js";
import { blankEntry, leaves } from "../../src/convgrad/widgets/js/fields.js";
import { restore, store } from "../../src/convgrad/widgets/js/progress.js";

/** @typedef {import("../../src/convgrad/widgets/js/answers.js").Question} Question */

/** @param {Partial<Question>} differences @returns {Question} */
const question = (differences) => ({
  kind: "number",
  solution: 7,
  mistakes: [],
  tolerance: 0,
  axes: ["row", "column"],
  labels: [],
  given: [],
  ...differences,
});

const grid = question({
  kind: "grid",
  solution: [
    [1, -2, 0],
    [3, 4, 5],
  ],
});

describe("readNumber", () => {
  for (const [text, value] of /** @type {[string, number][]} */ ([
    ["7", 7],
    [" -3 ", -3],
    ["−3", -3],
    ["+2", 2],
    ["1.5", 1.5],
    [".5", 0.5],
    ["2.", 2],
    ["3/4", 0.75],
    ["-3 / 4", -0.75],
    ["1.5/3", 0.5],
    ["1e3", 1000],
    ["0", 0],
    ["-0", 0],
  ])) {
    test(`reads ${JSON.stringify(text)}`, () => {
      const read = readNumber(text);
      assert.equal(read.problem, undefined);
      assert.ok(Object.is(read.value, value), `${read.value}`);
    });
  }

  for (const [text, sentence] of /** @type {[string, RegExp][]} */ ([
    ["", /Type a number/],
    ["  ", /Type a number/],
    ["1,5", /a point, not a comma: 1\.5$/],
    ["-1,25", /a point, not a comma: -1\.25$/],
    ["seven", /“seven” is no number/],
    ["1/0", /divided by 0/],
    ["--3", /no number/],
    ["3/-4", /no number/],
    ["1.2.3", /no number/],
    ["1,000,000", /no number/],
    ["0x10", /no number/],
    ["Infinity", /no number/],
    ["NaN", /no number/],
  ])) {
    test(`refuses ${JSON.stringify(text)} in words`, () => {
      const read = readNumber(text);
      assert.equal(read.value, undefined);
      assert.match(String(read.problem), sentence);
    });
  }
});

describe("agrees", () => {
  test("whole numbers must be equal", () => {
    assert.ok(agrees(7, 7, 0));
    assert.ok(!agrees(7, 7 + 1e-12, 0));
    assert.ok(agrees(0, -0, 0));
  });

  test("fractions may differ by rounding, and by a tolerance only where there is one", () => {
    assert.ok(agrees(0.1 + 0.2, 0.3, 0));
    assert.ok(agrees(1 / 3, Number("0.3333333333"), 0));
    assert.ok(!agrees(1 / 3, 0.333, 0));
    assert.ok(agrees(1 / 3, 0.333, 0.001));
    assert.ok(agrees(7, 7.05, 0.1));
    assert.ok(!agrees(7, 7.2, 0.1));
  });
});

const size = question({ kind: "grid", solution: [[4, 5]], labels: ["rows", "columns"] });

describe("judge", () => {
  test("right is right, for every kind", () => {
    assert.equal(judge(question({}), 7).passed, true);
    assert.equal(judge(grid, [[1, -2, 0], [3, 4, 5]]).passed, true);
    assert.equal(judge(question({ kind: "choice", solution: 2 }), 2).passed, true);
  });

  test("a known mistake gets its own sentence, an unknown one does not", () => {
    const asked = question({ mistakes: [{ answer: 6, message: "The bias is missing." }] });
    assert.equal(judge(asked, 6).message, "The bias is missing.");
    assert.equal(judge(asked, 5).message, "It is not 5.");
    const turned = { answer: [[5, 4, 3], [0, -2, 1]], message: "It is turned." };
    assert.equal(judge({ ...grid, mistakes: [turned] }, [[5, 4, 3], [0, -2, 1]]).message, "It is turned.");
  });

  test("a sign is told from a size", () => {
    assert.match(judge(question({}), -7).message, /sign/);
    assert.doesNotMatch(judge(question({ solution: 0 }), 1).message, /sign/);
    assert.doesNotMatch(judge(question({ solution: 1 }), 0).message, /sign/);
  });

  test("a wrong grid names its first wrong cell and how many are right", () => {
    const verdict = judge(grid, [[1, -2, 0], [3, 0, 9]]);
    assert.equal(verdict.passed, false);
    assert.equal(verdict.wrong, 4);
    assert.equal(verdict.message, "4 of 6 cells are right. Look first at row 1, column 1: 0 does not belong there.");
    assert.match(judge(grid, [[1, 2, 0], [3, 4, 5]]).message, /row 0, column 1: the size is right/);
  });

  test("a box with a label is named by it, and a label is text, not HTML", () => {
    assert.equal(
      judge(size, [[4, 7]]).message,
      "1 of 2 cells are right. Look first at “columns”: 7 does not belong there.",
    );
    const odd = { ...size, labels: ["p < q & r", "rest"] };
    assert.match(judge(odd, [[-4, 5]]).message, /“p &lt; q &amp; r”: the size is right/);
    assert.match(String(readAnswer(odd, ["x", "5"]).problem), /^At “p < q & r”: “x” is no number/);
  });

  test("given cells are not counted as the reader's", () => {
    const asked = { ...grid, given: [[true, true, true], [false, false, false]] };
    assert.match(judge(asked, [[1, -2, 0], [3, 4, 9]]).message, /^2 of 3 cells/);
  });

  test("no message holds the right answer", () => {
    for (const solution of [7, -12, 0.25]) {
      for (const answer of [1, -1, 3.5, -solution]) {
        const { message } = judge(question({ solution }), answer);
        const numbers = [...message.matchAll(/\d+(\.\d+)?/g)].map(([digits]) => Number(digits));
        assert.ok(!numbers.includes(Math.abs(solution)), message);
      }
    }
  });
});

describe("readAnswer", () => {
  test("rows of a grid", () => {
    assert.deepEqual(readAnswer(grid, ["1", "-2", "0", "3", "8/2", "5"]), { answer: [[1, -2, 0], [3, 4, 5]] });
  });

  test("what cannot be read comes before what is empty, and says where", () => {
    const spoilt = readAnswer({ ...grid, axes: ["i", "j"] }, ["1", "", "0", "3", "4", "1,5"]);
    assert.equal(spoilt.problem, "At i = 1, j = 2: Write a point, not a comma: 1.5");
    assert.equal("field" in spoilt && spoilt.field, 5);
    assert.deepEqual(readAnswer(grid, ["1", "", "0", "", "4", "5"]), {
      problem: "Fill in the whole grid: 2 cells are still empty.",
      field: 1,
    });
    assert.match(String(readAnswer(grid, ["1", "", "0", "3", "4", "5"]).problem), /one cell is/);
  });

  test("boxes with labels are named by them", () => {
    assert.equal(readAnswer(size, ["4", "1,5"]).problem, "At “columns”: Write a point, not a comma: 1.5");
    assert.deepEqual(readAnswer(size, ["4", ""]), {
      problem: "Fill in every box: “columns” is still empty.",
      field: 1,
    });
    assert.equal(readAnswer(size, ["", " "]).problem, "Fill in every box: 2 are still empty.");
    assert.deepEqual(readAnswer(size, ["4", "5"]), { answer: [[4, 5]] });
  });

  test("a given cell counts with its own number, not with the rounded one", () => {
    const asked = question({ kind: "grid", solution: [[1 / 3, 2]], given: [[true, false]] });
    assert.deepEqual(readAnswer(asked, ["0.333333", "2"]), { answer: [[1 / 3, 2]] });
  });

  test("a choice, or none yet", () => {
    const asked = question({ kind: "choice", solution: 0 });
    assert.deepEqual(readAnswer(asked, ["0"]), { answer: 0 });
    assert.deepEqual(readAnswer(asked, [""]), { problem: "Choose one first.", field: -1 });
  });

  test("one number", () => {
    assert.deepEqual(readAnswer(question({}), ["3/4"]), { answer: 0.75 });
    assert.deepEqual(readAnswer(question({}), [""]), { problem: "Type a number first.", field: 0 });
  });
});

test("placeOf uses words, letters or labels", () => {
  assert.equal(placeOf(grid, 5), "row 1, column 2");
  assert.equal(placeOf({ ...grid, axes: ["p", "q"] }, 3), "p = 1, q = 0");
  assert.equal(placeOf({ ...grid, solution: [[4, 3]] }, 1), "number 2");
  assert.equal(placeOf(size, 1), "columns");
});

test("blankEntry leaves the reader's cells empty and writes the given ones", () => {
  assert.deepEqual(blankEntry(question({})), [""]);
  assert.deepEqual(blankEntry({ ...grid, given: [[true, true, false], [false, false, false]] }), [
    "1", "−2", "", "", "", "",
  ]);
});

describe("leaves", () => {
  /** @param {string} value @param {number} start @param {number} end */
  const field = (value, start, end) => ({ value, selectionStart: start, selectionEnd: end });

  test("left and right stay in the text until its end", () => {
    assert.ok(!leaves("ArrowRight", field("12", 1, 1)));
    assert.ok(leaves("ArrowRight", field("12", 2, 2)));
    assert.ok(!leaves("ArrowLeft", field("12", 1, 1)));
    assert.ok(leaves("ArrowLeft", field("12", 0, 0)));
    assert.ok(leaves("ArrowLeft", field("12", 0, 2)));
    assert.ok(leaves("ArrowRight", field("", 0, 0)));
  });

  test("up and down always leave, Home, End and letters never do", () => {
    assert.ok(leaves("ArrowUp", field("12", 1, 1)) && leaves("ArrowDown", field("12", 1, 1)));
    for (const key of ["Home", "End", "a", "Enter", "Tab"]) assert.ok(!leaves(key, field("1", 0, 1)));
  });
});

describe("progress", () => {
  /** @type {Map<string, string>} */
  let drawer;
  const original = Object.getOwnPropertyDescriptor(globalThis, "localStorage");

  /** @param {() => unknown} get */
  const provide = (get) => Object.defineProperty(globalThis, "localStorage", { get, configurable: true });

  beforeEach(() => {
    drawer = new Map();
    provide(() => ({
      getItem: (/** @type {string} */ key) => drawer.get(key) ?? null,
      setItem: (/** @type {string} */ key, /** @type {string} */ value) => drawer.set(key, value),
    }));
  });
  afterEach(() => {
    if (original) Object.defineProperty(globalThis, "localStorage", original);
    else Reflect.deleteProperty(globalThis, "localStorage");
  });

  /** @param {Record<string, unknown>} state */
  const model = (state) => ({
    state,
    get: (/** @type {string} */ name) => state[name],
    set: (/** @type {Record<string, unknown>} */ values) => void Object.assign(state, values),
  });
  const fresh = { key: "k", entry: [""], answer: null, correct: false, attempts: 0, hints_shown: 0, revealed: false };
  const solved = { ...fresh, entry: ["7"], answer: 7, correct: true, attempts: 2, hints_shown: 1 };

  test("comes back under the same key, and under no other", () => {
    store(model({ ...solved }));
    const again = model({ ...fresh });
    restore(again);
    assert.deepEqual(again.state, solved);
    const other = model({ ...fresh, key: "other" });
    restore(other);
    assert.deepEqual(other.state, { ...fresh, key: "other" });
  });

  test("never overwrites an answer that is there already", () => {
    store(model({ ...solved }));
    const live = model({ ...fresh, attempts: 1, answer: 3 });
    restore(live);
    assert.equal(live.state.answer, 3);
  });

  test("what is not ours, or of another size, is left alone", () => {
    const { key: _, ...ours } = solved;
    const twoFields = JSON.stringify({ ...ours, entry: ["1", "2"] });
    const withMore = JSON.stringify({ ...ours, solution: 3 });
    for (const kept of ["{", "null", "[1]", '{"entry":["7"]}', twoFields, withMore]) {
      drawer.set("convgrad:predict:k", kept);
      const again = model({ ...fresh });
      restore(again);
      assert.deepEqual(again.state, fresh, kept);
    }
  });

  test("a browser that forbids storage is no error", () => {
    provide(() => {
      throw new Error("SecurityError");
    });
    store(model({ ...solved }));
    const again = model({ ...fresh });
    restore(again);
    assert.deepEqual(again.state, fresh);
  });
});
