// @ts-check
// One moment of the geometry explorer written into its layout.

import { cellAt, paddedSize, source, spanOf } from "./conv.js";
import { attribute, fill, h, say } from "./dom.js";
import { ends, formulas, isOneDimensional, mapWords, spotName, spotWords } from "./explorer_words.js";
import { readCounts, readersOf, table } from "./places.js";
import { formatNumber } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./explorer_layout.js").Layout} Layout */
/** @typedef {import("./explorer_words.js").Spot} Spot */
/** @typedef {import("./sheet.js").Sheet} Sheet */
/** @typedef {ReturnType<typeof readersOf>} Readers */
/**
 * @typedef {object} Moment
 * @property {Geometry} g
 * @property {boolean} transposed
 * @property {boolean} often  whether cells of x say how often they are read
 * @property {Spot | null} spot  what is looked at
 * @property {boolean} one  whether there is one axis
 */

/** @type {import("./grid.js").Border} */
const NO_BORDER = [
  [0, 0],
  [0, 0],
];

/** @param {Layout} ui @param {Omit<Moment, "one">} seen */
export function draw(ui, seen) {
  const { g, transposed, often, spot } = seen;
  const one = isOneDimensional(g);
  const moment = { ...seen, one };
  ui.axes.show(one ? "1" : "2");
  ui.ways.show(transposed ? "1" : "");
  ui.views.show(often ? "uses" : "source");
  ui.forms.forEach(({ el }, k) => (el.hidden = one === Boolean(k)));
  ui.root.classList.toggle("cg-one", one);
  say(ui.sign, transposed ? "←" : "→");
  say(ui.x.words, transposed ? "output, and the border that is cropped" : "input with its border");
  say(ui.y.words, transposed ? "input" : "output");
  drawInput(ui, moment);
  drawOutput(ui, moment);
  const [sentence, ...lines] = spot
    ? spotWords(g, spot, transposed)
    : [mapWords(g, transposed), "Point at a cell of x or of y, or go to it by Tab and arrow keys."];
  say(ui.said, sentence);
  fill(ui.lines, ...lines.filter(Boolean).map((line) => h("p", {}, line)));
  const names = one ? [""] : ["rows", "columns"];
  const sizes = formulas(g, transposed).map((axis, k) =>
    h("div", {}, names[k] && h("b", {}, names[k]), ...axis.map((line) => h("p", {}, line))),
  );
  fill(ui.sizes, ...sizes);
}

/** @param {Layout} ui @param {Moment} moment */
function drawInput({ x, arcs, arrow }, { g, often, spot, one }) {
  const [height, width] = paddedSize(g);
  const [[top], [left]] = g.padding;
  const [rows, cols] = readCounts(g);
  const most = Math.max(...rows) * Math.max(...cols);
  const [bottom, right] = ends(g);
  x.shape(height, width, NO_BORDER, false);
  attribute(x.grid.body, "data-from", `${[-top, -left]}`);
  x.grid.label("x, padded input: arrow keys move, each cell shows what reads it");
  /** @type {number[][]} */
  const border = [];
  /** @type {number[][]} */
  const over = [];
  for (const [row, col] of table(height, width)) {
    const cell = x.grid.cells.get(`${row},${col}`);
    if (!cell) continue;
    const { el } = cell;
    const inside = row >= top && col >= left && row < top + g.H && col < left + g.W;
    if (!inside) border.push([row, col]);
    if (row >= bottom || col >= right) over.push([row, col]);
    const count = rows[row] * cols[col];
    const read = cellAt(g, row - top, col - left);
    const index = read && (one ? read.slice(1) : read).join(",");
    const text = often ? formatNumber(count) : (index ?? "0");
    write(x, row, col, text);
    const name = spotName(g, "x", [row - top, col - left]);
    const words = often ? `read ${count} time${count === 1 ? "" : "s"}` : read ? `reads ${spotName(g, "x", read)}` : "reads 0";
    attribute(el, "aria-label", `${name}, ${words}${inside ? "" : ", border"}`);
    attribute(el, "style", `--part:${often && most ? Math.sqrt(count / most).toFixed(3) : 0}`);
  }
  x.grid.mark("cg-on-border", border);
  x.grid.mark("cg-over", over);
  const here = spot?.name === "x" ? [spot.index[0] + top, spot.index[1] + left] : null;
  x.grid.point(here);
  /** @type {Map<string, string>} */
  const corners = new Map();
  if (spot?.name === "y") {
    for (const [i, j] of table(g.KH, g.KW)) {
      const [a, b] = source(g, ...spot.index, i, j);
      corners.set(`${a + top},${b + left}`, one ? `w${j}` : `${i},${j}`);
    }
    const [a, b] = source(g, ...spot.index, 0, 0);
    x.outline([a + top, b + left], spanOf(g));
  } else x.outline(null);
  x.annotate(corners);
  x.light([...corners.keys()].map((key) => key.split(",").map(Number)));
  if (one) drawArcs(arcs, g);
  arcs.svg.classList.toggle("cg-none", !one || g.padding_mode === "zeros");
  drawArrow(arrow, g, spot);
  const notes = [];
  if (border.length) notes.push(`hatched: ${g.padding_mode === "zeros" ? "zero" : g.padding_mode} padding`);
  if (over.length) notes.push("crossed out: left over");
  say(x.note, notes.join(" · "));
}

