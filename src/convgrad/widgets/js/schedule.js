// @ts-check
// Who computes which tile, and when: a product of matrices shared out among a GPU's processors.
// Mirrors convgrad's schedule.py, and is a model as that is: a block of K takes one step.

import { shapes } from "./conv.js";
import { gemm } from "./implicit.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./implicit.js").Target} Target */
/** Rows, columns, and products of a step. @typedef {[number, number, number]} Tile */
/** @typedef {{target: Target, tile: Tile, splits: number, processors: number, two_passes: boolean}} Options */
/** @typedef {{number: number, tile: number, part: number, group: number, row: number, col: number, first: number, end: number}} Program */
/** A program on its processor. @typedef {{program: number, processor: number, start: number, end: number}} Run */
/** @typedef {ReturnType<typeof scheduleOf>} Schedule */

/** How many blocks of `size` hold the `whole`. @param {number} whole @param {number} size */
const blocks = (whole, size) => Math.ceil(whole / size);

/** How the product is cut. @param {Geometry} g @param {Options} options */
export function cut(g, { target, tile, splits }) {
  const sizes = gemm(g, target);
  const [down, across, steps] = [sizes.M, sizes.N, sizes.K].map((size, axis) => blocks(size, tile[axis]));
  const tiles = sizes.groups * down * across;
  const share = Math.max(1, blocks(steps, splits));
  const parts = Math.max(1, blocks(steps, share));
  return { sizes, down, across, tiles, steps, share, parts, programs: tiles * parts };
}

/** @param {Geometry} g @param {Options} options */
export function scheduleOf(g, options) {
  const { splits, processors, two_passes: apart } = options;
  const pieces = cut(g, options);
  const { sizes, down, across, tiles, steps, share, parts, programs } = pieces;
  /** @param {number} number @returns {Program} */
  const program = (number) => {
    const tile = number % tiles;
    const part = Math.floor(number / tiles);
    const place = tile % (down * across);
    const first = part * share;
    return {
      number,
      tile,
      part,
      group: Math.floor(tile / (down * across)),
      row: Math.floor(place / across),
      col: place % across,
      first,
      end: Math.min(first + share, steps),
    };
  };
  // whoever is free first takes the next one
  const free = new Int32Array(processors);
  /** @type {Run[]} */
  const runs = [];
  /** @type {Run[][]} of each processor, one after the other */
  const rows = Array.from({ length: processors }, () => []);
  for (let number = 0; number < programs; number++) {
    let processor = 0;
    for (let k = 1; k < processors; k++) if (free[k] < free[processor]) processor = k;
    const start = free[processor];
    const { first, end } = program(number);
    const run = { program: number, processor, start, end: start + end - first };
    free[processor] = run.end;
    runs.push(run);
    rows[processor].push(run);
  }
  const time = free.reduce((most, each) => Math.max(most, each), 0);
  const waves = blocks(programs, processors);
  const numbers = sizes.groups * sizes.M * sizes.N;
  return {
    ...pieces,
    options,
    program,
    runs,
    rows,
    time,
    busy: time ? (tiles * steps) / (processors * time) : 0,
    waves,
    lastWave: programs - (waves - 1) * processors,
    numbers,
    workspace: splits > 1 && apart ? parts * numbers * 4 : 0,
    atomics: splits > 1 && !apart ? parts : 0,
  };
}

/** What a processor is doing in a step, null while it is idle. @param {Schedule} schedule @param {number} processor @param {number} step @returns {Run | null} */
export const runAt = ({ rows }, processor, step) => rows[processor].find(({ start, end }) => start <= step && step < end) ?? null;

/** Whether numbers of a convolution are drawn one by one. @param {Geometry} g @param {{cells: number, products: number}} limits */
export function isDrawn(g, limits) {
  const sizes = Object.values(shapes(g)).map((shape) => shape.reduce((all, size) => all * size, 1));
  return Math.max(...sizes) <= limits.cells && sizes[2] * g.CG * g.KH * g.KW <= limits.products;
}

/** The tile and the processors with which a convolution is shown first; the same in thread_grid.py. @param {Geometry} g @param {Target} target @param {boolean} drawn */
export function usual(g, target, drawn) {
  if (!drawn) return { tile: [128, 128, 32], processors: 132, splits: 1 };
  const { M, N, K } = gemm(g, target);
  const tile = [M, N, K].map((size, axis) => Math.min([2, 4, 4][axis], 2 ** Math.ceil(Math.log2(size))));
  return { tile, processors: 4, splits: 1 };
}
