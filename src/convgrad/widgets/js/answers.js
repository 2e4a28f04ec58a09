// @ts-check
// Reading and judging an answer.  Nothing here knows of a page.

import { formatNumber } from "./words.js";

/** @typedef {number | number[][]} Answer a number, the place of a choice, or the rows of a grid */
/**
 * @typedef {object} Question
 * @property {"number" | "grid" | "choice"} kind
 * @property {Answer} solution
 * @property {{answer: Answer, message: string}[]} mistakes messages are HTML
 * @property {number} tolerance
 * @property {string[]} axes what rows and columns are called
 * @property {string[]} labels what the boxes of a single row are called; none, or one for each
 * @property {boolean[][]} given cells that stand in the grid from the beginning
 */
/**
 * @typedef {object} Verdict
 * @property {boolean} passed
 * @property {string} message HTML
 * @property {number} wrong the first wrong cell, counted row by row; -1 for none
 */

const SIGNS = /^[+\-−]?/;
const DIGITS = String.raw`(?:\d+\.?\d*|\.\d+)`;
const NUMBER = new RegExp(`^[+\\-−]?${DIGITS}(?:[eE][+-]?\\d+)?$`);
const FRACTION = new RegExp(`^([+\\-−]?${DIGITS})\\s*/\\s*(${DIGITS})$`);

/**
 * The number that somebody typed, or a sentence about what was typed.
 * @param {string} text
 * @returns {{value?: number, problem?: string}}
 */
export function readNumber(text) {
  const typed = text.trim();
  if (!typed) return { problem: "Type a number first." };
  if (NUMBER.test(typed)) return { value: plain(typed) };
  const fraction = FRACTION.exec(typed);
  if (fraction) {
    const below = plain(fraction[2]);
    if (below === 0) return { problem: "Nothing can be divided by 0: write another fraction." };
    return { value: plain(fraction[1]) / below };
  }
  if (NUMBER.test(typed.replace(",", "."))) {
    return { problem: `Write a point, not a comma: ${typed.replace(",", ".")}` };
  }
  return { problem: `“${typed}” is no number: write it like 7, −2, 1.5 or 3/4.` };
}

/** The value of a number in the form that NUMBER describes; never −0. @param {string} typed */
function plain(typed) {
  const size = Number(typed.replace(SIGNS, ""));
  return /^[-−]/.test(typed) ? 0 - size : size;
}

/** All cells of an answer, row by row. @param {Answer} answer @returns {number[]} */
export const cellsOf = (answer) => (Array.isArray(answer) ? answer.flat() : [answer]);

/**
 * Whole numbers must be equal; others may differ by the tolerance and by what rounding leaves.
 * @param {number} expected @param {number} got @param {number} tolerance
 */
export function agrees(expected, got, tolerance) {
  if (expected === got) return true;
  const rounding = Number.isInteger(expected) ? 0 : 1e-9 * Math.abs(expected);
  return Math.abs(expected - got) <= Math.max(tolerance, rounding);
}

/** The first cell in which two answers differ, -1 for none.
 * @param {Answer} expected @param {Answer} got @param {number} tolerance */
function firstDifference(expected, got, tolerance) {
  const there = cellsOf(got);
  return cellsOf(expected).findIndex((value, k) => !agrees(value, there[k], tolerance));
}

/**
 * Right or wrong, and a sentence that helps without giving the answer away.
 * @param {Question} question
 * @param {Answer} answer
 * @returns {Verdict}
 */
export function judge(question, answer) {
  const wrong = firstDifference(question.solution, answer, question.tolerance);
  if (wrong < 0) return { passed: true, message: "", wrong };
  const known = question.mistakes.find(
    (mistake) => firstDifference(mistake.answer, answer, question.tolerance) < 0,
  );
  return { passed: false, message: known?.message ?? hintAt(question, answer, wrong), wrong };
}

