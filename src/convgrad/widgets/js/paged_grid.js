// @ts-check
// A matrix or a map with names on its rows and columns, whose cells can be looked at.  Of a large
// one a part is drawn, which moves with the arrow keys at its edge and with a slider.

import { h, say } from "./dom.js";
import { Grid } from "./grid.js";

/** @typedef {import("./grid.js").Border} Border */
/** @typedef {import("./unfold_steps.js").Span} Span */
/** By pointer, or by keyboard and touch. @typedef {"hover" | "focus"} Way */
/**
 * @typedef {object} SheetHandlers
 * @property {(row: number, col: number, value: number) => void} edit
 * @property {(sentence: string) => void} refuse
 * @property {(place: [number, number] | null, way: Way) => void} look  null when nobody looks any more
 * @property {(axis: number, start: number) => void} turn  another part is wanted
 */

/** @type {Record<string, [number, number]>} */
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const LINES = ["rows", "columns"];

/** An axis that is drawn from end to end. @param {number} size @returns {Span} */
export const whole = (size) => ({ start: 0, shown: size, size });

/** @typedef {ReturnType<typeof sheetOf>} Sheet */

/** @param {SheetHandlers} on */
export function sheetOf({ edit, refuse, look, turn }) {
  let spans = [whole(0), whole(0)];
  const grid = new Grid({ onrefuse: refuse });
  const { body } = grid;
  const symbol = h("b");
  const words = h("span", { class: "cg-words" });
  const note = h("span", { class: "cg-note" });
  // names are for the eyes: what is looked at is said in full in the line of words
  const heads = ["rows", "cols"].map((way) =>
    h("div", { class: `cg-heads cg-heads-${way}`, "aria-hidden": "true" }),
  );
  const sliders = [0, 1].map((axis) => {
    const slider = h("input", { type: "range", class: "cg-scrub", oninput: () => turn(axis, slider.valueAsNumber) });
    return slider;
  });
  const drawn = sliders.map((slider) => h("label", { class: "cg-note" }, document.createTextNode(""), slider));
  const el = h(
    "div",
    {},
    h("div", { class: "cg-title" }, symbol, " ", words),
    h("div", { class: "cg-named" }, h("span"), heads[1], heads[0], grid.el),
    ...drawn,
    note,
  );

  /** @param {number} row @param {number} col @returns {[number, number]} */
  const absolute = (row, col) => [row + spans[0].start, col + spans[1].start];

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
    grid.label(`${name}, ${about}${editable ? ": Enter edits a number" : ""}`);
    grid.options.onedit = editable ? (row, col, value) => edit(...absolute(row, col), value) : undefined;
  }

  /**
   * @param {Span} rows @param {Span} cols @param {Border} border
   * @param {(row: number, col: number) => number | null} at
   */
  function write(rows, cols, border, at) {
    spans = [rows, cols];
    grid.shape(rows.shown, cols.shown, border);
    grid.write((row, col) => at(...absolute(row, col)));
    spans.forEach(({ start, shown, size }, axis) => {
      const slider = sliders[axis];
      drawn[axis].hidden = shown === size;
      slider.max = `${size - shown}`;
      slider.value = `${start}`;
      const text = /** @type {Text} */ (drawn[axis].firstChild);
      text.data = `${LINES[axis]} ${start} to ${start + shown - 1} of ${size}`;
    });
  }

  /**
   * What stands out and what is in its company, by the answers 2 and 1; names in use are bold.
   * @param {(row: number, col: number) => number} ask @param {readonly number[] | null} spot
   * @param {((k: number) => string)[]} [names]  of rows, of columns
   */
  function paint(ask, spot, names) {
    /** @type {[number, number][][]} */
    const marks = [[], [], []];
    for (const { row, col } of grid.cells.values()) marks[ask(...absolute(row, col))].push([row, col]);
    const here = spot && spot.map((k, axis) => k - spans[axis].start);
    grid.mark("cg-partner", marks[2]);
    grid.mark("cg-with", marks[1]);
    grid.point(here);
    names?.forEach((name, axis) => {
      const head = heads[axis];
      const { start, shown } = spans[axis];
      while (head.children.length > shown) head.lastChild?.remove();
      while (head.children.length < shown) head.append(h("span"));
      const used = new Set([...marks[2], ...(here ? [here] : [])].map((place) => place[axis]));
      [...head.children].forEach((each, k) => {
        say(each, name(start + k));
        each.classList.toggle("cg-in-use", used.has(k));
      });
    });
  }

  /** @param {Event} event @returns {[number, number, HTMLElement] | null} */
  const cellOf = (event) => {
    const cell = /** @type {Element} */ (event.target).closest(".cg-cell");
    return cell instanceof HTMLElement ? [Number(cell.dataset.row), Number(cell.dataset.col), cell] : null;
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
  // before the grid's own arrows: onto the border, and beyond the part that is drawn
  body.addEventListener(
    "keydown",
    (event) => {
      const by = MOVES[event.key];
      const at = cellOf(event);
      if (!by || !at || event.target instanceof HTMLInputElement) return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const [row, col, cell] = at;
      const next = grid.cell(row + by[0], col + by[1]);
      if (next) {
        // from cell to cell is the grid's business
        if (![next, cell].some((each) => each.matches(".cg-pad"))) return;
        next.focus();
      } else {
        const axis = by[0] ? 0 : 1;
        const to = spans[axis].start + by[axis];
        if (to < 0 || to + spans[axis].shown > spans[axis].size) return;
        turn(axis, to);
        see(event, "focus"); // the focus stays, and another cell is under it
      }
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );
  return { el, grid, absolute, title, write, paint };
}
