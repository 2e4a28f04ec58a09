// @ts-check
// Two runs of one program: the shares of a number of the result as they arrive, added in float32.

import { indices } from "./conv.js";
import { attribute, fill, h, say } from "./dom.js";
import { NumberGrid } from "./number_grid.js";
import { result } from "./implicit.js";
import { arrivals, noise, runningSums, shareSums, tenths } from "./rounding.js";
import { MATRICES, endWords, nine } from "./thread_words.js";
import { groupLetter, subscript } from "./words.js";

/** @typedef {import("./implicit.js").Operand} Operand */
/**
 * What the view hands over.
 * @typedef {object} Scene
 * @property {import("./conv.js").Geometry} g
 * @property {Record<Operand, {data: number[]}> | null} arrays
 * @property {import("./schedule.js").Schedule} schedule
 * @property {number[]} cell  group, row and column of the number
 * @property {number} seed
 * @property {string} key  another one where anything of this differs
 * @property {number} step
 */

const RUNS = 20; // whose results are counted
const MOST = 400; // numbers of the result that are compared

export class RunsPane {
  /** What was computed, and for which scene. @type {{key: string, value: any}} */
  #kept = { key: "", value: null };
  #about = h("p", { class: "cg-note" });
  #remark = h("p", { class: "cg-note" });
  #another;
  #grid;
  #tables = [1, 2].map((run) => {
    const [heads, body] = [h("tr"), h("tbody")];
    const el = h("div", { class: "cg-run", tabindex: 0, role: "group", "aria-label": `run ${run}` }, h("table", {}, h("caption", {}, `run ${run}`), h("thead", {}, heads), body));
    return { el, heads, body };
  });

  /** @param {(row: number, col: number) => void} choose  another number @param {() => void} again  another two runs */
  constructor(choose, again) {
    this.#grid = new NumberGrid((at, byFocus) => at && byFocus && choose(...at));
    this.#another = h("button", { class: "cg-another", onclick: again }, "another two runs");
    this.el = h("div", { class: "cg-pair" }, this.#grid.el, this.#about, this.#remark, this.#another, h("div", { class: "cg-both" }, ...this.#tables.map(({ el }) => el)));
  }

  /** Shares, orders and sums of the cell, and in which cells the runs differ. @param {Scene} scene */
  #compute({ g, arrays, schedule, cell, seed, key }) {
    if (this.#kept.key === key) return this.#kept.value;
    const { options, parts, down, across, sizes } = schedule;
    const names = /** @type {Operand[]} */ (["x", "weight", "grad_output"]);
    const numbers = /** @type {any} */ (Object.fromEntries(names.map((name) => [name, arrays ? tenths(arrays[name].data) : noise(name)])));
    /** @param {number} row @param {number} col @param {number} runs */
    const at = (row, col, runs) => {
      const tile = (cell[0] * down + Math.floor(row / options.tile[0])) * across + Math.floor(col / options.tile[1]);
      const shares = shareSums(g, schedule, numbers, cell[0], row, col);
      const orders = indices(runs).map((run) => arrivals(schedule, tile, seed + run));
      const added = options.two_passes ? orders.map(() => indices(parts)) : orders;
      return { shares, orders, added, ends: added.map((order) => runningSums(shares, order)[parts - 1]) };
    };
    const few = arrays && sizes.M * sizes.N <= MOST;
    const cells = few ? indices(sizes.M * sizes.N).map((k) => at(Math.floor(k / sizes.N), k % sizes.N, 2).ends) : null;
    this.#kept = { key, value: { ...at(cell[1], cell[2], RUNS), cells } };
    return this.#kept.value;
  }

  /** Draws it; gives back the sentence for the step. @param {Scene} scene @returns {string} */
  draw(scene) {
    const { g, arrays, schedule, cell, step } = scene;
    const { options, parts, sizes } = schedule;
    const { shares, orders, added, ends, cells } = this.#compute(scene);
    const names = MATRICES[options.target];
    const name = subscript(names.result, result(g, options.target, cell[0], cell[1], cell[2]));
    this.#grid.el.hidden = !cells;
    if (cells) {
      const { M, N, groups } = sizes;
      const off = (/** @type {number} */ k) => cells[k][0] !== cells[k][1];
      this.#grid.draw({
        key: "result",
        name: names.result,
        about: `of run 2${groups > 1 ? `, group ${groupLetter(cell[0])}` : ""}`,
        note: `underlined: ${indices(M * N).filter(off).length} of ${M * N} numbers, which differ between the runs`,
        rows: [0, M],
        cols: [0, N],
        at: (row, col) => [cells[row * N + col][1], off(row * N + col) ? "cg-differs" : ""],
        here: cell.slice(1),
      });
      this.el.style.setProperty("--across", `${N}`);
    }
    say(this.#about, `${arrays ? "The numbers of both arrays, each divided by 10" : "Numbers by a formula, from −1 to 1"}, as float32: the shares of ${name}, as they arrive.`);
    const apart = options.two_passes && parts > 1;
    this.#tables.forEach(({ el, heads, body }, run) => {
      const sums = runningSums(shares, added[run]);
      fill(heads, ...(apart ? ["stored", "added", "sum"] : ["arrives", "share", "sum"]).map((text) => h("th", { scope: "col" }, text)));
      fill(
        body,
        ...indices(parts).map((k) => {
          const stored = k < step;
          const done = apart ? parts + k < step : stored;
          const now = step === k + 1 || (apart && step === parts + k + 1);
          const texts = [stored && `share ${orders[run][k]}`, apart ? done && `share ${k}` : stored && nine(shares[orders[run][k]]), done && nine(sums[k])];
          return h("tr", { class: now && "cg-now" }, ...texts.map((text) => h("td", {}, text || "·")));
        }),
      );
      const now = /** @type {HTMLElement | null} */ (body.querySelector(".cg-now"));
      el.scrollTop = now ? now.offsetTop - el.clientHeight / 2 : 0;
    });
    attribute(this.#another, "aria-disabled", `${parts < 2}`);
    say(this.#remark, parts > 2 ? "" : parts < 2 ? "One share alone has no order: split K into 3 or more." : "Two shares give one sum in either order, a + b is b + a. From three on the order counts.");
    if (!step) return `{result ${name}} is the sum of ${parts === 1 ? "one share" : `${parts} shares`}. Press play, and they arrive.`;
    if (step === parts * (apart ? 2 : 1)) return `{result ${name}}: ${endWords(ends, new Set(ends).size, apart)}`;
    if (apart && step <= parts) return `Shares wait apart: ${step} of ${parts} are there, in an order that is nobody’s to say.`;
    const k = (apart ? step - parts : step) - 1;
    return [0, 1].map((run) => `run ${run + 1} adds share ${added[run][k]}: {result ${nine(runningSums(shares, added[run])[k])}}`).join("; ");
  }
}
