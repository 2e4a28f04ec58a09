// @ts-check
// The two pictures of ThreadGrid: the product cut into tiles, and what every multiprocessor does
// over time.  Each is an SVG of a few paths, however many tiles there are.

import { attribute, fill, freshId, h, say } from "./dom.js";
import { ARRAYS, MATRICES, blockIn, programName } from "./thread_words.js";
import { OPERANDS } from "./implicit.js";
import { groupLetter } from "./words.js";

/** @typedef {import("./schedule.js").Schedule} Schedule */
/** @typedef {import("./schedule.js").Run} Run */
/** A table that says the same; tables.js reads it. @typedef {import("./tables.js").Plain} Plain */

const SPACE = 26; // between the factors and the product
const TALLEST = 270; // pixels of the picture of the product
const HEAD = 16; // pixels above it, for a name
const LEAST = 3.2; // pixels of a number, where all is drawn to one scale
const LABELS = 34; // pixels before the rows of time

/** @template {keyof SVGElementTagNameMap} Tag @param {Tag} tag @param {Record<string, string | number>} [attributes] @param {...(Node | string)} children */
function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** @param {number} k */
const short = (k) => Math.round(k * 100) / 100;
/** @param {number} x @param {number} y @param {number} w @param {number} h */
const box = (x, y, w, h) => `M${short(x)} ${short(y)}h${short(w)}v${short(h)}h${short(-w)}z`;

/** Lines that cut a rectangle into blocks, where they would not lie too close. @param {number} x @param {number} y @param {number} w @param {number} h @param {number} rows @param {number} cols */
function cuts(x, y, w, h, rows, cols) {
  let d = "";
  if (h / rows >= 4) for (let k = 1; k < rows; k++) d += `M${short(x)} ${short(y + (k * h) / rows)}h${short(w)}`;
  if (w / cols >= 4) for (let k = 1; k < cols; k++) d += `M${short(x + (k * w) / cols)} ${short(y)}v${short(h)}`;
  return d;
}

/** Which share of each tile of a group is done, from 0 to 1. @param {Schedule} schedule @param {number} step @param {number} group */
function doneOf(schedule, step, group) {
  const done = new Map();
  for (const { program, start, end } of schedule.runs) {
    const { tile, group: its } = schedule.program(program);
    if (its !== group) continue;
    const part = Math.min(Math.max(step - start, 0), end - start) / schedule.steps;
    done.set(tile, (done.get(tile) ?? 0) + part);
  }
  return done;
}

/** The paths of the picture of the product, from below, by their classes. */
const LAYERS = ["beyond", "band cg-of-left", "band cg-of-top", "now cg-of-left", "now cg-of-top", "done", "cuts", "edge cg-of-left", "edge cg-of-top", "edge cg-of-result", "here"];

/** The product: left factor, right factor above, the result cut into tiles. */
export class ProductPicture {
  #paths = LAYERS.map((kind) => s("path", { class: `cg-${kind}` }));
  #texts = s("g");
  #svg = s("svg", { "aria-hidden": "true" }, ...this.#paths, this.#texts);
  #note = h("p", { class: "cg-note" });
  /** Which tile lies at a place of the picture, −1 for none. @type {(x: number, y: number) => number} */
  #tileAt = () => -1;

