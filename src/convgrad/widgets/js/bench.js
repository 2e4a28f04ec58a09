// @ts-check
// A few small grids with signs between them: the numbers of what is looked at.

import { indices } from "./conv.js";
import { fill, h } from "./dom.js";
import { Grid } from "./grid.js";

/**
 * A grid of the bench: palette key, name, numbers, how to edit them; names of its rows, classes of
 * whole rows, and what is looked at in a cell.
 * @typedef {object} Piece
 * @property {string} key
 * @property {string} name
 * @property {number} rows
 * @property {number} cols
 * @property {(row: number, col: number) => number | null} at
 * @property {(row: number, col: number, value: number) => void} [edit]
 * @property {(row: number) => string} [names]
 * @property {Record<string, (row: number) => boolean>} [marks]
 * @property {(row: number, col: number) => any} [look]
 */
/** By pointer, or by keyboard and touch. @typedef {"hover" | "focus"} Way */
/**
 * @typedef {object} Handlers
 * @property {(sentence: string) => void} refuse
 * @property {<Args extends any[]>(action: (...args: Args) => void) => (...args: Args) => void} guard
 * @property {(spot: any, way: Way) => void} [look]
 */

/** @type {import("./grid.js").Border} */
const NO_BORDER = [
  [0, 0],
  [0, 0],
];

/**
 * Calls back with what a pointer is over or the focus is on; a finger that rests gives the focus.
 * @param {HTMLElement} el @param {(target: HTMLElement, way: Way) => void} look @param {Handlers["guard"]} guard
 */
export function watch(el, look, guard) {
  const see = (/** @type {Way} */ way) =>
    guard((/** @type {Event} */ event) => {
      if (/** @type {PointerEvent} */ (event).pointerType !== "touch") look(/** @type {HTMLElement} */ (event.target), way);
    });
  el.addEventListener("pointerover", see("hover"));
  el.addEventListener("focusin", see("focus"));
}

/** Pieces with plus signs between them. @param {Piece[]} pieces @returns {(Piece | string)[]} */
export const plus = (pieces) => pieces.flatMap((piece, k) => (k ? ["+", piece] : [piece]));

/** @param {string} label  what the bench shows @param {Handlers} on @param {string} [of]  whose grids they are, where others have grids of the same names */
export function benchOf(label, { refuse, guard, look }, of = "") {
  const el = h("div", { class: "cg-bench", role: "group", "aria-label": label });
  /** @type {{grid: Grid, title: Element, heads: Element, piece: Piece}[]} */
  let drawn = [];
  if (look) {
    const seen = (/** @type {HTMLElement} */ target, /** @type {Way} */ way) => {
      const cell = target.closest(".cg-cell");
      const here = drawn.find(({ grid }) => grid.body.contains(cell));
      if (!(cell instanceof HTMLElement)) return;
      const spot = here?.piece.look?.(Number(cell.dataset.row), Number(cell.dataset.col));
      if (spot) look(spot, way);
    };
    watch(el, seen, guard);
  }

  /** A grid that is not drawn yet. @param {Piece} piece */
  function place(piece) {
    const [grid, title] = [new Grid({ onrefuse: refuse }), h("div", { class: "cg-title" })];
    const heads = h("div", { class: "cg-heads-rows", "aria-hidden": "true" });
    drawn.push({ grid, title, heads, piece });
    const body = piece.names ? h("div", { class: "cg-named" }, heads, grid.el) : grid.el;
    return h("div", { class: `cg-panel cg-of-${piece.key}` }, title, body);
  }

  /** @param {(Piece | string)[]} pieces  in the order in which they are read */
  function draw(pieces) {
    const grids = /** @type {Piece[]} */ (pieces.filter((piece) => typeof piece !== "string"));
    const wanted = pieces.map((piece) => (typeof piece === "string" ? piece : piece.key + !piece.names)).join("|");
    if (el.dataset.kind !== wanted) {
      el.dataset.kind = wanted;
      drawn = [];
      fill(el, ...pieces.map((piece) => (typeof piece === "string" ? h("span", { class: "cg-sign" }, piece) : place(piece))));
    }
    grids.forEach((piece, k) => {
      const { grid, title, heads } = drawn[k];
      const { key, name, rows, cols, edit, names, marks = {} } = piece;
      drawn[k].piece = piece;
      fill(title, h("b", { class: `cg-ink-${key}` }, name));
      grid.shape(rows, cols, NO_BORDER);
      grid.options.onedit = edit && guard(edit);
      grid.label(`${name}${of}${edit ? ": Enter edits a number" : ""}`);
      grid.write(piece.at);
      for (const { el: cell, value } of grid.cells.values()) cell.ariaLabel = value === null ? "empty" : null;
      if (names) fill(heads, ...indices(rows).map((row) => h("span", {}, names(row))));
      for (const [mark, has] of Object.entries(marks)) {
        grid.mark(mark, indices(rows).filter(has).flatMap((row) => indices(cols).map((col) => [row, col])));
      }
    });
  }
  return { el, draw };
}