/** @typedef {ReturnType<typeof import("./dom.js").drawing>} Drawing */

/** Along one axis: arcs from every cell of the border to the cell that it copies. @param {Drawing} arcs @param {Geometry} g */
function drawArcs({ svg, path }, g) {
  const [, width] = paddedSize(g);
  const [, [left]] = g.padding;
  svg.setAttribute("viewBox", `0 0 ${width} 2`);
  svg.style.setProperty("--cols", String(width));
  const drawn = table(1, width).map(([, at]) => {
    const cell = cellAt(g, 0, at - left);
    if (!cell || cell[1] === at - left) return "";
    const [from, to] = [at + 0.5, cell[1] + left + 0.5];
    const high = 1.5 - Math.min(1.3, Math.abs(from - to) / 4);
    return `M${from} 2C${from} ${high} ${to} ${high} ${to} 1.95m-.14 -.25l.14 .25l.14 -.25`;
  });
  attribute(path, "d", drawn.join(""));
}

/** From the cell of the border that is looked at to the cell that it copies. @param {Drawing} arrow @param {Geometry} g @param {Spot | null} spot */
function drawArrow({ svg, path }, g, spot) {
  const [height, width] = paddedSize(g);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const cell = spot?.name === "x" ? cellAt(g, ...spot.index) : null;
  if (!spot || !cell || `${cell}` === `${spot.index}`) return attribute(path, "d", "");
  const [[top], [left]] = g.padding;
  const [fromY, fromX] = [spot.index[0] + top + 0.5, spot.index[1] + left + 0.5];
  const [toY, toX] = [cell[0] + top + 0.5, cell[1] + left + 0.5];
  const angle = Math.atan2(toY - fromY, toX - fromX);
  const barb = (/** @type {number} */ turn) =>
    `L${toX - 0.4 * Math.cos(angle + turn)} ${toY - 0.4 * Math.sin(angle + turn)}`;
  attribute(path, "d", `M${fromX} ${fromY}L${toX} ${toY}${barb(0.5)}M${toX} ${toY}${barb(-0.5)}`);
}

/** @param {Layout} ui @param {Moment} moment */
function drawOutput({ y }, moment) {
  const { g, spot, one } = moment;
  const readers = spot?.name === "x" ? readersOf(g, ...spot.index) : [];
  if (one) drawWindows(y, moment, readers);
  else drawMap(y, moment, readers);
  say(y.note, one ? `OW = ${g.OW} windows, one a row` : `OH×OW = ${g.OH}×${g.OW} cells`);
}

/** The output cells, with the taps through which each reads what is looked at. @param {Sheet} y @param {Moment} moment @param {Readers} readers */
function drawMap(y, { g, spot }, readers) {
  y.shape(g.OH, g.OW, NO_BORDER, false);
  attribute(y.grid.body, "data-from", "0,0");
  y.grid.label("y, output: arrow keys move, each cell shows its window");
  for (const [p, q] of table(g.OH, g.OW)) write(y, p, q, `${p},${q}`);
  y.grid.point(spot?.name === "y" ? spot.index : null);
  /** @type {Map<string, string>} */
  const corners = new Map();
  for (const { p, q, i, j } of readers) {
    const before = corners.get(`${p},${q}`);
    corners.set(`${p},${q}`, `${before ? `${before} ` : "w"}${i},${j}`);
  }
  y.annotate(corners);
  y.light(readers.map(({ p, q }) => [p, q]));
  y.grid.mark("cg-tap", []);
}

/** Along one axis: a row for every window, its taps under the places that they read. @param {Sheet} y @param {Moment} moment @param {Readers} readers */
function drawWindows(y, { g, spot }, readers) {
  const [, width] = paddedSize(g);
  const [, [left]] = g.padding;
  y.shape(g.OW, width, NO_BORDER, false);
  attribute(y.grid.body, "data-from", `${[0, -left]}`);
  y.grid.label("y, a row for each window: arrow keys move");
  for (const [q, at] of table(g.OW, width)) write(y, q, at, "");
  const taps = table(g.OW, g.KW).map(([q, j]) => {
    const at = source(g, 0, q, 0, j)[1] + left;
    write(y, q, at, `w${j}`);
    return [q, at];
  });
  y.grid.mark("cg-tap", taps);
  y.grid.point(null);
  y.annotate(new Map());
  const row = spot?.name === "y" ? taps.filter(([q]) => q === spot.index[1]) : [];
  y.light([...row, ...readers.map(({ q, v }) => [q, v + left])]);
}

/** @param {Sheet} sheet @param {number} row @param {number} col @param {string} text */
function write({ grid }, row, col, text) {
  const el = grid.cell(row, col);
  if (!el) return;
  say(el, text);
  el.dataset.length = String(Math.min(text.length, 6));
}
