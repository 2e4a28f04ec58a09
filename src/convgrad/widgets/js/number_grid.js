// @ts-check
// A table of numbers with names on its rows and columns that can be looked at, and not edited: one
// tab stop, arrows move inside it.

import { attribute, fill, h, say } from "./dom.js";
import { moveFocus } from "./grid.js";
import { indices } from "./conv.js";
import { fitNumber, formatNumber } from "./words.js";

/**
 * What is drawn.
 * @typedef {object} Sheet
 * @property {string} key  of the palette
 * @property {string} name
 * @property {string} about
 * @property {string} [note]
 * @property {[number, number]} rows  the first one, and how many
 * @property {[number, number]} cols
 * @property {(row: number, col: number) => [number | null, string?]} at  a number, null where there is none, and what marks it
 * @property {readonly number[] | null} [here]  the cell in the ring
 */

export class NumberGrid {
  /** @type {HTMLElement[][]} */
  #cells = [];
  #from = [0, 0];
  #stop = [0, 0];
  #symbol = h("b");
  #about = h("span", { class: "cg-words" });
  #note = h("span", { class: "cg-note" });
  #heads = ["rows", "cols"].map((way) => h("div", { class: `cg-heads cg-heads-${way}`, "aria-hidden": "true" }));
  #body = h("div", { class: "cg-grid-body", role: "grid" });
  #grid = h("div", { class: "cg-grid" }, this.#body);

  /** @param {(at: [number, number] | null, byFocus: boolean) => void} look  null when nobody looks any more */
  constructor(look) {
    this.el = h("div", {}, h("div", { class: "cg-title" }, this.#symbol, " ", this.#about), h("div", { class: "cg-named" }, h("span"), this.#heads[1], this.#heads[0], this.#grid), this.#note);
    /** @param {Event} event @returns {[number, number] | null} */
    const spot = ({ target }) => {
      const { row, col } = /** @type {HTMLElement} */ (target).dataset;
      return row === undefined ? null : [Number(row), Number(col)];
    };
    const absolute = (/** @type {Event} */ event) => {
      const at = spot(event);
      return at && /** @type {[number, number]} */ (at.map((k, axis) => k + this.#from[axis]));
    };
    const body = this.#body;
    body.addEventListener("pointerover", (event) => event.pointerType !== "touch" && look(absolute(event), false));
    body.addEventListener("pointerleave", () => look(null, false));
    body.addEventListener("focusin", (event) => {
      this.#stopAt(/** @type {[number, number]} */ (spot(event)));
      look(absolute(event), true);
    });
    body.addEventListener("focusout", (event) => {
      if (!body.contains(/** @type {Node | null} */ (event.relatedTarget))) look(null, true);
    });
    body.addEventListener("click", (event) => /** @type {HTMLElement} */ (event.target).focus());
    body.addEventListener("keydown", (event) => {
      const at = spot(event);
      const to = at && !event.ctrlKey && !event.metaKey && !event.altKey && moveFocus(event.key, ...at, this.#cells.length, this.#cells[0].length);
      if (!to) return;
      this.#cells[to[0]][to[1]].focus();
      event.preventDefault();
      event.stopPropagation();
    });
  }

  /** @param {number[]} at */
  #stopAt([row, col]) {
    const [a, b] = this.#stop;
    this.#cells[a]?.[b]?.setAttribute("tabindex", "-1");
    this.#stop = [row, col];
    this.#cells[row][col].setAttribute("tabindex", "0");
  }

  /** @param {Sheet} sheet */
  draw({ key, name, about, note = "", rows, cols, at, here }) {
    const [down, across] = [rows[1], cols[1]];
    this.el.className = `cg-panel cg-sheet cg-of-${key}`;
    this.#symbol.className = `cg-ink-${key}`;
    say(this.#symbol, name);
    say(this.#about, about);
    say(this.#note, note);
    attribute(this.#body, "aria-label", `${name}, ${about}`);
    this.#from = [rows[0], cols[0]];
    if (this.#cells.length !== down || this.#cells[0]?.length !== across) {
      this.#cells = indices(down).map((row) => indices(across).map((col) => h("div", { role: "gridcell", tabindex: -1, "data-row": row, "data-col": col })));
      fill(this.#body, ...this.#cells.map((line) => h("div", { class: "cg-row", role: "row" }, ...line)));
      this.#grid.style.setProperty("--cols", `${across}`);
      this.#stopAt([0, 0]);
      this.#heads.forEach((head, axis) => fill(head, ...indices([down, across][axis]).map(() => h("span"))));
    }
    this.#heads.forEach((head, axis) => [...head.children].forEach((each, k) => say(each, formatNumber(k + this.#from[axis], 12))));
    this.#cells.forEach((line, a) =>
      line.forEach((cell, b) => {
        const [row, col] = [a + rows[0], b + cols[0]];
        const [value, marks = ""] = at(row, col);
        const text = value === null ? "" : fitNumber(value);
        say(cell, text);
        const whole = value === null ? "" : formatNumber(value, 12);
        attribute(cell, "title", whole === text ? "" : whole);
        cell.dataset.length = `${Math.min(text.length, 6)}`;
        const isHere = here && here[0] === row && here[1] === col;
        cell.className = `cg-cell ${marks} ${isHere ? "cg-chosen" : ""}`;
      }),
    );
  }
}
