// @ts-check
// An array as a grey picture on a canvas, for what is too large for a table of numbers.  One tab
// stop; arrow keys move a cursor whose place and number are spoken.

import { attribute, h } from "./dom.js";
import { moveFocus } from "./grid.js";
import { formatNumber } from "./words.js";

/** @typedef {[number, number]} Pair */
/** @typedef {import("./grid.js").Border} Border */

const WIDEST = 264; // pixels
const FINE = 8; // pixels of the canvas for one cell, where lines are drawn on it

/**
 * The numbers drawn black and white, for the output of a kernel; the same as in sliding_fallback.py.
 * An image without negative numbers keeps its own scale where the kernel adds up to something; a
 * kernel that adds up to nothing answers with both signs, and 0 is drawn in the middle.
 * @param {ArrayLike<number>} values @param {ArrayLike<number>} x @param {ArrayLike<number>} kernel
 * @returns {Pair}
 */
export function greyScale(values, x, kernel) {
  let [total, size] = [0, 0];
  for (const w of Array.from(kernel)) {
    total += w;
    size += Math.abs(w);
  }
  const [low, high] = extent(values);
  if (Math.abs(total) <= 1e-9 * size) {
    const most = Math.max(-low, high) || 1;
    return [-most, most];
  }
  const [darkest, brightest] = extent(x);
  if (darkest >= 0 && total > 0) return [0, brightest * total || 1];
  return [low, high > low ? high : low + 1];
}

/** @param {ArrayLike<number>} values @returns {Pair} */
export function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (let k = 0; k < values.length; k++) {
    low = Math.min(low, values[k]);
    high = Math.max(high, values[k]);
  }
  return [low, high];
}

export class Picture {
  /** @param {(row: number, col: number) => void} onlook */
  constructor(onlook) {
    this.onlook = onlook;
    this.rows = 0;
    this.cols = 0;
    /** @type {Border} */
    this.border = [
      [0, 0],
      [0, 0],
    ];
    /** @type {Pair} the cursor */
    this.at = [0, 0];
    this.name = "";
    /** @type {(row: number, col: number) => number | null} */
    this.valueAt = () => null;
    /** @type {Set<string>} the outlined cells, by "row,col" */
    this.marked = new Set();
    this.image = h("canvas");
    this.lines = h("canvas");
    this.el = h(
      "div",
      { class: "cg-canvas", tabindex: 0, role: "slider", "aria-valuemin": 0, hidden: true },
      this.image,
      this.lines,
    );
    Object.assign(this.el, { picture: this }); // pixels cannot be read back: tables.js asks here
    this.el.addEventListener("keydown", (event) => this.#key(event));
    this.el.addEventListener("click", (event) => {
      const place = this.placeUnder(event);
      if (place) this.go(...place);
    });
  }

  /** @param {number} rows @param {number} cols @param {Border} border */
  shape(rows, cols, border) {
    if (rows === this.rows && cols === this.cols && `${border}` === `${this.border}`) return;
    [this.rows, this.cols, this.border] = [rows, cols, border];
    const [[top, bottom], [left, right]] = border;
    const [height, width] = [rows + top + bottom, cols + left + right];
    for (const [canvas, fine] of /** @type {const} */ ([
      [this.image, 1],
      [this.lines, FINE],
    ])) {
      canvas.width = width * fine;
      canvas.height = height * fine;
    }
    const fit = WIDEST / Math.max(width, height);
    const cell = fit < 2 ? fit : Math.min(14, Math.floor(fit));
    this.el.style.cssText = `--rows:${height};--cols:${width};--size:${cell}px`;
    this.at = [Math.min(this.at[0], rows - 1), Math.min(this.at[1], cols - 1)];
  }

  /**
   * @param {(row: number, col: number) => number | null} valueAt  null where nothing is painted yet
   * @param {Pair} scale  what is black, what is white
   */
  paint(valueAt, [low, high]) {
    this.valueAt = valueAt;
    const { width, height } = this.image;
    const [[top], [left]] = this.border;
    const context = /** @type {CanvasRenderingContext2D} */ (this.image.getContext("2d"));
    const pixels = context.createImageData(width, height);
    for (let k = 0; k < width * height; k++) {
      const [row, col] = [Math.floor(k / width) - top, (k % width) - left];
      const value = valueAt(row, col);
      if (value === null) continue; // see-through
      const inside = row >= 0 && col >= 0 && row < this.rows && col < this.cols;
      const grey = (255 * (value - low)) / (high - low);
      pixels.data.fill(grey, 4 * k, 4 * k + 3); // clamps and rounds by itself
      pixels.data[4 * k + 3] = inside ? 255 : 150; // a copy lets the hatch through
    }
    context.putImageData(pixels, 0, 0);
    this.#say();
  }

  /** Outlines around exactly these cells. @param {Iterable<readonly number[]>} places */
  mark(places) {
    const context = /** @type {CanvasRenderingContext2D} */ (this.lines.getContext("2d"));
    context.clearRect(0, 0, this.lines.width, this.lines.height);
    const [[top], [left]] = this.border;
    this.marked = new Set(Array.from(places, String));
    if (!this.marked.size) return;
    context.beginPath();
    for (const each of this.marked) {
      const [row, col] = each.split(",").map(Number);
      // only where the neighbour is not marked: an outline of the whole
      for (const [down, right] of [[-1, 0], [1, 0], [0, -1], [0, 1]]) {
        if (this.marked.has(`${row + down},${col + right}`)) continue;
        const [y, x] = [row + top + Math.max(down, 0), col + left + Math.max(right, 0)];
        context.moveTo(x * FINE, y * FINE);
        context.lineTo((x + (down ? 1 : 0)) * FINE, (y + (right ? 1 : 0)) * FINE);
      }
    }
    const style = getComputedStyle(this.el);
    for (const [colour, width] of /** @type {const} */ ([
      [style.getPropertyValue("--cg-paper"), 4],
      [style.getPropertyValue("--hue"), 2],
    ])) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.stroke();
    }
  }

