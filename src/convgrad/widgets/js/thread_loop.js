// @ts-check
// The K loop of one program: the slices of both factors that it holds, its tile, and where the
// slice of x (or of g) lies in the image.

import { indices, ravel } from "./conv.js";
import { fill, h, tinted } from "./dom.js";
import { OPERANDS, left, right, shapeOf } from "./implicit.js";
import { inked } from "./inked.js";
import { NumberGrid } from "./number_grid.js";
import { ARRAYS, MATRICES, addressWords, blockIn, programName, sumWords } from "./thread_words.js";
import { subscript } from "./words.js";

/** @typedef {"left" | "right" | "result" | "map"} Place */
/** What is looked at: a matrix, and a row and a column of it. @typedef {{place: Place, row: number, col: number}} Spot */
/** @typedef {import("./implicit.js").Operand} Operand */
/**
 * What the view hands over.
 * @typedef {object} Scene
 * @property {import("./conv.js").Geometry} g
 * @property {Record<Operand, {data: number[]}> | null} arrays
 * @property {import("./schedule.js").Schedule} schedule
 * @property {import("./schedule.js").Run | null} run  the program that is watched
 * @property {number} watched
 * @property {number} step
 * @property {Spot | null} spot
 */

/** Tiles that are drawn number by number: at most so many rows, columns, and products of a step. */
const DRAWN = [8, 16, 16];

export class LoopPane {
  /** @type {Record<Place, NumberGrid>} */
  #grids;

