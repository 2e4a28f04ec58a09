// @ts-check
// All slices of an array as a small table of small pictures: shows where in the batch and the
// channels the step is, how much is filled, and lets another slice be looked at.

import { attribute, fill, h } from "./dom.js";

/** What an index letter counts. @type {Record<string, string>} */
const COUNTS = { n: "image", c: "channel", o: "kernel" };
const SIDE = 5; // pixels of one cell

/**
 * The first two axes of an array: their letters, and which of them the groups divide.
 * @typedef {{letters: string, shape: readonly number[], group: (a: number, b: number) => string, groupAxis: number}} Axes
 */

/** What a slice is called: `image 0, channel 2`. @param {string} letters @param {readonly number[]} slice */
export const sliceName = (letters, slice) =>
  [...letters].map((letter, axis) => `${COUNTS[letter]} ${slice[axis]}`).join(", ");

export class Overview {
  /** @param {(slice: number[]) => void} onpick */
  constructor(onpick) {
    this.onpick = onpick;
    this.built = "";
    /** @type {{slice: number[], button: HTMLElement, done: SVGElement, dot: SVGElement}[]} */
    this.slices = [];
    this.el = h("div", { class: "cg-overview", role: "group" });
  }

  /** @param {Axes} axes @param {string} label */
  shape(axes, label) {
    const [A, B] = axes.shape;
    this.el.hidden = A * B < 2;
    this.el.setAttribute("aria-label", label);
    const groups = [A - 1, 0, B - 1].map((k, at) => axes.group(at ? 0 : k, at ? k : 0));
    const wanted = `${axes.letters} ${axes.shape} ${groups}`;
    if (this.built === wanted) return;
    this.built = wanted;
    // the longer axis runs across
    const [down, across] = A > B ? [1, 0] : [0, 1];
    const [rows, columns] = [axes.shape[down], axes.shape[across]];
    this.el.style.setProperty("--across", String(columns));
    /** @param {number} axis @param {number} k */
    const heading = (axis, k) => {
      const letter = axis === axes.groupAxis ? axes.group(axis ? 0 : k, axis ? k : 0) : "";
      return h("span", { class: "cg-heading" }, `${letter}${k}`);
    };
    this.slices = [];
    const corner = h(
      "span",
      { class: "cg-heading" },
      rows > 1 ? `${axes.letters[down]}\\${axes.letters[across]}` : axes.letters[across],
    );
    const cells = [corner, ...Array.from({ length: columns }, (_, k) => heading(across, k))];
    for (let row = 0; row < rows; row++) {
      cells.push(rows > 1 ? heading(down, row) : h("span", {}));
      for (let column = 0; column < columns; column++) {
        cells.push(this.#slice(axes, across ? [row, column] : [column, row]));
      }
    }
    fill(this.el, ...cells);
  }

  /** @param {Axes} axes @param {number[]} slice */
  #slice(axes, slice) {
    const [rows, cols] = axes.shape.slice(2);
    const letter = axes.group(slice[0], slice[1]);
    const size = `width:${cols * SIDE}px;height:${rows * SIDE}px`;
    const svg = svgElement("svg", {
      viewBox: `0 0 ${cols} ${rows}`,
      style: size,
      "aria-hidden": "true",
    });
    const done = svgElement("path", { class: "cg-done" });
    const dot = svgElement("rect", {
      class: "cg-dot",
      width: "1",
      height: "1",
      visibility: "hidden",
    });
    svg.append(done, dot);
    const name = sliceName(axes.letters, slice) + (letter && `, group ${letter}`);
    const button = h(
      "button",
      {
        type: "button",
        class: "cg-slice",
        "data-group": letter,
        "aria-label": `show ${name}`,
        title: name,
        onclick: () => this.onpick(slice),
      },
      svg,
    );
    this.slices.push({ slice, button, done, dot });
    return button;
  }

  /**
   * @param {readonly number[]} shown  the slice that is drawn large
   * @param {readonly number[] | null} lit  the cell of the step: a, b, row, col
   * @param {(slice: readonly number[]) => string} [filled]  path of the cells that hold something
   */
  update(shown, lit, filled) {
    for (const { slice, button, done, dot } of this.slices) {
      attribute(button, "aria-pressed", `${slice[0] === shown[0] && slice[1] === shown[1]}`);
      const here = lit !== null && lit[0] === slice[0] && lit[1] === slice[1];
      attribute(dot, "visibility", here ? "visible" : "hidden");
      if (here) {
        dot.setAttribute("x", String(lit[3]));
        dot.setAttribute("y", String(lit[2]));
      }
      if (filled) attribute(done, "d", filled(slice));
    }
  }
}

/** @param {string} tag @param {Record<string, string>} attributes */
function svgElement(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
