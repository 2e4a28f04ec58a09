// @ts-check
// The fields of a question: one for a number, a grid of them, or a list of choices.  All three
// look the same from outside: texts come out, texts go in, one field can be marked as wrong.

import { cellsOf, placeOf } from "./answers.js";
import { h } from "./dom.js";
import { moveFocus } from "./grid.js";
import { formatNumber } from "./words.js";

/** @typedef {import("./answers.js").Question} Question */
/**
 * @typedef {object} Fields
 * @property {HTMLElement} element
 * @property {HTMLInputElement[]} inputs
 * @property {() => string[]} texts what stands in the fields
 * @property {(entry: string[], done: boolean) => void} show write texts; no more typing when done
 */

/** An element with HTML that Python has made from Markdown. @param {"div" | "span" | "li" | "caption"} tag @param {string} html */
export function rich(tag, html) {
  const element = h(tag);
  element.innerHTML = html;
  return element;
}

/**
 * @param {Question} question
 * @param {{choices: string[], name: string}} words as HTML: what can be chosen, what a grid is called
 * @param {string} id of the page, for the radio buttons
 * @returns {Fields}
 */
export function fieldsOf(question, { choices, name }, id) {
  if (question.kind === "choice") return choiceFields(choices, id);
  return question.kind === "grid" ? gridFields(question, name) : numberField();
}

/** The texts of untouched fields: empty, but for the cells that are given. @param {Question} question */
export function blankEntry({ kind, solution, given }) {
  if (kind === "choice") return [""];
  const isGiven = given.flat();
  return cellsOf(solution).map((value, k) => (isGiven[k] ? formatNumber(value) : ""));
}

/** The texts of fields that hold the right answer. @param {Question} question */
export const solvedEntry = ({ kind, solution }) =>
  kind === "choice" ? [String(solution)] : cellsOf(solution).map((value) => formatNumber(value));

/** Mark this field and no other: by a border, and for screen readers with the sentence that says it.
 * @param {Fields} fields @param {number} wrong -1 for none @param {string} sentence id of an element */
export function mark({ inputs }, wrong, sentence) {
  inputs.forEach((input, k) => {
    if (k === wrong) {
      input.setAttribute("aria-invalid", "true");
      input.setAttribute("aria-describedby", sentence);
    } else {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    }
  });
}

// ---- a number -------------------------------------------------------------------------------

/** @returns {Fields} */
function numberField() {
  const input = textField();
  const element = h("label", { class: "cg-ask-field" }, h("span", {}, "Your answer"), input);
  return { element, ...typing([input]) };
}

/** @param {string} [label] */
const textField = (label) =>
  h("input", {
    type: "text", // number fields refuse 3/4, and telephones' number pads have no minus
    class: "cg-ask-box",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    "aria-label": label,
  });

/** @param {HTMLInputElement[]} inputs @param {boolean[]} [given] */
function typing(inputs, given = []) {
  return {
    inputs,
    texts: () => inputs.map((input) => input.value),
    show: (/** @type {string[]} */ entry, /** @type {boolean} */ done) =>
      inputs.forEach((input, k) => {
        // only where it differs, or the cursor would jump
        if (input.value !== entry[k]) input.value = entry[k] ?? "";
        input.readOnly = done || Boolean(given[k]);
      }),
  };
}

// ---- a grid ---------------------------------------------------------------------------------

/** @param {Question} question @param {string} name as HTML, "" for none @returns {Fields} */
function gridFields(question, name) {
  const rows = /** @type {number[][]} */ (question.solution);
  const columns = rows[0].length;
  const given = question.given.flat();
  const inputs = rows.flat().map((_, k) => textField(placeOf(question, k)));
  inputs.forEach((input, k) => input.toggleAttribute("data-given", Boolean(given[k])));
  rove(inputs, columns);
  const fields = typing(inputs, given);
  return {
    ...fields,
    element: h("div", { class: "cg-ask-scroll" }, table(question, inputs, name)),
    show(entry, done) {
      fields.show(entry, done);
      for (const input of inputs) input.classList.toggle("cg-ask-long", input.value.length > 4);
    },
  };
}

/** @param {Question} question @param {HTMLInputElement[]} inputs @param {string} name */
function table({ solution, labels }, inputs, name) {
  const rows = /** @type {number[][]} */ (solution);
  const tall = rows.length > 1; // a single row is a list of numbers: it may have labels and needs no places
  const heading = (/** @type {string} */ scope, /** @type {string | number} */ text) => h("th", { scope }, `${text}`);
  const body = rows.map((row, i) => {
    const cells = row.map((_, j) => h("td", {}, inputs[i * row.length + j]));
    return h("tr", {}, tall && heading("row", i), ...cells);
  });
  const heads = (tall ? [...rows[0].keys()] : labels).map((text) => heading("col", text));
  return h(
    "table",
    { class: labels.length ? "cg-ask-blanks cg-ask-apart" : "cg-ask-blanks" },
    name && rich("caption", name),
    heads.length > 0 && h("thead", {}, h("tr", {}, tall && h("td"), ...heads)),
    h("tbody", {}, ...body),
  );
}

/**
 * One stop of the Tab key for a whole grid; arrows go from cell to cell.
 * @param {HTMLInputElement[]} inputs @param {number} columns
 */
function rove(inputs, columns) {
  inputs.forEach((input, k) => {
    input.tabIndex = k ? -1 : 0;
    input.addEventListener("focus", () => {
      for (const each of inputs) each.tabIndex = each === input ? 0 : -1;
      input.select();
    });
    input.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      if (!leaves(event.key, input)) return;
      const [row, column] = [Math.floor(k / columns), k % columns];
      const to = moveFocus(event.key, row, column, inputs.length / columns, columns);
      if (!to) return;
      event.preventDefault();
      inputs[to[0] * columns + to[1]].focus();
    });
  });
}

/**
 * Whether a key leaves the cell: up and down always, left and right where the cursor can go no
 * further or the whole text is selected (as it is after coming in).
 * @param {string} key @param {{selectionStart: number | null, selectionEnd: number | null, value: string}} field
 */
export function leaves(key, { selectionStart: start, selectionEnd: end, value }) {
  const all = start === 0 && end === value.length;
  if (key === "ArrowLeft") return all || (start === 0 && end === 0);
  if (key === "ArrowRight") return all || (start === value.length && end === value.length);
  return key === "ArrowUp" || key === "ArrowDown";
}

// ---- a choice -------------------------------------------------------------------------------

/** @param {string[]} choices @param {string} name @returns {Fields} */
function choiceFields(choices, name) {
  const inputs = choices.map((_, k) => h("input", { type: "radio", name, value: k }));
  const rows = choices.map((choice, k) =>
    h("label", { class: "cg-ask-choice" }, inputs[k], h("span", { class: "cg-ask-dot" }), rich("span", choice)),
  );
  return {
    element: h("div", { class: "cg-ask-choices", role: "radiogroup", "aria-label": "Choices" }, ...rows),
    inputs,
    texts: () => [inputs.find((input) => input.checked)?.value ?? ""],
    show: (entry, done) =>
      inputs.forEach((input) => {
        input.checked = entry[0] === input.value;
        input.disabled = done && !input.checked;
      }),
  };
}
