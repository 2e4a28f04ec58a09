// @ts-check
// Everything that a widget draws, as plain tables with headings: for those who read with a screen
// reader, or would rather read than look.  It reads what is drawn, so it fits every widget and
// follows its state; it works while it is open only.

import { indices } from "./conv.js";
import { fill, h, say } from "./dom.js";
import { formatNumber } from "./words.js";

/** A table in words: its title, the names of its columns, and its rows, each with its name first. @typedef {{caption: string, heads: string[], rows: string[][]}} Plain */

const PAUSE = 250; // milliseconds between two readings: while it plays, nobody reads faster

/** What the look of a cell says, in words. @type {[string, string][]} */
const MARKS = [
  [".cg-lit", "here"],
  [".cg-chosen", "chosen"],
  [":is(.cg-with, .cg-partner, .cg-meets, .cg-copied):not(.cg-lit)", "goes with it"],
  [".cg-pad:not([data-place=taps] *), .cg-on-border", "border"],
  [".cg-differs", "differs"],
  [".cg-over", "left over"],
  ["[data-place=taps] .cg-pad", "no such tap"],
  [".cg-unread", "read by no window"],
  [".cg-wrong", "in the wrong place"],
  [".cg-off", "nothing is read"],
];

/** What a cell says: its number, the small words in its corner, and what its look means. @param {HTMLElement} cell @param {string} [text] */
function spoken(cell, text = cell.title || (cell.textContent ?? "")) {
  const { corner } = cell.dataset;
  const marks = MARKS.filter(([look]) => cell.matches(look)).map(([, word]) => word);
  return [text || "empty", corner, ...marks].filter(Boolean).join(", ");
}

/** The title of a grid without the keys that it names. @param {Element} grid */
const nameOf = (grid) => (grid.getAttribute("aria-label") ?? "").replace(/: .*$/, "");

/** @param {string} word @param {number} k */
const line = (word, k) => `${word} ${formatNumber(k)}`;

/** Names beside a matrix, where it has some. @param {Element} grid @param {"rows" | "cols"} way */
const namesOf = (grid, way) =>
  [...(grid.closest(".cg-named")?.querySelectorAll(`.cg-heads-${way} > span`) ?? [])].map((each) => each.textContent ?? "");

/** @param {Element} grid  with rows of cells; data-from says what its first row and column count from @returns {Plain} */
function ofGrid(grid) {
  const [down, across] = [namesOf(grid, "rows"), namesOf(grid, "cols")];
  const [top, left] = (grid.getAttribute("data-from") ?? "0,0").split(",").map(Number);
  const lines = [...grid.children].map((row) => /** @type {HTMLElement[]} */ ([...row.children]));
  return {
    caption: nameOf(grid),
    heads: lines[0]?.map(({ dataset }, k) => across[k] || line("column", left + Number(dataset.col))) ?? [],
    rows: lines.map((cells, k) => [down[k] || line("row", top + Number(cells[0]?.dataset.row)), ...cells.map((cell) => spoken(cell))]),
  };
}

/** A grey picture; picture.js hands itself over. @param {Element & {picture?: import("./picture.js").Picture}} canvas @returns {Plain} */
function ofPicture(canvas) {
  const picture = /** @type {import("./picture.js").Picture} */ (canvas.picture);
  const [[top, bottom], [left, right]] = picture.border;
  const cols = indices(picture.cols + left + right).map((k) => k - left);
  const rows = indices(picture.rows + top + bottom).map((k) => k - top);
  const inside = (/** @type {number} */ row, /** @type {number} */ col) => row >= 0 && col >= 0 && row < picture.rows && col < picture.cols;
  return {
    caption: nameOf(canvas),
    heads: cols.map((col) => line("column", col)),
    rows: rows.map((row) => [
      line("row", row),
      ...cols.map((col) => {
        const value = picture.valueAt(row, col);
        const marks = [!inside(row, col) && "border", picture.marked.has(`${row},${col}`) && "goes with it"];
        return [value === null ? "empty" : formatNumber(value), ...marks.filter(Boolean)].join(", ");
      }),
    ]),
  };
}

/** Maps that stand at places of their own; those that lie under another are part of it. @param {Element} field @returns {Plain} */
function ofMaps(field) {
  const maps = /** @type {HTMLElement[]} */ ([...field.querySelectorAll("[data-at]:not([data-at=''])")]);
  const at = new Map(maps.map((map) => [map.dataset.at, map]));
  const [height, width] = [0, 1].map((axis) => 1 + Math.max(...maps.map((map) => Number(map.dataset.at?.split(",")[axis]))));
  return {
    caption: [...(field.previousElementSibling?.childNodes ?? [])].map((part) => part.textContent?.trim()).join(" "),
    heads: indices(width).map((col) => line("column", col)),
    rows: indices(height).map((row) => [
      line("row", row),
      ...indices(width).map((col) => {
        const map = at.get(`${row},${col}`);
        if (!map) return "empty";
        const here = map.getAttribute("aria-selected") === "true" ? ", here" : "";
        return spoken(map, (map.textContent ?? "").replace("\n", " ").replace("≠ ", "").trim()) + here;
      }),
    ]),
  };
}