  /** @param {(tile: number) => void} pick */
  constructor(pick) {
    this.el = h("div", { class: "cg-product" }, this.#svg, this.#note);
    this.#svg.addEventListener("click", ({ offsetX, offsetY }) => {
      const tile = this.#tileAt(offsetX, offsetY);
      if (tile >= 0) pick(tile);
    });
  }

  /**
   * @param {Schedule} schedule @param {number} step @param {Run | null} run  the program that is watched
   * @param {number} group  the one that is drawn @param {number} room  in pixels
   */
  draw(schedule, step, run, group, room) {
    const { down, across, steps, sizes, options } = schedule;
    const { target, tile } = options;
    const { M, N, K, groups } = sizes;
    const [tM, tN, tK] = tile;
    const [EM, EN, EK] = [down * tM, across * tN, steps * tK]; // with what hangs over
    const all = Math.min(14, (room - SPACE) / (EK + EN), TALLEST / (EM + EK));
    const half = (room - SPACE) / 2;
    // pixels of a row, of a column, of a product across and down
    const [m, n, k, deep] = all >= LEAST ? [all, all, all, all] : [110 / EM, half / EN, half / EK, 110 / EK];
    const [x, y] = [k * EK + SPACE, deep * EK + SPACE + HEAD];
    /** Rectangles in the units of the matrices. @type {(col: number, row: number, wide: number, high: number) => string} */
    const left = (col, row, wide, high) => box(col * k, y + row * m, wide * k, high * m);
    /** @type {typeof left} */
    const top = (col, row, wide, high) => box(x + col * n, HEAD + row * deep, wide * n, high * deep);
    /** @type {typeof left} */
    const tiles = (col, row, wide, high) => box(x + col * n, y + row * m, wide * n, high * m);
    attribute(this.#svg, "width", `${room}`);
    attribute(this.#svg, "height", `${short(y + EM * m + 22)}`);
    this.#tileAt = (px, py) => {
      const [row, col] = [Math.floor((py - y) / (m * tM)), Math.floor((px - x) / (n * tN))];
      return row < 0 || col < 0 || row >= down || col >= across ? -1 : (group * down + row) * across + col;
    };
    const done = [...doneOf(schedule, step, group)].map(([number, part]) => {
      const { row, col } = schedule.program(number);
      return part ? tiles(col * tN, (row + 1 - part) * tM, tN, part * tM) : "";
    });
    const own = ["", "", "", "", ""];
    if (run) {
      const { row, col, first, end } = schedule.program(run.program);
      const block = blockIn(schedule, run, Math.max(0, step - 1));
      own[0] = left(first * tK, row * tM, (end - first) * tK, tM);
      own[1] = top(col * tN, first * tK, tN, (end - first) * tK);
      // where blocks are thinner than a line, a line
      own[2] = left(block * tK, row * tM, Math.max(tK, 2 / k), tM);
      own[3] = top(col * tN, block * tK, tN, Math.max(tK, 2 / deep));
      own[4] = tiles(col * tN, row * tM, tN, tM);
    }
    const lines = cuts(0, y, EK * k, EM * m, down, steps) + cuts(x, HEAD, EN * n, EK * deep, steps, across) + cuts(x, y, EN * n, EM * m, down, across);
    const drawn = [left(0, 0, EK, EM) + top(0, 0, EN, EK) + tiles(0, 0, EN, EM), ...own.slice(0, 4), done.join(""), lines, left(0, 0, K, M), top(0, 0, N, K), tiles(0, 0, N, M), own[4]];
    drawn.forEach((d, layer) => attribute(this.#paths[layer], "d", d));
    const names = MATRICES[target];
    const [keyLeft, keyTop] = OPERANDS[target].map((name) => ARRAYS[name][0]);
    attribute(this.el, "data-left", keyLeft);
    attribute(this.el, "data-top", keyTop);
    /** @param {number} px @param {number} py @param {string} kind @param {string | number} text */
    const label = (px, py, kind, text) => s("text", { x: short(px), y: short(py), class: `cg-${kind}` }, `${text}`);
    const texts = [label(0, y - 7, `ink-${keyLeft}`, names.left), label(x, HEAD - 5, `ink-${keyTop}`, names.right), label(x, y + EM * m + 15, "ink-result", names.result)];
    if (groups > 1) texts.push(label(0, 12, "faint", `group ${groupLetter(group)}`));
    if (n * tN >= 20 && m * tM >= 14 && down * across <= 80) {
      for (let at = 0; at < down * across; at++) {
        texts.push(label(x + ((at % across) + 0.5) * n * tN, y + (Math.floor(at / across) + 0.5) * m * tM + 4, "tile-name", group * down * across + at));
      }
    }
    fill(this.#texts, ...texts);
    const overhang = EM > M || EN > N || EK > K;
    say(this.#note, [all < LEAST && "not to scale", overhang && "grey: beyond the matrix"].filter(Boolean).join(" · "));
  }
}

/** The timeline: a row for each multiprocessor. */
export class TimePicture {
  #bars = s("path", { class: "cg-bars" });
  #done = s("path", { class: "cg-done" });
  #lines = s("path", { class: "cg-cuts" });
  #texts = s("g");
  #svg = s("svg", { "aria-hidden": "true" }, this.#bars, this.#done, this.#lines, this.#texts);
  #needle = h("div", { class: "cg-needle", "aria-hidden": "true" });
  #names = h("div", { class: "cg-row-names", "aria-hidden": "true" });
  #list = h("div", { class: "cg-rows", role: "listbox", tabindex: 0, "aria-label": "multiprocessors over time: up and down choose one" });
  #axis = h("div", { class: "cg-axis", "aria-hidden": "true" }, h("span", {}, "0"), h("span", {}, "steps"), h("span"));
  /** @type {Plain} */
  #plain = { caption: "", heads: [], rows: [] };
  /** @type {Schedule | null} what the bars are of */
  #drawn = null;
  #width = 0;
  #stem = freshId("row");
  #watched = 0;
  /** Height of a row, gap between two, and width of a step. */
  #scale = [0, 0, 0];

  /** @param {(processor: number) => void} watch */
  constructor(watch) {
    this.el = h("div", { class: "cg-time" }, this.#names, h("div", { class: "cg-field-time" }, this.#svg, this.#needle, this.#list), this.#axis);
    Object.assign(this.el, { plain: () => this.#plain });
    this.#list.addEventListener("click", (event) => {
      const at = /** @type {HTMLElement} */ (event.target).closest("[role=option]");
      if (at instanceof HTMLElement) watch(Number(at.dataset.k));
    });
    this.#list.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 }[event.key];
      if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      watch(Math.min(Math.max(this.#watched + by, 0), this.#list.childElementCount - 1));
    });
  }

  /** Bars and rows, once for a schedule. @param {Schedule} schedule @param {number} width */
  #build(schedule, width) {
    const { rows, time } = schedule;
    const count = rows.length;
    const side = count <= 8 ? 32 : Math.max(2, Math.min(22, Math.floor(400 / count)));
    const gap = side >= 8 ? 2 : side > 2 ? 0.6 : 0;
    const across = width / Math.max(1, time);
    this.#scale = [side, gap, across];
    [this.#drawn, this.#width] = [schedule, width];
    const height = count * side;
    attribute(this.#svg, "width", `${width}`);
    attribute(this.#svg, "height", `${height}`);
    this.el.style.setProperty("--side", `${side}px`);
    let bars = "";
    let lines = "";
    /** @type {Node[]} */
    const texts = [];
    rows.forEach((runs, k) => {
      for (const { program, start, end } of runs) {
        const [x, wide] = [start * across, (end - start) * across];
        bars += box(x, k * side + gap / 2, wide, side - gap);
        if (wide >= 4 && start) lines += `M${short(x)} ${k * side + gap / 2}v${side - gap}`;
        const { tile, part } = schedule.program(program);
        const name = schedule.parts > 1 ? `${tile}·${part}` : `${tile}`;
        if (side >= 14 && wide >= 7 * name.length + 6) texts.push(s("text", { x: short(x + wide / 2), y: short((k + 0.5) * side + 4) }, name));
      }
    });
    attribute(this.#bars, "d", bars);
    attribute(this.#lines, "d", lines);
    fill(this.#texts, ...(texts.length <= 400 ? texts : []));
    fill(this.#list, ...rows.map((_, k) => h("div", { role: "option", id: `${this.#stem}-${k}`, "data-k": k })));
    rows.forEach((runs, k) => attribute(this.#list.children[k], "aria-label", `multiprocessor ${k}: ${rowWords(schedule, runs)}`));
    const named = (/** @type {number} */ k) => side >= 11 || k === 0 || k === count - 1;
    fill(this.#names, ...rows.map((_, k) => h("span", {}, named(k) ? `${k}` : "")));
    say(/** @type {Element} */ (this.#axis.lastChild), time.toLocaleString("en"));
    this.#plain = {
      caption: "multiprocessors over time",
      heads: ["does"],
      rows: rows.map((runs, k) => [`multiprocessor ${k}`, rowWords(schedule, runs)]),
    };
  }

  /** @param {Schedule} schedule @param {number} step @param {number} watched @param {number} room */
  draw(schedule, step, watched, room) {
    const width = Math.max(120, room - LABELS);
    if (this.#drawn !== schedule || this.#width !== width) this.#build(schedule, width);
    const [side, gap, across] = this.#scale;
    let done = "";
    schedule.rows.forEach((runs, k) => {
      // what is finished lies without a gap: one bar for all of it
      const reach = runs.length ? Math.min(step, runs[runs.length - 1].end) : 0;
      if (reach) done += box(0, k * side + gap / 2, reach * across, side - gap);
    });
    attribute(this.#done, "d", done);
    this.#needle.style.transform = `translateX(${short(step * across)}px)`;
    const list = this.#list;
    if (watched !== this.#watched || !list.querySelector("[aria-selected=true]")) {
      list.children[this.#watched]?.setAttribute("aria-selected", "false");
      this.#watched = watched;
      list.children[watched]?.setAttribute("aria-selected", "true");
      attribute(list, "aria-activedescendant", `${this.#stem}-${watched}`);
    }
  }
}

/** What a multiprocessor does, in words. @param {Schedule} schedule @param {Run[]} runs */
function rowWords(schedule, runs) {
  const words = runs.slice(0, 6).map(({ program, start, end }) => `${programName(schedule, program)}, steps ${start} to ${end}`);
  if (runs.length > 6) words.push(`and ${runs.length - 6} more`);
  const end = runs.at(-1)?.end ?? 0;
  if (end < schedule.time) words.push(end ? "then idle" : "idle all the time");
  return words.join("; ");
}