  /** @param {(spot: Spot | null, byFocus: boolean) => void} look */
  constructor(look) {
    const grid = (/** @type {Place} */ place) => new NumberGrid((at, byFocus) => look(at && { place, row: at[0], col: at[1] }, byFocus));
    this.#grids = { map: grid("map"), right: grid("right"), left: grid("left"), result: grid("result") };
    for (const [place, { el }] of Object.entries(this.#grids)) el.dataset.at = place;
    this.falk = h("div", { class: "cg-tile-falk" }, ...Object.values(this.#grids).map(({ el }) => el));
    this.el = h("div", { class: "cg-loop" });
  }

  /** Draws it; gives back what is said of the spot, "" for nothing. @param {Scene} scene */
  draw({ g, arrays, schedule, run, watched, step, spot }) {
    const { options, sizes } = schedule;
    const { target, tile } = options;
    /** @param {...(Node | string)} words */
    const only = (...words) => {
      fill(this.el, h("p", {}, ...words));
      return "";
    };
    if (!run) return only(`Multiprocessor ${watched} gets no program: there are ${schedule.programs} for ${options.processors}.`);
    const { group, row: a, col: b, first, tile: number } = schedule.program(run.program);
    const block = blockIn(schedule, run, step - 1);
    const [m0, n0, k0] = [a * tile[0], b * tile[1], block * tile[2]];
    // the factor that is im2col's (or, for grad_input, its mirror), and its array
    const side = target === "weight" ? "right" : "left";
    const name = OPERANDS[target][side === "left" ? 0 : 1];
    /** @param {Operand} which @param {number} at */
    const valueAt = (which, at) => arrays?.[which].data[at] ?? null;
    /** @param {"left" | "right"} which @param {number} row @param {number} col */
    const words = (which, row, col) => addressWords(g, target, which, group, row, col, valueAt);
    if (!arrays || tile.some((size, axis) => size > DRAWN[axis])) {
      const why = arrays ? `Tiles of up to ${DRAWN[0]} rows and ${DRAWN[1]} columns and steps of ${DRAWN[2]} are drawn number by number.` : "This convolution is too large to be drawn number by number.";
      const address = side === "right" ? words(side, k0, n0) : words(side, m0, k0);
      return only(`${why} Multiprocessor ${watched} makes ${programName(schedule, run.program)}; the first entry of its slice: `, ...tinted(inked(address)), ".");
    }
    /** An entry of a factor: its index, null for the number zero, and its value; null beyond the matrix. @param {"left" | "right"} which @param {number} row @param {number} col */
    const entry = (which, row, col) => {
      if (which === "left" ? row >= sizes.M || col >= sizes.K : row >= sizes.K || col >= sizes.N) return null;
      const { index } = (which === "left" ? left : right)(g, target, group, row, col);
      const home = OPERANDS[target][which === "left" ? 0 : 1];
      return { index, value: index ? Number(valueAt(home, ravel(index, shapeOf(g, home)))) : 0 };
    };
    const from = first * tile[2];
    const until = Math.min((first + Math.max(0, Math.min(step, run.end) - run.start)) * tile[2], sizes.K);
    /** @param {number} row @param {number} col */
    const sumAt = (row, col) => {
      if (row >= sizes.M || col >= sizes.N) return null;
      let sum = 0;
      for (let k = from; k < until; k++) sum += Number(entry("left", row, k)?.value) * Number(entry("right", k, col)?.value);
      return sum;
    };
    const names = MATRICES[target];
    const [keyLeft, keyRight] = OPERANDS[target].map((which) => ARRAYS[which][0]);
    const here = (/** @type {Place} */ place) => (spot?.place === place ? [spot.row, spot.col] : null);
    /** @type {["left" | "right" | "result", string, string, [number, number], [number, number]][]} */
    const sheets = [
      ["left", keyLeft, `slice, ${tile[0]} × ${tile[2]}`, [m0, tile[0]], [k0, tile[2]]],
      ["right", keyRight, `slice, ${tile[2]} × ${tile[1]}`, [k0, tile[2]], [n0, tile[1]]],
      ["result", "result", `tile ${number}, sum so far`, [m0, tile[0]], [n0, tile[1]]],
    ];
    for (const [which, key, about, rows, cols] of sheets) {
      this.#grids[which].draw({
        key,
        name: names[which],
        about,
        rows,
        cols,
        at: (row, col) => {
          if (which === "result") {
            const sum = sumAt(row, col);
            return [sum, sum === null ? "cg-off" : ""];
          }
          const it = entry(which, row, col);
          // whether it takes part in the number of the tile that is looked at
          const meets = spot?.place === "result" && (which === "left" ? spot.row === row : spot.col === col);
          return [it && it.value, `${it?.index ? "" : "cg-off"} ${meets ? "cg-with" : ""}`];
        },
        here: here(which),
      });
    }
    // where the slice lies
    const [rows, cols] = side === "right" ? [[k0, tile[2]], [n0, tile[1]]] : [[m0, tile[0]], [k0, tile[2]]];
    const all = indices(rows[1]).flatMap((r) => indices(cols[1]).map((c) => entry(side, r + rows[0], c + cols[0])?.index));
    const entries = all.filter((index) => index !== null && index !== undefined);
    const looked = spot?.place === side ? entry(side, spot.row, spot.col)?.index : null;
    const [n, c] = looked ?? entries[0] ?? [0, 0];
    const lies = entries.filter((index) => index[0] === n && index[1] === c).map(([, , h, v]) => `${h},${v}`);
    const shape = shapeOf(g, name);
    const [key, letter] = ARRAYS[name];
    this.#grids.map.draw({
      key,
      name: subscript(letter, [n, c]),
      about: "in memory",
      note: `${lies.length} of the slice’s ${entries.length} entries lie here`,
      rows: [0, shape[2]],
      cols: [0, shape[3]],
      at: (row, col) => [valueAt(name, ravel([n, c, row, col], shape)), lies.includes(`${row},${col}`) ? "cg-partner" : ""],
      here: looked?.slice(2) ?? here("map"),
    });
    this.falk.style.setProperty("--across", `${tile[1] + tile[2]}`);
    this.falk.style.setProperty("--map", `${shape[3]}`);
    if (this.el.firstChild !== this.falk) fill(this.el, this.falk);
    if (!spot) return "";
    const { place, row, col } = spot;
    if (place === "map") {
      const index = [n, c, row, col];
      return `{${key} ${subscript(letter, index)}}, number ${ravel(index, shape)} of ${letter} in memory`;
    }
    if (place === "result") {
      const sum = sumAt(row, col);
      return sum === null ? "beyond the matrix: this part of the tile is not stored" : sumWords(g, schedule, group, row, col, sum, from, until);
    }
    return entry(place, row, col) ? words(place, row, col) : "beyond the matrix: nothing is read, and 0 is taken";
  }
}
