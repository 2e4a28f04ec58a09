// @ts-check
// How each view of GradientViews is drawn: which grids there are, what is in them, which cells
// stand out.  Each function gives back the sentence under it; the signs between grids are the
// stylesheet's.

import { at, cellAt, channelOf, groupOf, indices, paddedSize, source, unravel } from "./conv.js";
import { annotate } from "./corners.js";
import { attribute, fill, h, say } from "./dom.js";
import { mapOf, surplus } from "./grouped.js";
import { readersOf, table } from "./places.js";
import { reveal, span } from "./unfold_steps.js";
import { busiest, groupmates, inputShare, isAdded, kernelIn, pageAt, searchSize, searched, spread, total, turned, underneath, weightShare, windowOf } from "./views_scene.js";
import { collectWords, inGroup, kernelWords, metWords, ownWords, pageTapWords, pageWords, searchedWords, shareWords, some, stackWords, sumWords, tapWords, throwWords } from "./views_words.js";
import { formatNumber, groupLetter, subscript } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Operands} Operands */
/** @typedef {import("./conv.js").Pair} Pair */
/** @typedef {import("./grid.js").Border} Border */
/** @typedef {import("./looked_grid.js").LookedGrid} LookedGrid */
/** @typedef {import("./places.js").Operand} Operand */
/** @typedef {import("./views_scene.js").Slices} Slices */
/** A cell of one of the grids. @typedef {{place: string, row: number, col: number}} Spot */
/** 2 for what stands out, 1 for its company. @typedef {(row: number, col: number) => number} Ask */
/** What stands in a cell, null for nothing. @typedef {(row: number, col: number) => number | null | undefined} Value */
/** The cell whose taps stay while somebody goes from tap to tap; shares, and of what they are. @typedef {{catcher: Pair | null, shares: ArrayLike<number>[], wanted?: unknown[]}} Memory */
/**
 * What is to be drawn.
 * @typedef {object} Context
 * @property {HTMLElement} root  of the view
 * @property {Geometry} g @property {Operands} arrays @property {Slices} slices
 * @property {number} step @property {number} length
 * @property {Spot | null} look  what somebody looks at
 * @property {boolean} moving  whether a step has just been taken, so that it stands out
 * @property {Memory} memory
 * @property {(place: string) => LookedGrid} grid  the grid of that name, made when it is first drawn
 */

/** @type {Border} */
const NO_BORDER = [
  [0, 0],
  [0, 0],
];
/** @type {Ask} */
const nobody = () => 0;
const MOST_PAGES = 4; // images and groups that are drawn at a time
const MOST_GROUPS = 3;

/**
 * One grid: its title (colour, name, what it is), its size, its numbers, what stands out, the ring.
 * @param {Context} context @param {string} place @param {[string, string, string]} title
 * @param {readonly number[]} size @param {Value} value @param {Ask} [ask] @param {readonly number[] | null} [ring]
 * @param {Border} [border] @param {string} [remark] @param {boolean} [editable]
 */
function put({ grid: find, look }, place, [key, name, about], [rows, cols], value, ask = nobody, ring = null, border = NO_BORDER, remark = "", editable = false) {
  const made = find(place);
  made.title(key, name, about, editable, remark);
  made.grid.shape(rows, cols, border);
  made.grid.write((row, col) => value(row, col) ?? null);
  made.grid.openBorder();
  made.paint(ask, ring ?? (look?.place === place ? [look.row, look.col] : null));
  return made;
}

/**
 * A slice of x, w or g, whose numbers can be edited.
 * @param {Context} context @param {"x" | "w" | "g"} place @param {string} about @param {Ask} [ask] @param {readonly number[] | null} [ring]
 */
function putOperand(context, place, about, ask, ring) {
  const { g, arrays, slices: { n, o, c } } = context;
  /** @type {[string, Operand, number[]]} */
  const [key, name, slice] = place === "x" ? ["x", "x", [n, channelOf(g, o, c)]] : place === "w" ? ["kernel", "weight", [o, c]] : ["grad_output", "grad_output", [n, o]];
  const { shape: [, , rows, cols], data } = mapOf(arrays[name], slice[0], slice[1]);
  return put(context, place, [key, subscript(place, slice), about], [rows, cols], rowsOf(data, cols), ask, ring, NO_BORDER, "", true);
}

