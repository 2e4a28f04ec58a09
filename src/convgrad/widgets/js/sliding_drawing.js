// @ts-check
// One moment of the sliding window written into its layout.

import { at, cellAt, channelOf, geometryOf, paddedSize, ravel, shapes, source, spanOf } from "./conv.js";
import { attribute, fill, h, say, tinted } from "./dom.js";
import { extent, greyScale } from "./picture.js";
import { product, readersOf, sameSlice, table } from "./places.js";
import { wordsOf } from "./sliding_words.js";
import { drawTransport } from "./transport.js";
import { formatNumber } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./look.js").Look} Look */
/** @typedef {import("./sliding_layout.js").Layout} Layout */
/** @typedef {import("./sliding_words.js").Numbers} Numbers */
/**
 * @typedef {object} Moment
 * @property {Geometry} g
 * @property {Numbers} numbers
 * @property {boolean} peak
 * @property {import("./player.js").Head} head
 * @property {Look | null} shown  what is looked at
 * @property {number} made  how many output cells are there; the others are still to come
 * @property {import("./look.js").Slices} slices
 * @property {ReturnType<typeof readersOf>} [readers]  of the input cell that is looked at
 */

const MOST_IN_GRIDS = 400; // cells of one slice; beyond, numbers are too small to read
/** @type {import("./grid.js").Border} */
const NO_BORDER = [
  [0, 0],
  [0, 0],
];

const MOVE = "arrow keys move";
const EDIT = `${MOVE}, Enter edits a number`;

/** Whether the widget draws grey pictures instead of tables of numbers. @param {import("./conv.js").Spec} spec */
export const asPictures = (spec) => {
  const { OH, OW } = geometryOf(spec);
  return Math.max(product(paddedSize(spec)), OH * OW) > MOST_IN_GRIDS;
};

/** @param {Layout} ui @param {Moment} moment */
export function draw(ui, moment) {
  const { g, head, shown } = moment;
  const pictured = asPictures(g);
  if (shown?.name === "x") moment.readers = readersOf(g, shown.index[2], shown.index[3]);
  arrange(ui, pictured);
  ui.kernelChoice.hidden = g.CG > 1;
  say(ui.signs.equals, g.CG > 1 ? "+ … =" : "="); // one channel of several is shown
  drawInput(ui, moment, pictured);
  drawKernel(ui, moment);
  drawOutput(ui, moment, pictured);
  if (pictured) drawPatch(ui, moment);
  drawWords(ui, moment);
  drawTransport(ui.controls, head);
  ui.root.classList.toggle("cg-pictured", pictured);
  ui.root.classList.toggle("cg-sliced", Math.max(g.N, g.C, g.O) > 1);
  ui.root.classList.toggle("cg-fast", head.playing && head.speed > 8);
}

/**
 * Tables stand in the order of the equation; pictures side by side, and beneath them the numbers
 * under the window.
 * @param {Layout} ui @param {boolean} pictured
 */
function arrange(ui, pictured) {
  if (ui.upper.childElementCount && ui.lower.hidden === !pictured) return;
  const { x, w, y, patch, biasBox, total, answer, signs } = ui;
  const sum = [w.el, signs.plus, biasBox];
  ui.lower.hidden = !pictured;
  if (pictured) {
    fill(ui.upper, x.el, signs.arrow, y.el);
    fill(answer, signs.equals, total); // on one line, also where there is no room beside the kernel
    fill(ui.lower, patch.el, signs.times, ...sum, answer);
  } else fill(ui.upper, x.el, signs.times, ...sum, signs.equals, y.el);
  say(signs.times, pictured ? "·" : "⋆");
}

/** The output cell whose window is shown: the one looked at, or the last that was made. @param {Moment} moment */
function windowOf({ g, head, shown, slices }) {
  if (shown?.name === "y") return shown.index;
  const cells = g.OH * g.OW;
  const cell = head.step ? (head.step - 1) % cells : 0;
  return [slices.n, slices.o, Math.floor(cell / g.OW), cell % g.OW];
}

/**
 * The axes that the slices of an array run over; the groups divide its channels or kernels.
 * @param {Geometry} g @param {string} letters @param {number[]} shape
 */
