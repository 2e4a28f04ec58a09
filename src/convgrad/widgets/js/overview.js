// @ts-check
// All slices of an array as a small table of small pictures: shows where in the batch and the
// channels the step is, how much is filled, and lets another slice be looked at.  One tab stop;
// arrow keys go from slice to slice.

import { attribute, drawing, fill, h } from "./dom.js";
import { moveFocus } from "./grid.js";
import { groupOfSlice, sameSlice } from "./places.js";
import { groupLetter } from "./words.js";

/** What an index letter counts. @type {Record<string, string>} */
const COUNTS = { n: "image", c: "channel", o: "kernel" };
const SIDE = 5; // pixels of one cell

/**
 * The first two axes of an array: their letters, and which of them the groups divide.
 * @typedef {{letters: string, shape: readonly number[], groupAxis: number, groups: number}} Axes
 */

/** What a slice is called: `image 0, channel 2`. @param {string} letters @param {readonly number[]} slice */
export const sliceName = (letters, slice) =>
  [...letters].map((letter, axis) => `${COUNTS[letter]} ${slice[axis]}`).join(", ");

export class Overview {
  /** @param {(slice: number[]) => void} onpick */
  constructor(onpick) {
    this.onpick = onpick;
    this.built = "";
    /** @type {{slice: number[], button: HTMLElement, picture: HTMLElement, box: string, done: Element | null}[]} */
    this.slices = [];
    this.dot = h("b", { class: "cg-dot" });
    /** @type {HTMLElement | null} where the dot is */
    this.lit = null;
    this.el = h("div", { class: "cg-overview", role: "group", "aria-description": "arrow keys move, Enter shows one" });
    this.across = 1;
    this.el.addEventListener("keydown", (event) => this.#key(event));
    this.el.addEventListener("focusin", ({ target }) => {
      const at = this.slices.findIndex(({ button }) => button === target);
      if (at >= 0) this.#stop(at);
    });
  }

  /** Where Tab comes in. @param {number} at */
  #stop(at) {
    this.slices.forEach(({ button }, k) => attribute(button, "tabindex", k === at ? "0" : "-1"));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { across, slices } = this;
    const at = slices.findIndex(({ button }) => button === event.target);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = moveFocus(event.key, Math.floor(at / across), at % across, slices.length / across, across);
    if (!to) return;
    slices[to[0] * across + to[1]].button.focus();
    event.preventDefault();
    event.stopPropagation(); // the same keys step
  }

  /** @param {Axes} axes @param {string} label */
  shape(axes, label) {
    const [A, B] = axes.shape;
    this.el.hidden = A * B < 2;
    attribute(this.el, "aria-label", label);
    const wanted = `${axes.letters} ${axes.shape} ${axes.groups}`;
    if (this.built === wanted) return;
    this.built = wanted;
    this.slices = [];
    this.lit = null;
    if (A * B < 2) return fill(this.el);
    // the longer axis runs across
    const [down, across] = A > B ? [1, 0] : [0, 1];
    const [rows, columns] = [axes.shape[down], axes.shape[across]];
    this.el.style.setProperty("--across", String(columns));
    this.across = columns;
    const each = axes.shape[axes.groupAxis] / axes.groups;
    const grouped = axes.groups > 1 && rows + columns > 2;
    const cells = [];
    if (grouped && axes.groupAxis === across) {
      cells.push(h("span"));
      for (let k = 0; k < axes.groups; k++) {
        const letter = groupLetter(k);
        const style = `grid-column:span ${each}`;
        cells.push(heading(each > 1 ? `group ${letter}` : letter, { "data-group": letter, style }));
      }
    }
    cells.push(h("span"));
    for (let k = 0; k < columns; k++) cells.push(heading(axes.letters[across] + k));
    for (let row = 0; row < rows; row++) {
      const letter = grouped && axes.groupAxis === down ? `${groupLetter(Math.floor(row / each))} ` : "";
      cells.push(rows > 1 ? heading(letter + axes.letters[down] + row) : h("span"));
      for (let column = 0; column < columns; column++) {
        cells.push(this.#slice(axes, across ? [row, column] : [column, row]));
      }
    }
    fill(this.el, ...cells);
    this.#stop(0);
  }

  /** @param {Axes} axes @param {number[]} slice */
  #slice(axes, slice) {
    const [rows, cols] = axes.shape.slice(2);
    const letter = groupOfSlice(axes, slice);
    const picture = h("i", { style: `width:${cols * SIDE}px;height:${rows * SIDE}px` });
    const name = sliceName(axes.letters, slice) + (letter && `, group ${letter}`);
    const button = h(
      "button",
      {
        class: "cg-slice",
        "data-group": letter,
        "aria-label": `show ${name}`,
        title: name,
        onclick: () => this.onpick(slice),
      },
      picture,
    );
    this.slices.push({ slice, button, picture, box: `0 0 ${cols} ${rows}`, done: null });
    return button;
  }

  /**
   * @param {readonly number[]} shown  the slice that is drawn large
   * @param {readonly number[] | null} lit  the cell of the step: a, b, row, col
   * @param {(slice: readonly number[]) => string} [filled]  path of the cells that hold something
   */
  update(shown, lit, filled) {
    let under = null;
    // unless somebody is among them
    if (!this.el.contains(document.activeElement)) {
      this.#stop(Math.max(0, this.slices.findIndex(({ slice }) => sameSlice(slice, shown))));
    }
    for (const each of this.slices) {
      const { slice, button, picture } = each;
      attribute(button, "aria-pressed", `${sameSlice(slice, shown)}`);
      if (lit && sameSlice(slice, lit)) under = picture;
      const path = filled?.(slice);
      // made where something is to be drawn: drawings cost layout
      if (path && !each.done) {
        const { svg, path } = drawing(each.box);
        picture.prepend(svg);
        each.done = path;
      }
      if (each.done) attribute(each.done, "d", path ?? "");
    }
    if (lit) attribute(this.dot, "style", `left:${lit[3] * SIDE}px;top:${lit[2] * SIDE}px`);
    if (under === this.lit) return;
    this.lit = under;
    if (under) under.append(this.dot);
    else this.dot.remove();
  }
}

/** @param {string} text @param {Record<string, string>} [attributes] */
const heading = (text, attributes) => h("span", { class: "cg-heading", ...attributes }, text);