/** @param {Question} question @param {Answer} answer @param {number} wrong */
function hintAt(question, answer, wrong) {
  if (question.kind === "choice") return "It is another one.";
  const expected = cellsOf(question.solution);
  const got = cellsOf(answer);
  const typed = formatNumber(got[wrong], 12); // as it was typed
  const turned = got[wrong] !== 0 && got[wrong] === -expected[wrong];
  if (question.kind === "number") {
    return turned ? "The size is right. Look at the sign again." : `It is not ${typed}.`;
  }
  const asked = question.given.length ? question.given.flat() : expected.map(() => false);
  const open = expected.flatMap((_, k) => (asked[k] ? [] : [k]));
  const right = open.filter((k) => agrees(expected[k], got[k], question.tolerance)).length;
  const place = asHtml(quoted(question, wrong));
  const what = turned ? "the size is right, the sign is not" : `${typed} does not belong there`;
  return `${right} of ${open.length} cells are right. Look first at ${place}: ${what}.`;
}

/**
 * "row 0, column 2", or "i = 0, j = 2" where the axes have letters; a single row is a list of
 * numbers: "number 1" is the first, unless they have labels.
 * @param {Question} question @param {number} k
 */
export function placeOf({ solution, axes, labels }, k) {
  if (labels.length) return labels[k];
  const [first, ...more] = Array.isArray(solution) ? solution : [[solution]];
  if (!more.length) return `number ${k + 1}`;
  const at = [Math.floor(k / first.length), k % first.length];
  return axes.map((axis, a) => axis + (axis.length === 1 ? " = " : " ") + at[a]).join(", ");
}

/** A place inside a sentence: a label is quoted, for it can be any words. @param {Question} question @param {number} k */
const quoted = (question, k) => (question.labels.length ? `“${placeOf(question, k)}”` : placeOf(question, k));

/** @param {string} text */
const asHtml = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

/**
 * The texts of the fields as an answer, or why they are none and at which field; -1 for all of them.
 * @param {Question} question
 * @param {string[]} texts
 * @returns {{answer: Answer, problem?: undefined} | {answer?: undefined, problem: string, field: number}}
 */
export function readAnswer(question, texts) {
  const { kind, solution, given } = question;
  if (kind === "choice") {
    return texts[0] ? { answer: Number(texts[0]) } : { problem: "Choose one first.", field: -1 };
  }
  const isGiven = given.flat();
  // a given cell stands there in rounded form: its own number counts
  const read = cellsOf(solution).map((value, k) => (isGiven[k] ? { value } : readNumber(texts[k] ?? "")));
  const empty = read.flatMap((_, k) => (isGiven[k] || texts[k]?.trim() ? [] : [k]));
  const unread = read.findIndex(({ value }, k) => value === undefined && !empty.includes(k));
  if (kind === "grid" && unread >= 0) {
    return { problem: `At ${quoted(question, unread)}: ${read[unread].problem}`, field: unread };
  }
  if (kind === "grid" && empty.length) {
    return { problem: emptyStill(question, empty), field: empty[0] };
  }
  /** @type {number[]} */
  const numbers = [];
  for (const { value, problem } of read) {
    if (value === undefined) return { problem: problem ?? "", field: 0 };
    numbers.push(value);
  }
  if (!Array.isArray(solution)) return { answer: numbers[0] };
  const columns = solution[0].length;
  return { answer: solution.map((_, row) => numbers.slice(row * columns, (row + 1) * columns)) };
}

/** @param {Question} question @param {number[]} empty */
function emptyStill(question, empty) {
  if (question.labels.length) {
    const still = empty.length === 1 ? `${quoted(question, empty[0])} is` : `${empty.length} are`;
    return `Fill in every box: ${still} still empty.`;
  }
  const still = empty.length === 1 ? "one cell is" : `${empty.length} cells are`;
  return `Fill in the whole grid: ${still} still empty.`;
}