const axes = ({ groups }, letters, shape) => ({
  letters,
  shape,
  groups,
  groupAxis: letters === "oc" ? 0 : 1,
});

/** What stands at a place of the slice of x, border included; `null` only beside the image. @param {Moment} moment */
function reader({ g, numbers, slices }) {
  const slice = [slices.n, channelOf(g, slices.o, slices.c)];
  return (/** @type {number} */ h, /** @type {number} */ v) => {
    const cell = cellAt(g, h, v);
    return cell ? at(numbers.x, ...slice, ...cell) : null;
  };
}

/** @param {number} value */
const brief = (value) => formatNumber(value, 3);

/** @param {Layout} ui @param {Moment} moment @param {boolean} pictured */
function drawInput({ x }, moment, pictured) {
  const { g, numbers, shown, slices, readers } = moment;
  const slice = [slices.n, channelOf(g, slices.o, slices.c)];
  const valueAt = reader(moment);
  x.shape(g.H, g.W, g.padding, pictured);
  if (pictured) {
    const [low, high] = extent(numbers.x.data);
    x.picture.paint(valueAt, [Math.min(low, 0), high > Math.min(low, 0) ? high : 1]);
  } else x.grid.write((h, v) => valueAt(h, v) ?? 0);
  const here = shown?.name === "x" && sameSlice(shown.index, slice) ? shown.index.slice(2) : null;
  x.slice(axes(g, "nc", shapes(g).x), slice, pictured ? MOVE : EDIT);
  /** @type {(readonly number[])[]} */
  let lit = [];
  /** @type {Map<string, string>} */
  const corners = new Map();
  if (shown?.name === "y") {
    const [, o, p, q] = shown.index;
    lit = table(g.KH, g.KW).map(([i, j]) => {
      const place = source(g, p, q, i, j);
      const w = at(numbers.weight, o, slices.c, i, j);
      corners.set(`${place}`, `×${brief(w)}`);
      return place;
    });
    x.outline(source(g, p, q, 0, 0), spanOf(g));
  } else {
    x.outline(pictured ? here : null);
    if (shown?.name === "w") {
      const [, , i, j] = shown.index;
      lit = table(g.OH, g.OW).map(([p, q]) => source(g, p, q, i, j));
    } else if (readers && here) lit = readers.map(({ h, v }) => [h, v]);
  }
  x.light(pictured && shown?.name === "y" ? [] : lit);
  if (pictured) x.picture.point(here ?? (lit[0] ? inside(g, lit[0]) : null));
  else {
    x.grid.point(here);
    x.annotate(corners);
  }
  say(x.note, borderNote(g));
}

/** @param {Geometry} g @param {readonly number[]} place */
const inside = (g, [h, v]) => [
  Math.min(Math.max(h, 0), g.H - 1),
  Math.min(Math.max(v, 0), g.W - 1),
];

/** @param {Geometry} g */
function borderNote(g) {
  if (!g.padding.flat().some(Boolean)) return "";
  return g.padding_mode === "zeros" ? "hatched: zero padding" : `hatched: ${g.padding_mode} copies`;
}

/** @param {Layout} ui @param {Moment} moment */
function drawKernel({ w, bias }, { g, numbers, shown, slices, readers = [] }) {
  const slice = [slices.o, slices.c];
  w.shape(g.KH, g.KW, NO_BORDER, false);
  w.grid.write((i, j) => at(numbers.weight, ...slice, i, j));
  w.slice(axes(g, "oc", shapes(g).weight), slice, EDIT);
  w.grid.point(shown?.name === "w" ? shown.index.slice(2) : null);
  w.light(shown?.name === "y" ? table(g.KH, g.KW) : readers.map(({ i, j }) => [i, j]));
  attribute(bias, "aria-label", `bias of kernel ${slices.o}`);
  const text = formatNumber(numbers.bias.data[slices.o], 12);
  if (bias.dataset.shown !== text) {
    bias.dataset.shown = bias.value = text;
  }
}