/** The small pictures of all slices: which one is drawn large, and how much is in each. @param {Element} box @returns {Plain} */
function ofSlices(box) {
  const slices = /** @type {HTMLElement[]} */ ([...box.querySelectorAll(".cg-slice")]);
  const counted = box.closest(".cg-of-result"); // of the operands none is drawn
  const share = box.closest(".cg-share"); // all of it or nothing
  const counts = (/** @type {Element} */ slice) => {
    const count = slice.querySelector("path")?.getAttribute("d")?.match(/M/g)?.length ?? 0;
    return share ? (count ? "yes" : "no") : `${count}`;
  };
  const what = share ? "complete" : box.closest(".cg-break") ? "cells that differ" : "cells that hold something";
  return {
    caption: nameOf(box),
    heads: ["drawn large", ...(counted ? [what] : [])],
    rows: slices.map((slice) => [
      slice.title,
      slice.getAttribute("aria-pressed") === "true" ? "yes" : "no",
      ...(counted ? [counts(slice)] : []),
    ]),
  };
}

/** A drawing that says itself what it shows. @param {Element & {plain?: () => Plain}} part @returns {Plain} */
const ofDrawing = (part) => part.plain?.() ?? { caption: "", heads: [], rows: [] };

/** Which part of a widget is read by which reader. @type {[string, (part: Element) => Plain][]} */
const READERS = [
  [".cg-grid-body", ofGrid],
  [".cg-canvas", ofPicture],
  [".cg-field-of", ofMaps],
  [".cg-overview", ofSlices],
  [".cg-time", ofDrawing],
  [".cg-chart", ofDrawing],
];

/** All that is drawn now, in the order of the page. @param {Element} root @returns {Plain[]} */
export function plainTables(root) {
  const parts = [...root.querySelectorAll(READERS.map(([part]) => part).join())];
  const seen = parts.filter((part) => part.childElementCount && part.checkVisibility());
  return seen.map((part) => /** @type {(typeof READERS)[0]} */ (READERS.find(([name]) => part.matches(name)))[1](part));
}

/** @param {Plain} plain */
const tableOf = ({ caption, heads, rows }) =>
  h(
    "table",
    {},
    h("caption", {}, caption),
    h("thead", {}, h("tr", {}, h("td"), ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...rows.map(([head, ...cells]) => h("tr", {}, h("th", { scope: "row" }, head), ...cells.map((cell) => h("td", {}, cell))))),
  );

/** Writes other words into a table of the same size, so that who reads it keeps the place. @param {HTMLTableElement} table @param {Plain} plain @returns {boolean} whether the size is the same */
function rewrite(table, { caption, heads, rows }) {
  const lines = [["", ...heads], ...rows];
  const same = lines.length === table.rows.length && lines.every((cells, k) => cells.length === table.rows[k].cells.length);
  if (!same) return false;
  say(/** @type {Element} */ (table.caption), caption);
  lines.forEach((cells, k) => cells.forEach((text, col) => say(table.rows[k].cells[col], text)));
  return true;
}

/**
 * A part of the widget that opens and shows its tables; gives back the element, and what ends it.
 * @param {HTMLElement} root
 */
export function asTables(root) {
  const box = h("div", { class: "cg-as-tables-box", tabindex: 0, role: "group", "aria-label": "what is drawn, as tables" });
  const el = h("details", { class: "cg-as-tables" }, h("summary", {}, "as tables"), box);
  // these keys move the tables, not the player
  box.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
  });
  let waiting = 0;
  const read = () => {
    waiting = 0;
    const plain = plainTables(root);
    const there = /** @type {HTMLTableElement[]} */ ([...box.children]);
    const tables = plain.map((each, k) => (there[k] && rewrite(there[k], each) ? there[k] : tableOf(each)));
    if (tables.length !== there.length || tables.some((table, k) => table !== there[k])) fill(box, ...tables);
  };
  const observer = new MutationObserver((records) => {
    if (waiting || records.every(({ target }) => el.contains(target))) return;
    waiting = window.setTimeout(read, PAUSE);
  });
  const stop = () => {
    observer.disconnect();
    clearTimeout(waiting);
    waiting = 0;
  };
  el.addEventListener("toggle", () => {
    stop();
    if (!el.open) return;
    read();
    observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
  });
  return { el, stop };
}