  /** @param {string} name */
  label(name) {
    this.name = name;
    attribute(this.el, "aria-label", name);
  }

  /** Puts the cursor where something else has looked. @param {readonly number[] | null} place */
  point(place) {
    if (!place) return;
    this.at = [place[0], place[1]];
    this.#say();
  }

  /** @param {MouseEvent} event @returns {Pair | null} */
  placeUnder(event) {
    const box = this.image.getBoundingClientRect();
    const { width, height } = this.image;
    const row = Math.floor(((event.clientY - box.top) / box.height) * height);
    const col = Math.floor(((event.clientX - box.left) / box.width) * width);
    if (row < 0 || col < 0 || row >= height || col >= width) return null;
    const [[top], [left]] = this.border;
    return [row - top, col - left];
  }

  /** @param {number} row @param {number} col */
  go(row, col) {
    this.at = [row, col];
    this.#say();
    this.onlook(row, col);
  }

  #say() {
    const [[top, bottom], [left, right]] = this.border;
    const [row, col] = this.at;
    const width = this.cols + left + right;
    attribute(this.el, "aria-valuemax", `${(this.rows + top + bottom) * width - 1}`);
    attribute(this.el, "aria-valuenow", `${(row + top) * width + col + left}`);
    const value = this.valueAt(row, col);
    const number = value === null ? "nothing yet" : formatNumber(value);
    attribute(this.el, "aria-valuetext", `row ${row}, column ${col}: ${number}`);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [[top, bottom], [left, right]] = this.border; // the cursor goes onto it too
    const [row, col] = this.at;
    const to = moveFocus(event.key, row + top, col + left, this.rows + top + bottom, this.cols + left + right);
    if (!to) return;
    event.preventDefault();
    event.stopPropagation();
    this.go(to[0] - top, to[1] - left);
  }
}
