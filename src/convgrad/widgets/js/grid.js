// @ts-check
// A table of numbers with a hatched border for padding: one tab stop, arrows move inside it,
// Enter or typing edits, and a ring glides to the cell of the step.

import { attribute, fill, h } from "./dom.js";
import { clamp } from "./player.js";
import { fitNumber, formatNumber, parseNumber } from "./words.js";

/** @typedef {[number, number]} Pair */
/** Cells of padding on each side. @typedef {[Pair, Pair]} Border */
/**
 * @typedef {object} GridOptions
 * @property {(row: number, col: number, value: number) => void} [onedit]  makes it editable
 * @property {(row: number, col: number) => void} [onpick]  makes cells open something
 * @property {(sentence: string) => void} [onrefuse]  told when typed text is no number
 */

/**
 * Where an arrow, Home or End leads inside a grid; null for other keys.
 * @param {string} key @param {number} row @param {number} col @param {number} rows @param {number} cols
 * @returns {Pair | null}
 */
export function moveFocus(key, row, col, rows, cols) {
  const by = ARROWS[key];
  const to = by ? [row + by[0], col + by[1]] : { Home: [row, 0], End: [row, cols - 1] }[key];
  return to ? [clamp(to[0], 0, rows - 1), clamp(to[1], 0, cols - 1)] : null;
}

/** How far an arrow leads. @type {Record<string, Pair>} */
export const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** Whether a key is pressed alone, not as part of a command of the browser. @param {KeyboardEvent} event */
export const alone = (event) => !(event.ctrlKey || event.metaKey || event.altKey);

const EXACT = 12; // digits of a number that is edited

