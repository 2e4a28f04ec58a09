// @ts-check
// A grid with a title whose cells can be looked at, by pointer, touch or keyboard, those on its
// border too; some stand out, some keep them company.

import { h, say } from "./dom.js";
import { ARROWS, Grid } from "./grid.js";

/** By pointer, or by keyboard and touch. @typedef {"hover" | "focus"} Way */
/**
 * @typedef {object} Handlers
 * @property {(row: number, col: number, value: number) => void} edit
 * @property {(sentence: string) => void} refuse
 * @property {(place: [number, number] | null, way: Way) => void} look  null when nobody looks any more
 * @property {(axis: number, by: number) => boolean} [beyond]  an arrow at the edge; whether it led on
 * @property {(row: number, col: number) => [number, number]} [absolute]  where only a part is drawn
 */

/** @typedef {ReturnType<typeof lookedGrid>} LookedGrid */

/** @param {Handlers} on */
export function lookedGrid({ edit, refuse, look, beyond, absolute = (row, col) => [row, col] }) {
  const grid = new Grid({ onrefuse: refuse });
  const { body } = grid;
  const symbol = h("b");
  const words = h("span", { class: "cg-words" });
  const note = h("span", { class: "cg-note" });
  const el = h("div", {}, h("div", { class: "cg-title" }, symbol, " ", words), grid.el, note);

  /**
   * @param {string} key  of the palette @param {string} name @param {string} about
   * @param {boolean} editable @param {string} [remark]
   */
  function title(key, name, about, editable, remark = "") {
    el.className = `cg-panel cg-sheet cg-of-${key}`;
    symbol.className = `cg-ink-${key}`;
    say(symbol, name);
    say(words, about);
    say(note, remark);
    grid.label(`${name}${about && `, ${about}`}${editable ? ": Enter edits a number" : ""}`);
    grid.options.onedit = editable ? (row, col, value) => edit(...absolute(row, col), value) : undefined;
  }

  /**
   * What stands out and what is in its company, by the answers 2 and 1; and the cell in the ring.
   * @param {(row: number, col: number) => number} ask @param {readonly number[] | null} here
   */
  function paint(ask, here) {
    /** @type {[number, number][][]} */
    const marks = [[], [], []];
    for (const { row, col } of grid.cells.values()) marks[ask(...absolute(row, col))].push([row, col]);
    grid.mark("cg-partner", marks[2]);
    grid.mark("cg-with", marks[1]);
    grid.point(here);
    return marks[2];
  }

  /** @param {Event} event @returns {[number, number] | null} */
  const cellOf = (event) => {
    const cell = /** @type {Element} */ (event.target).closest(".cg-cell");
    return cell instanceof HTMLElement ? [Number(cell.dataset.row), Number(cell.dataset.col)] : null;
  };
  /** @param {Event} event @param {Way} way */
  const see = (event, way) => {
    const at = cellOf(event);
    if (at) look(absolute(at[0], at[1]), way);
  };
  // a finger that rests on a cell gives it the focus
  body.addEventListener("pointerover", (event) => event.pointerType !== "touch" && see(event, "hover"));
  body.addEventListener("pointerleave", () => look(null, "hover"));
  body.addEventListener("focusin", (event) => see(event, "focus"));
  body.addEventListener("focusout", (event) => {
    if (!body.contains(/** @type {Node | null} */ (event.relatedTarget))) look(null, "focus");
  });
  // before the grid's own arrows: beyond the part that is drawn
  body.addEventListener(
    "keydown",
    (event) => {
      const by = ARROWS[event.key];
      const at = cellOf(event);
      if (!by || !at || event.target instanceof HTMLInputElement) return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (grid.cell(at[0] + by[0], at[1] + by[1])) return; // from cell to cell is the grid's business
      const axis = by[0] ? 0 : 1;
      if (!beyond?.(axis, by[axis])) return;
      see(event, "focus"); // the focus stays, and another cell is under it
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );
  return { el, grid, title, paint };
}