/** @param {Layout} ui @param {Moment} moment @param {boolean} pictured */
function drawOutput({ y }, moment, pictured) {
  const { g, numbers, shown, made, slices, peak, readers } = moment;
  const slice = [slices.n, slices.o];
  const shape = shapes(g).grad_output;
  const first = ravel([...slice, 0, 0], shape);
  y.shape(g.OH, g.OW, NO_BORDER, pictured);
  const values = Array.from({ length: g.OH * g.OW }, (_, k) => numbers.y[first + k]);
  const here = shown?.name === "y" && sameSlice(shown.index, slice) ? shown.index.slice(2) : null;
  /** @param {number} p @param {number} q */
  const valueAt = (p, q) => (first + p * g.OW + q < made ? values[p * g.OW + q] : null);
  const highest = values.indexOf(extent(values)[1]);
  const top = [Math.floor(highest / g.OW), highest % g.OW];
  if (pictured) {
    const size = g.CG * g.KH * g.KW;
    const kernel = Array.from(numbers.weight.data).slice(slices.o * size, (slices.o + 1) * size);
    const scale = greyScale(values, numbers.x.data, kernel);
    y.picture.paint(valueAt, scale);
    const [black, white] = scale.map((value) => formatNumber(value, 4));
    say(y.note, `black ${black} · white ${white}`);
  } else {
    y.grid.write(valueAt);
    say(y.note, "");
  }
  if (peak) {
    const where = `largest: ${formatNumber(values[highest])} at p = ${top[0]}, q = ${top[1]}`;
    say(y.note, pictured ? `${where} (ringed)` : where);
  }
  y.ring(peak && valueAt(top[0], top[1]) !== null ? top : null);
  y.slice(axes(g, "no", shape), slice, MOVE);
  /** @type {(readonly number[])[]} */
  let lit = [];
  /** @type {Map<string, string>} */
  const corners = new Map();
  if (shown?.name === "w") lit = table(g.OH, g.OW);
  if (readers) {
    lit = readers.map(({ p, q, i, j }) => {
      const before = corners.get(`${p},${q}`);
      corners.set(`${p},${q}`, before ? `${before} ${i},${j}` : `w ${i},${j}`);
      return [p, q];
    });
  }
  y.light(lit);
  if (pictured) {
    y.outline(here);
    y.picture.point(here ?? null);
  } else {
    y.outline(null);
    y.grid.point(here);
    y.annotate(corners);
  }
}

/** The numbers under the window, where the picture shows none. @param {Layout} ui @param {Moment} moment */
function drawPatch({ patch, total, setUnder }, moment) {
  const { g, numbers, shown } = moment;
  const index = windowOf(moment);
  const [, , p, q] = index;
  const valueAt = reader(moment);
  /** @param {number} i @param {number} j */
  const under = (i, j) => cellAt(g, ...source(g, p, q, i, j));
  setUnder(under);
  patch.shape(g.KH, g.KW, NO_BORDER, false);
  patch.grid.write((i, j) => valueAt(...source(g, p, q, i, j)) ?? 0);
  patch.grid.mark(
    "cg-on-border",
    table(g.KH, g.KW).filter(([i, j]) => {
      const [h, v] = source(g, p, q, i, j);
      return h < 0 || v < 0 || h >= g.H || v >= g.W;
    }),
  );
  patch.grid.label(`x under the window of y ${p},${q}: ${EDIT}`);
  patch.grid.point(shown?.name === "w" ? shown.index.slice(2) : null);
  patch.light(shown?.name === "y" ? table(g.KH, g.KW) : []);
  const value = numbers.y[ravel(index, shapes(g).grad_output)];
  fill(total, h("b", {}, formatNumber(value)), h("span", {}, `y at p = ${p}, q = ${q}`));
}

/** @param {Layout} ui @param {Moment} moment */
function drawWords({ head, lines }, { g, numbers, shown, slices }) {
  if (!shown) {
    fill(head, "Press play, or point at a cell of y, w or x, or go to it by Tab and arrow keys.");
    fill(lines);
    return;
  }
  const words = wordsOf(g, numbers, shown, slices.c);
  fill(head, ...tinted(words.head));
  fill(lines, ...words.lines.map((line) => h("p", {}, ...tinted(line))));
}

