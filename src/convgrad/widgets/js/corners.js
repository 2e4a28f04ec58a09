// @ts-check
// Small words in the corners of a grid's cells: which tap, which factor.

import { attribute } from "./dom.js";

/** @type {WeakMap<import("./grid.js").Grid, Map<string, string>>} what is written there now */
const written = new WeakMap();

/**
 * Writes into the corners of exactly these cells.
 * @param {import("./grid.js").Grid} grid @param {Map<string, string>} corners  by "row,col"
 */
export function annotate(grid, corners) {
  const before = written.get(grid);
  for (const [key, { el }] of grid.cells) {
    const text = corners.get(key);
    if (text) attribute(el, "data-corner", text);
    else if (before?.has(key)) el.removeAttribute("data-corner");
  }
  written.set(grid, corners);
}
