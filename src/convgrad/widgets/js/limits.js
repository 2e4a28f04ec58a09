// @ts-check
// What can be drawn and answered within a frame; the limits themselves come from Python.

import { GeometryError, shapes } from "./conv.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {{cells: number, products: number}} Limits */

/** @param {readonly number[]} sizes */
export const product = (sizes) => sizes.reduce((all, size) => all * size, 1);

/**
 * The geometry, or a GeometryError where there is nothing to draw or too much.
 * @param {Geometry} g @param {Limits | undefined} limits @param {string} [drawer]
 */
export function small(g, limits, drawer = "player") {
  if (!g.N) {
    throw new GeometryError(`the batch is empty, N = 0: the ${drawer} needs at least one image`);
  }
  const cells = Math.max(...Object.values(shapes(g)).map(product));
  const products = product(shapes(g).grad_output) * g.CG * g.KH * g.KW;
  if (limits && (cells > limits.cells || products > limits.products)) {
    const [some, most, large, largest] = [products, limits.products, cells, limits.cells].map((k) =>
      k.toLocaleString("en"),
    );
    throw new GeometryError(
      `this has ${some} products and arrays of up to ${large} cells: the ${drawer} draws up to ` +
        `${most} products and ${largest} cells; take fewer channels, or a smaller image`,
    );
  }
  return g;
}