/** What is drawn of a map of numbers, row by row. @param {ArrayLike<number>} data @param {number} cols @returns {Value} */
const rowsOf = (data, cols) => (row, col) => data[row * cols + col];

/** Marks these cells, or those without a number. @param {LookedGrid} made @param {string} mark @param {(cell: {row: number, col: number, value?: number | null}) => boolean} [which] */
const mark = ({ grid }, mark, which = ({ value }) => value === null) =>
  grid.mark(mark, [...grid.cells.values()].filter(which).map(({ row, col }) => [row, col]));

/** Sheets under a grid, one for every share in it: the stylesheet draws them. @param {LookedGrid} made @param {number} count */
const pile = ({ el }, count) => (el.dataset.pile = `${Math.min(count, 6)}`);

/** Asks whether a cell is among these. @param {Iterable<readonly unknown[]>} cells @returns {Ask} */
function among(cells) {
  const known = new Set([...cells].map(String));
  return (row, col) => (known.has(`${[row, col]}`) ? 2 : 0);
}

/** Numbers for the stylesheet; the same ones again cost nothing. @param {HTMLElement} el @param {Record<string, number>} numbers */
export function size(el, numbers) {
  const text = Object.entries(numbers).map(([name, number]) => `--${name}:${number}`).join(";");
  attribute(el, "style", text);
}

/** The grids of a view in their order, and how many cells stand beside each other. @param {HTMLElement} root @param {{el: HTMLElement}[]} made @param {number} across @param {number} below @param {number} widest */
function arrange(root, made, across, below, widest) {
  if (root.childElementCount !== made.length) fill(root, ...made.map(({ el }) => el));
  size(root, { across, below, widest });
}

/** Something else than a grid, made once. @param {HTMLElement} root @param {string} place @param {string} text */
const heading = (root, place, text) => ({ el: /** @type {HTMLElement} */ (root.querySelector(`:scope > [data-place="${place}"]`)) ?? h("div", { class: "cg-part", "data-place": place }, text) });

// ---- kernel by kernel ------------------------------------------------------------------------

/** @param {Context} context */
export function drawKernels(context) {
  const { g, arrays, slices, step, look, root, memory } = context;
  const { n, o, c } = slices;
  const mates = groupmates(g, o);
  // from kernel to kernel the shares are the same
  const wanted = [g, arrays, n, c, mates[0]];
  if (wanted.some((each, k) => each !== memory.wanted?.[k])) {
    memory.wanted = wanted;
    memory.shares = mates.map((each) => inputShare(g, arrays, { ...slices, o: each }));
  }
  const { shares } = memory;
  const mine = mates.indexOf(o);
  const added = shares.slice(0, step ? mine + 1 : 0);
  const own = total(indices(g.N).map((each) => weightShare(g, arrays, { ...slices, n: each })));
  const name = subscript("grad_input", [n, channelOf(g, o, c)]);
  const shape = [g.H, g.W];
  const cell = /** @type {Pair} */ ([look?.row, look?.col]);
  const here = look ? among([cell]) : nobody;
  const onMap = look && ["share", "now", "all"].includes(look.place);
  const onTap = look && ["w", "own"].includes(look.place);
  const met = onMap ? readersOf(g, ...cell) : [];
  const reached = onMap ? here : nobody;
  const now = put(context, "now", ["result", "sum so far", some(added.length, "share")], shape, added.length ? rowsOf(total(added), g.W) : () => null, reached);
  const all = put(context, "all", ["result", name, "the whole"], shape, rowsOf(total(shares), g.W), reached);
  pile(now, added.length);
  pile(all, shares.length);
  const made = [
    heading(root, "one", "one kernel alone"),
    putOperand(context, "w", inGroup("kernel", g, groupOf(g, o)), onTap ? here : among(met.map(({ i, j }) => [i, j]))),
    putOperand(context, "g", "its own map of g", among(met.map(({ p, q }) => [p, q]))),
    put(context, "own", ["result", subscript("grad_weight", [o, c]), "its own gradient"], [g.KH, g.KW], rowsOf(own, g.KW), onTap ? here : nobody),
    heading(root, "two", "its share of grad_input, laid on the others"),
    put(context, "share", ["result", `kernel ${o}’s share`, ""], shape, rowsOf(shares[mine], g.W), reached),
    now,
    all,
  ];
  arrange(root, made, 2 * Math.max(g.KW, 5) + g.OW, g.W, Math.max(g.KW, g.OW));
  const k = cell[0] * g.W + cell[1];
  if (look?.place === "share") return shareWords(g, arrays, slices, cell, shares[mine][k]);
  if (onMap) return stackWords(g, slices, cell, (look.place === "all" ? shares : added).map((each) => each[k]));
  if (look?.place === "own") return ownWords(g, [o, c, ...cell], own[cell[0] * g.KW + cell[1]]);
  return kernelWords(g, slices, step);
}

