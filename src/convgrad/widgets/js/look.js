// @ts-check
// What is looked at, written in the letters of the book: `y[n,o,p,q]` an output cell, `w[o,c,i,j]`
// a tap, `x[n,c,h,v]` a place of the input, which may lie on its border.  Mirrors sliding_window.py.

import { groupOf, ravel, shapes } from "./conv.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {{name: "x" | "w" | "y", index: number[]}} Look */
/** The slices that are shown: image n, kernel o, and channel c within its group. @typedef {{n: number, o: number, c: number}} Slices */

/** @param {string} text @returns {Look | null} */
export function parseLook(text) {
  const match = /^([xwy])\[(-?\d+),(-?\d+),(-?\d+),(-?\d+)\]$/.exec(text);
  if (!match) return null;
  return { name: /** @type {Look["name"]} */ (match[1]), index: match.slice(2).map(Number) };
}

/** @param {Look | null} look */
export const writeLook = (look) => (look ? `${look.name}[${look.index}]` : "");

/** Whether the geometry has such a cell; of x the border counts too. @param {Geometry} g @param {Look} look */
export function isThere(g, { name, index }) {
  const { x, weight, grad_output } = shapes(g);
  const shape = { x, w: weight, y: grad_output }[name];
  const border = name === "x" ? [[0, 0], [0, 0], ...g.padding] : shape.map(() => [0, 0]);
  return index.every((k, axis) => k >= -border[axis][0] && k < shape[axis] + border[axis][1]);
}

/** The number of an output cell among all of them. @param {Geometry} g @param {readonly number[]} index */
export const placeOf = (g, index) => ravel([...index], shapes(g).grad_output);

/**
 * The slices in which a look lies; what it does not say stays as it was.
 * @param {Geometry} g @param {Look | null} look @param {Slices} before @returns {Slices}
 */
export function slicesOfLook(g, look, { n, o, c }) {
  if (look?.name === "y") [n, o] = look.index;
  if (look?.name === "w") [o, c] = look.index;
  if (look?.name === "x") {
    n = look.index[0];
    c = look.index[1] % g.CG;
    const group = Math.floor(look.index[1] / g.CG);
    if (groupOf(g, o) !== group) o = group * g.OG;
  }
  return { n: Math.min(n, g.N - 1), o: Math.min(o, g.O - 1), c: Math.min(c, g.CG - 1) };
}