export class Grid {
  /** @param {GridOptions} options */
  constructor(options) {
    this.options = options;
    this.rows = 0;
    this.cols = 0;
    /** @type {Border} */
    this.border = [
      [0, 0],
      [0, 0],
    ];
    /**
     * By "row,col"; padding has negative or too large numbers.  Each with the number it shows, so
     * that a step reads nothing back from the page.
     * @type {Map<string, {el: HTMLElement, row: number, col: number, value: number | null | undefined}>}
     */
    this.cells = new Map();
    /** @type {Map<string, Set<HTMLElement>>} the cells that carry each mark now */
    this.marked = new Map();
    /** @type {Pair} */
    this.tabStop = [0, 0];
    this.ring = h("div", { class: "cg-ring", hidden: true });
    this.body = h("div", { class: "cg-grid-body", role: "grid" });
    this.el = h("div", { class: "cg-grid" }, this.body, this.ring);
    this.body.addEventListener("keydown", (event) => this.#key(event));
    this.body.addEventListener("click", (event) => this.#click(event));
    this.body.addEventListener("focusin", (event) => this.#focus(event));
  }

  /**
   * Gives the grid its size; keeps its cells when nothing changed.
   * @param {number} rows @param {number} cols @param {Border} border
   */
  shape(rows, cols, border) {
    const same = rows === this.rows && cols === this.cols && `${border}` === `${this.border}`;
    if (same) return;
    [this.rows, this.cols, this.border] = [rows, cols, border];
    const [[top, bottom], [left, right]] = border;
    const held = this.body.contains(document.activeElement);
    const [atRow, atCol] = this.tabStop;
    this.cells.clear();
    this.marked.clear();
    this.tabStop = [0, 0];
    this.el.style.setProperty("--cols", String(cols + left + right));
    this.el.style.setProperty("--rows", String(rows + top + bottom));
    const lines = [];
    for (let row = -top; row < rows + bottom; row++) {
      const line = h("div", { class: "cg-row", role: "row" });
      for (let col = -left; col < cols + right; col++) {
        const inside = row >= 0 && col >= 0 && row < rows && col < cols;
        const cell = h("div", {
          class: inside ? "cg-cell" : "cg-cell cg-pad",
          role: "gridcell",
          tabindex: inside ? (row || col ? -1 : 0) : undefined,
          "data-row": row,
          "data-col": col,
        });
        this.cells.set(`${row},${col}`, { el: cell, row, col, value: undefined });
        line.append(cell);
      }
      lines.push(line);
    }
    fill(this.body, ...lines);
    this.ring.hidden = true;
    // who was in the grid stays in it, as when a knob is taken back; not before all is drawn
    if (held) queueMicrotask(() => this.cell(clamp(atRow, 0, rows - 1), clamp(atCol, 0, cols - 1))?.focus());
  }

  /** Places on the border can be gone to. */
  openBorder() {
    for (const { el } of this.cells.values()) if (!el.hasAttribute("tabindex")) el.tabIndex = -1;
  }

  /** @param {string} text */
  label(text) {
    attribute(this.body, "aria-label", text);
  }

  /** @param {number} row @param {number} col */
  cell(row, col) {
    return this.cells.get(`${row},${col}`)?.el ?? null;
  }

  /**
   * Writes every cell; `null` leaves a cell blank.
   * @param {(row: number, col: number) => number | null} valueAt
   */
  write(valueAt) {
    for (const cell of this.cells.values()) {
      const value = valueAt(cell.row, cell.col);
      if (cell.value === value || cell.el.firstElementChild) continue; // or somebody is typing here
      cell.value = value;
      const text = value === null ? "" : fitNumber(value);
      cell.el.textContent = text;
      const whole = value === null ? "" : formatNumber(value, EXACT);
      if (whole !== text) cell.el.title = whole;
      else cell.el.removeAttribute("title");
      cell.el.dataset.length = String(Math.min(text.length, 6)); // longer numbers are set smaller
    }
  }

  /**
   * Gives a mark (a CSS class) to exactly these cells.
   * @param {string} mark @param {Iterable<readonly number[]>} places
   */
  mark(mark, places) {
    const before = this.marked.get(mark) ?? new Set();
    const now = new Set();
    for (const [row, col] of places) {
      const cell = this.cell(row, col);
      if (cell) now.add(cell);
    }
    for (const cell of before) if (!now.has(cell)) cell.classList.remove(mark);
    for (const cell of now) if (!before.has(cell)) cell.classList.add(mark);
    this.marked.set(mark, now);
  }

  /**
   * Moves the ring to a cell, or takes it away.
   * @param {readonly number[] | null} place
   */
  point(place) {
    this.mark("cg-lit", place ? [place] : []);
    if (!place || !this.cell(place[0], place[1])) {
      this.ring.hidden = true;
      return;
    }
    const [[top], [left]] = this.border;
    this.ring.style.setProperty("--row", String(place[0] + top));
    this.ring.style.setProperty("--col", String(place[1] + left));
    this.ring.hidden = false;
  }

  /** @param {Event} event @returns {HTMLElement | null} */
  #cellOf(event) {
    const cell = /** @type {Element} */ (event.target).closest(".cg-cell");
    return cell instanceof HTMLElement && !cell.classList.contains("cg-pad") ? cell : null;
  }

  /** @param {Event} event */
  #focus(event) {
    const cell = /** @type {Element} */ (event.target).closest(".cg-cell");
    if (!(cell instanceof HTMLElement)) return;
    this.cell(...this.tabStop)?.setAttribute("tabindex", "-1");
    this.tabStop = [Number(cell.dataset.row), Number(cell.dataset.col)];
    cell.setAttribute("tabindex", "0");
  }

  /** @param {Event} event */
  #click(event) {
    const cell = this.#cellOf(event);
    if (!cell || event.target instanceof HTMLInputElement) return;
    if (this.options.onedit) this.#edit(cell);
    else this.options.onpick?.(Number(cell.dataset.row), Number(cell.dataset.col));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const at = /** @type {Element} */ (event.target).closest(".cg-cell");
    if (!(at instanceof HTMLElement) || event.target instanceof HTMLInputElement) return;
    if (!alone(event)) return;
    const [row, col] = [Number(at.dataset.row), Number(at.dataset.col)];
    const cell = this.#cellOf(event);
    const by = ARROWS[event.key];
    const next = by && this.cell(row + by[0], col + by[1]);
    const to = next?.hasAttribute("tabindex") || (by && !cell) ? null : moveFocus(event.key, row, col, this.rows, this.cols);
    if (to) this.cell(...to)?.focus();
    else if (by) next?.focus();
    else if (!cell) return;
    else if (this.options.onedit && (event.key === "Enter" || event.key === "F2")) this.#edit(cell);
    else if (this.options.onedit && /^[-−+.,\d]$/.test(event.key)) this.#edit(cell, event.key);
    else if (this.options.onpick && event.key === "Enter") this.options.onpick(row, col);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Turns a cell into a field until Enter, Escape or leaving it. @param {HTMLElement} cell @param {string} [typed] */
  #edit(cell, typed) {
    const before = cell.textContent ?? "";
    const [row, col] = [Number(cell.dataset.row), Number(cell.dataset.col)];
    const input = h("input", {
      class: "cg-edit",
      type: "text",
      autocomplete: "off",
      "aria-label": `number in row ${row}, column ${col}`,
    });
    const whole = cell.title || before;
    input.value = typed ?? whole;
    let open = true;
    /** @param {boolean} keep @param {boolean} refocus */
    const close = (keep, refocus) => {
      if (!open) return;
      const parsed = keep && input.value !== whole ? parseNumber(input.value) : null;
      if (parsed && "refusal" in parsed) {
        this.options.onrefuse?.(parsed.refusal);
        input.setAttribute("aria-invalid", "true");
        if (refocus) return; // still in the cell: mend it or press Escape
      } else this.options.onrefuse?.("");
      open = false;
      cell.textContent = before;
      // before the focus, so that what is read aloud is the new number
      if (parsed && "value" in parsed) this.options.onedit?.(row, col, parsed.value);
      if (refocus) cell.focus();
    };
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") close(true, true);
      else if (event.key === "Escape") close(false, true);
      else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        close(true, true);
        const to = moveFocus(event.key, row, col, this.rows, this.cols);
        if (!open && to) this.cell(...to)?.focus();
      } else return;
      event.preventDefault();
    });
    input.addEventListener("blur", () => close(true, false));
    fill(cell, input);
    input.focus();
    if (typed === undefined) input.select();
  }
}