// ---- scatter and gather ----------------------------------------------------------------------

/** A looked-at cell, the cell of the step, or at rest the last one that was looked at, or the busiest. @param {Context} context @returns {Spot} */
function throwerOrCatcher({ g, look, moving, step, memory }) {
  if (look) return look;
  const k = step - 1 - g.OH * g.OW;
  const throwing = moving && k < 0;
  const [row, col] = throwing ? unravel(step - 1, [g.OH, g.OW]) : moving ? unravel(k, [g.H, g.W]) : (memory.catcher ?? busiest(g));
  return { place: throwing ? "g" : "kept", row, col };
}

/** @param {Context} context */
export function drawScatter(context) {
  const { g, arrays, slices, step, memory, root } = context;
  const { n, o, c } = slices;
  const throws = g.OH * g.OW;
  const landed = inputShare(g, arrays, slices, Math.min(step, throws));
  const share = inputShare(g, arrays, slices);
  const { place, row, col } = throwerOrCatcher(context);
  const cell = /** @type {Pair} */ ([row, col]);
  const inImage = (/** @type {number} */ h, /** @type {number} */ v) => h >= 0 && v >= 0 && h < g.H && v < g.W;
  const throwing = place[0] === "g" ? cell : null;
  const catching = ["thrown", "kept"].includes(place) && inImage(...cell) ? cell : null;
  const onMet = place === "met";
  if (!onMet) memory.catcher = catching;
  const { catcher } = memory;
  const found = catcher ? readersOf(g, ...catcher) : [];
  // those of the cell itself; what reads its copies on the border is counted and not drawn
  const own = found.filter((each) => `${[each.h, each.v]}` === `${catcher}`);
  const tap = turned(g, ...cell);
  const asked = onMet ? own.filter(({ i, j }) => `${[i, j]}` === `${tap}`) : found;
  const reached = among(asked.map(({ p, q }) => [p, q]));
  const window = throwing ? windowOf(g, ...throwing) : [];
  const targets = among(place === "w" ? table(g.OH, g.OW).map(([p, q]) => source(g, p, q, ...cell)) : window.flatMap((each) => [each.place, each.cell ?? []]));

  const padded = g.padding.flat().some(Boolean);
  const lost = padded ? `hatched: ${g.padding_mode === "zeros" ? "lost" : "copies"}` : "";
  const name = subscript("grad_input", [n, channelOf(g, o, c)]);
  const whose = g.OG > 1 ? `, kernel ${o}’s share` : "";
  const isHere = among(catcher ? [catcher] : []);
  const map = (/** @type {string} */ place, /** @type {string} */ about, /** @type {Value} */ value) =>
    put(context, place, ["result", name, about + whose], [g.H, g.W], (h, v) => (inImage(h, v) ? value(h, v) : null), targets, catcher, g.padding, lost);
  const corners = new Map(own.map(({ i, j }) => [`${turned(g, i, j)}`, `${i},${j}`]));
  const others = found.length - own.length;
  const copies = others ? `${some(others, "product")} more by copies on the border` : "";
  const met = put(context, "met", ["kernel", subscript("w", [o, c]), "as it is met"], [g.KH, g.KW], (i, j) => (corners.has(`${[i, j]}`) ? at(arrays.weight, o, c, ...turned(g, i, j)) : null), nobody, null, NO_BORDER, copies);
  annotate(met.grid, corners);
  mark(met, "cg-gap");
  const upright = putOperand(context, "w", "as it is");
  annotate(upright.grid, new Map(table(g.KH, g.KW).map(([i, j]) => [`${[i, j]}`, `${i},${j}`])));
  const made = [
    heading(root, "scatter", "scatter: each g throws g·w into its window"),
    putOperand(context, "g", "throws", reached, throwing),
    upright,
    map("thrown", "scattered", (h, v) => (step ? landed[h * g.W + v] : null)),
    heading(root, "gather", "gather: each cell of x collects g·w"),
    put(context, "g2", ["grad_output", subscript("g", [n, o]), "is met"], [g.OH, g.OW], rowsOf(mapOf(arrays.grad_output, n, o).data, g.OW), reached, throwing),
    met,
    map("kept", "gathered", (h, v) => (h * g.W + v < step - throws || isHere(h, v) ? share[h * g.W + v] : null)),
  ];
  const [, wide] = paddedSize(g);
  arrange(root, made, g.OW + g.KW, wide, 1);

  if (throwing) return throwWords(g, arrays, slices, throwing);
  if (catching) return collectWords(g, arrays, slices, catching, share[row * g.W + col]);
  return onMet ? metWords(slices, tap, asked[0]) : "";
}

