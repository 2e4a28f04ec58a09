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
  /** @type {WeakMap<Element, {grid: Grid, title: Element, heads: Element, piece: Piece}>} */
  const made = new WeakMap();
  if (look) {
    const seen = (/** @type {HTMLElement} */ target, /** @type {Way} */ way) => {
      const cell = /** @type {HTMLElement | null} */ (target.closest(".cg-cell"));
      const spot = cell && made.get(/** @type {Element} */ (cell.closest(".cg-panel")))?.piece.look?.(Number(cell.dataset.row), Number(cell.dataset.col));
      if (spot) look(spot, way);
    };
    watch(el, seen, guard);
  }

  /** A sign, or a grid, that is not drawn yet. @param {Piece | string} piece @param {string} kind */
  function place(piece, kind) {
    if (typeof piece === "string") return h("span", { class: "cg-sign", "data-kind": kind }, piece);
    const [grid, title] = [new Grid({ onrefuse: refuse }), h("div", { class: "cg-title" })];
    const heads = h("div", { class: "cg-heads-rows", "aria-hidden": "true" });
    const body = piece.names ? h("div", { class: "cg-named" }, heads, grid.el) : grid.el;
    const panel = h("div", { class: `cg-panel cg-of-${piece.key}`, "data-kind": kind }, title, body);
    made.set(panel, { grid, title, heads, piece });
    return panel;
  }

  /** @param {(Piece | string)[]} pieces  in the order in which they are read */
  function draw(pieces) {
    const cut = (/** @type {number} */ length) => {
      while (el.childElementCount > length) el.lastChild?.remove();
    };
    pieces.forEach((piece, k) => {
      const kind = typeof piece === "string" ? piece : piece.key + !piece.names;
      // what stands already stays: most steps add a grid, or take one away
      if (/** @type {HTMLElement | undefined} */ (el.children[k])?.dataset.kind !== kind) {
        cut(k);
        el.append(place(piece, kind));
      }
      const panel = made.get(el.children[k]);
      if (!panel || typeof piece === "string") return;
      const { grid, title, heads } = panel;
      const { key, name, rows, cols, edit, names, marks = {} } = piece;
      panel.piece = piece;
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
    cut(pieces.length);
  }

  /** Goes to the numbers: those that can be edited, if there are any. */
  function enter() {
    const panels = [...el.children].flatMap((child) => made.get(child) ?? []);
    const to = (panels.find(({ piece }) => piece.edit) ?? panels[0])?.grid;
    to?.cell(...to.tabStop)?.focus();
  }
  return { el, draw, enter };
}
