// @ts-check
// An array as a table of numbers or, where that is too large, as a grey picture: one slice of it,
// a list to choose another, outlines, and word of what is pointed at.

import { annotate } from "./corners.js";
import { attribute, fill, h } from "./dom.js";
import { Grid } from "./grid.js";
import { sliceName } from "./overview.js";
import { Picture } from "./picture.js";
import { groupOfSlice, table } from "./places.js";

/** @typedef {import("./grid.js").Border} Border */
/**
 * @typedef {object} SheetHandlers
 * @property {(slice: number[]) => void} slice  another slice is chosen
 * @property {(row: number, col: number) => void} look  a cell is focused or clicked
 * @property {(row: number, col: number) => void} hover  the mouse is over a cell
 */

export class Sheet {
  /**
   * @param {string} key  of its colour
   * @param {string} symbol @param {string} words
   * @param {SheetHandlers} on @param {import("./grid.js").GridOptions} [options]
   */
  constructor(key, symbol, words, on, options = {}) {
    this.symbol = symbol;
    this.pictured = false;
    this.grid = new Grid(options);
    this.picture = new Picture(on.look);
    this.words = h("span", { class: "cg-words" }, words);
    this.note = h("span", { class: "cg-note" });
    this.choice = h("select", { "aria-label": `slice of ${symbol}`, hidden: true });
    this.choice.addEventListener("change", () =>
      on.slice(this.choice.value.split(",").map(Number)),
    );
    this.frame = h("div", { class: "cg-frame", hidden: true });
    this.peak = h("div", { class: "cg-peak", hidden: true });
    this.el = h(
      "div",
      { class: `cg-panel cg-of-${key}` },
      h(
        "div",
        { class: "cg-title" },
        h("b", { class: `cg-ink-${key}` }, symbol),
        " ",
        this.words,
      ),
      this.choice,
      this.grid.el,
      this.picture.el,
      this.note,
    );

    /** @param {Event} event @param {(row: number, col: number) => void} tell */
    const tellCell = (event, tell) => {
      const cell = /** @type {Element} */ (event.target).closest(".cg-cell");
      if (cell instanceof HTMLElement) tell(Number(cell.dataset.row), Number(cell.dataset.col));
    };
    this.grid.el.addEventListener("focusin", (event) => tellCell(event, on.look));
    this.el.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "mouse") return;
      const place = event.target instanceof HTMLCanvasElement && this.picture.placeUnder(event);
      if (place) on.hover(...place);
      else tellCell(event, on.hover);
    });
  }

  get surface() {
    return this.pictured ? this.picture : this.grid;
  }

  /** @param {number} rows @param {number} cols @param {Border} border @param {boolean} pictured */
  shape(rows, cols, border, pictured) {
    this.pictured = pictured;
    const { el } = this.surface;
    if (this.frame.parentElement !== el) el.append(this.frame, this.peak);
    this.grid.el.hidden = pictured;
    this.picture.el.hidden = !pictured;
    this.surface.shape(rows, cols, border);
    if (!pictured) this.grid.openBorder();
  }

  /**
   * Which slice is shown, and what can be done with it.
   * @param {import("./overview.js").Axes} axes @param {number[]} shown @param {string} help
   */
  slice(axes, shown, help) {
    const [A, B] = axes.shape;
    const name = A * B > 1 ? `, ${sliceName(axes.letters, shown)}` : "";
    this.surface.label(`${this.symbol}${name}: ${help}`);
    this.choice.hidden = A * B < 2;
    this.el.dataset.group = groupOfSlice(axes, shown);
    const built = `${axes.letters} ${axes.shape} ${axes.groups}`;
    if (this.choice.dataset.built !== built) {
      this.choice.dataset.built = built;
      const options = table(A, B).map((slice) => {
        const group = groupOfSlice(axes, slice);
        const words = sliceName(axes.letters, slice) + (group && ` · ${group}`);
        return h("option", { value: `${slice}` }, words);
      });
      fill(this.choice, ...options);
    }
    this.choice.value = `${shown}`;
  }

  /** Marks cells: all lit alike in a table, outlined in a picture. @param {Iterable<readonly number[]>} places */
  light(places) {
    if (this.pictured) this.picture.mark(places);
    else this.grid.mark("cg-with", places);
  }

  /** An outline around rows × cols cells from this place on, or none. @param {readonly number[] | null} place @param {readonly number[]} [size] */
  outline(place, size) {
    this.#surround(this.frame, place, size);
  }

  /** The mark of the largest number, or none. @param {readonly number[] | null} place */
  ring(place) {
    this.#surround(this.peak, place);
  }

  /** @param {HTMLElement} frame @param {readonly number[] | null} place @param {readonly number[]} [size] */
  #surround(frame, place, [high, wide] = [1, 1]) {
    frame.hidden = !place;
    if (!place) return;
    const [[top], [left]] = this.surface.border;
    const [row, col] = [place[0] + top, place[1] + left];
    attribute(frame, "style", `--row:${row};--col:${col};--high:${high};--wide:${wide}`);
  }

  /** Small words in the corners of exactly these cells. @param {Map<string, string>} corners  by "row,col" */
  annotate(corners) {
    annotate(this.grid, corners);
  }
}