// ---- as a convolution ------------------------------------------------------------------------

/** @param {Context} context */
export function drawConvolution(context) {
  const { g, arrays, slices, step, look, moving, root } = context;
  const { n, o, c } = slices;
  const channel = channelOf(g, o, c);
  const [rows, cols] = searchSize(g);
  const taps = searched(g, arrays, slices);
  const done = Math.min(step, rows * cols);
  const last = moving && step === done ? unravel(step - 1, [rows, cols]) : null;
  const tap = /** @type {Pair | null} */ (look ? (look.place === "taps" ? [look.row, look.col] : null) : last);
  const under = tap ? underneath(g, ...tap) : [];
  const gs = mapOf(arrays.grad_output, n, o).data;
  /** @type {(h: number, v: number) => number} */
  const xAt = (h, v) => {
    const cell = cellAt(g, h, v);
    return cell ? at(arrays.x, n, channel, ...cell) : 0;
  };
  const bordered = g.padding.flat().some(Boolean) ? `hatched: ${g.padding_mode === "zeros" ? "zero padding" : `${g.padding_mode} copies`}` : "";
  const x = put(context, "x", ["x", subscript("x", [n, channel]), "input"], [g.H, g.W], xAt, among(under), null, g.padding, bordered, true);
  // as far as they can be read
  annotate(x.grid, new Map((gs.length < 50 ? under : []).map((place, k) => [`${place}`, `×${formatNumber(gs[k], 3)}`])));
  const laid = spread(g);
  const numbers = new Map(laid.cells.map(({ row, col }, k) => [`${[row, col]}`, gs[k]]));
  const upstream = put(context, "g", ["grad_output", subscript("g", [n, o]), "cells a stride apart"], laid.size, (row, col) => numbers.get(`${[row, col]}`), (row, col) => (tap && numbers.has(`${[row, col]}`) ? 1 : 0), null, NO_BORDER, "", true);
  mark(upstream, "cg-gap");
  const [below, beside] = surplus(g);
  const cut = below + beside ? "struck out: cropped, no such taps" : "";
  /** @type {Border} */
  const more = [
    [0, below],
    [0, beside],
  ];
  const made = put(context, "taps", ["result", subscript("grad_weight", [o, c]), "x ⋆ g"], [g.KH, g.KW], (i, j) => (i * cols + j < done ? taps[i * cols + j] : null), nobody, tap, more, cut);
  made.el.classList.toggle("cg-cropped", step > done);
  mark(made, "cg-under", ({ row }) => row >= g.KH);
  size(made.el, { high: g.KH, wide: g.KW });
  const [, wide] = paddedSize(g);
  arrange(root, [x, upstream, made], wide + laid.size[1] + Math.max(cols, 5), 1, Math.max(wide, laid.size[1], cols));
  return tap ? tapWords(g, slices, tap, under.map((place, k) => [xAt(...place), gs[k]]), taps[tap[0] * cols + tap[1]]) : searchedWords(g, slices);
}

// ---- image by image --------------------------------------------------------------------------

/** @param {Context} context */
export function drawBatch(context) {
  const { g, arrays, slices, step, length, look, moving, root, grid } = context;
  const { n, o, c } = slices;
  const now = pageAt(g, step);
  // "page image group", "sum 0 group"; of the rest the block alone is a gradient's
  const [kind, image, group = kind === "block" ? now.k : -1] = look?.place.split(" ") ?? [];
  const lookedGroup = Number(group);
  const cell = /** @type {Pair} */ ([look?.row, look?.col]);
  /** @param {number} k */
  const asks = (k) => (k === lookedGroup ? among([cell]) : nobody);
  const shareAt = (/** @type {number} */ image, /** @type {number} */ k) => weightShare(g, arrays, { n: image, o: kernelIn(g, o, k), c });
  const shape = [g.KH, g.KW];
  const added = (/** @type {number} */ k) => indices(g.N).filter((each) => isAdded(g, step, each, k));

  const images = reveal(span(g.N, MOST_PAGES, 0), n);
  const groups = reveal(span(g.groups, MOST_GROUPS, 0), now.k);
  const shown = indices(groups.shown).map((k) => k + groups.start);
  const drawn = indices(images.shown).map((each) => each + images.start);
  const { el: pages } = heading(root, "pages", "");
  if (pages.dataset.holds !== `${shown};${drawn}`) {
    pages.dataset.holds = `${shown};${drawn}`;
    const page = (/** @type {string} */ name, /** @type {string} */ place) =>
      h("span", { class: "cg-leaf" }, h("span", { class: "cg-leaf-name" }, name), ...shown.map((k) => grid(`${place} ${k}`).el));
    const rest = g.N * g.groups > drawn.length * shown.length ? `drawn: ${drawn.length} of ${g.N} images, ${shown.length} of ${g.groups} groups` : "";
    fill(pages, ...drawn.map((each) => page(`image ${each}`, `page ${each}`)), page("sum", "sum 0"), h("span", { class: "cg-note" }, rest));
  }
  for (const k of shown) {
    const letter = g.groups > 1 ? groupLetter(k) : "";
    const name = subscript("grad_weight", [kernelIn(g, o, k), c]);
    const shares = indices(g.N).map((each) => shareAt(each, k));
    for (const each of drawn) {
      const page = put(context, `page ${each} ${k}`, ["result", letter, ""], shape, rowsOf(shares[each], g.KW), asks(k));
      page.grid.label(inGroup(`image ${each}’s share of ${name}`, g, k));
      page.el.classList.toggle("cg-to-come", !isAdded(g, step, each, k));
      page.el.classList.toggle("cg-current", moving && each === n && k === now.k);
      page.el.dataset.group = letter;
    }
    const there = added(k).map((each) => shares[each]);
    const sum = put(context, `sum 0 ${k}`, ["result", letter, name], shape, there.length ? rowsOf(total(there), g.KW) : () => null, asks(k));
    sum.el.dataset.group = letter;
    pile(sum, there.length);
  }
  const block = shareAt(n, now.k);
  const made = [
    putOperand(context, "x", inGroup(`image ${n}`, g, now.k)),
    putOperand(context, "g", `kernel ${o}`),
    put(context, "block", ["result", `image ${n}’s share`, `of ${subscript("grad_weight", [o, c])}`], shape, rowsOf(block, g.KW), asks(now.k)),
    { el: pages },
  ];
  say(/** @type {HTMLElement} */ (pages.querySelector(":scope > :nth-last-child(2) > .cg-leaf-name")), step === length ? "sum" : "sum so far");
  arrange(root, made, g.W + g.OW + Math.max(g.KW, 5), g.KW * drawn.length, 1);
  const k = cell[0] * g.KW + cell[1];
  if (kind === "block") return pageTapWords(slices, cell, block[k]);
  const mine = { n: Number(image), o: kernelIn(g, o, lookedGroup), c };
  if (kind === "page") return pageTapWords(mine, cell, shareAt(mine.n, lookedGroup)[k]);
  if (kind === "sum") return sumWords(mine, cell, added(lookedGroup).map((each) => shareAt(each, lookedGroup)[k]), g.N);
  return pageWords(g, slices, step);
}
