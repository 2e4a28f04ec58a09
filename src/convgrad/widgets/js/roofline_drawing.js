// @ts-check
// The chart of the roofline: roof, ridge, ceilings and marks, as SVG in pixels of the page.

import { MAPS, PRECISIONS, ridge } from "./roofline_model.js";
import { TITLES, three } from "./roofline_words.js";

/** @typedef {import("./roofline_model.js").Bound} Bound */
/** @typedef {import("./roofline_model.js").Card} Card */
/** @typedef {import("./roofline_model.js").Precision} Precision */
/** @typedef {import("./roofline_model.js").Which} Which */
/**
 * @typedef {object} Moment
 * @property {Card} card
 * @property {Precision} precision
 * @property {Record<Which, Bound>} bounds
 * @property {Bound | null} implicit  where the chosen map would lie without columns
 * @property {Which} target
 * @property {{number: number, bound: Bound, here: boolean}[]} others  the other layers, by their numbers
 */

/** Ends of the axes: operations per byte, TFLOP/s. @type {[[number, number], [number, number]]} */
export const ENDS = [[0.1, 1e4], [0.01, 2000]];
const TICKS = [[0.1, 1, 10, 100, 1000, 1e4], [0.01, 0.1, 1, 10, 100, 1000]];
const BADGE = 11; // half a badge
/** Letter of a map, and where its badge stands beside its point. @type {Record<Which, [string, number, number]>} */
export const BADGES = {
  forward: ["y", -30, -27],
  grad_input: ["x", 0, -36],
  grad_weight: ["w", 30, -27],
};

/** @param {number} value @param {[number, number]} ends  0 at the first end, 1 at the last, and never beyond */
export const along = (value, [low, high]) =>
  Math.min(1, Math.max(0, Math.log(value / low) / Math.log(high / low)));

/**
 * Where things are in a chart of this size.
 * @param {number} width @param {number} height
 */
export function frame(width, height) {
  const [left, right, top, bottom] = [46, 12, 64, 44];
  const x = (/** @type {number} */ v) => left + along(v, ENDS[0]) * (width - left - right);
  const y = (/** @type {number} */ v) => height - bottom - along(v, ENDS[1]) * (height - top - bottom);
  return { left, right: width - right, top, bottom: height - bottom, x, y };
}

/** @param {string} tag @param {Record<string, string | number>} attributes @param {...(Node | string)} children */
function s(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** @param {number} x @param {number} y @param {string} words @param {Record<string, string | number>} [more] */
const text = (x, y, words, more = {}) => s("text", { x, y, ...more }, words);

const power = (/** @type {number} */ value) =>
  value >= 1e4 ? "10⁴" : value.toLocaleString("en");

/** The outline of a badge: a circle, a square, a diamond. @param {Which} which */
function badgeShape(which) {
  if (which === "forward") return s("circle", { r: BADGE });
  if (which === "grad_input") return s("rect", { x: -BADGE + 1, y: -BADGE + 1, width: 2 * BADGE - 2, height: 2 * BADGE - 2 });
  const r = BADGE + 3;
  return s("path", { d: `M0 ${-r}L${r} 0L0 ${r}L${-r} 0z` });
}

/** What stays while it moves: a group that is drawn anew, and the three marks over it. @param {SVGSVGElement} svg @param {(which: Which) => void} pick */
export function prepare(svg, pick) {
  const marks = MAPS.map((which) => {
    const [letter, dx, dy] = BADGES[which];
    const badge = s("g", { class: "cg-badge", transform: `translate(${dx} ${dy})` }, badgeShape(which), text(0, 4, letter, { "text-anchor": "middle" }));
    badge.addEventListener("click", () => pick(which));
    return s("g", { class: `cg-mark cg-mark-${which}` }, s("path", { class: "cg-stem", d: `M0 0L${dx} ${dy}` }), s("circle", { class: "cg-dot", r: 4 }), badge);
  });
  svg.replaceChildren(s("g", {}), ...marks);
}

/** @param {SVGSVGElement} svg  that was prepared @param {Moment} moment @param {{width: number, height: number}} size @param {(number: number) => void} load */
export function drawChart(svg, moment, { width, height }, load) {
  const { card, precision, bounds, target, others, implicit } = moment;
  const at = frame(width, height);
  const narrow = width < 480;
  const [back, ...marks] = svg.children;
  const parts = [];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", String(width));
  svg.setAttribute("height", String(height));

  // the axes
  for (const value of TICKS[0]) {
    parts.push(s("path", { class: "cg-line", d: `M${at.x(value)} ${at.top}V${at.bottom}` }));
    parts.push(text(at.x(value), at.bottom + 17, power(value), { "text-anchor": value === 1e4 ? "end" : "middle" }));
  }
  for (const value of TICKS[1]) {
    parts.push(s("path", { class: "cg-line", d: `M${at.left} ${at.y(value)}H${at.right}` }));
    parts.push(text(at.left - 6, at.y(value) + 4, power(value), { "text-anchor": "end" }));
  }
  parts.push(text((at.left + at.right) / 2, at.bottom + 36, "operations per byte", { "text-anchor": "middle" }));
  parts.push(text(2, 13, "TFLOP/s at most"));

  // the roofs of the other precisions, then the one that holds
  const peak = card[precision];
  const peaks = new Map(PRECISIONS.filter((each) => card[each] !== peak).map((each) => [card[each], each]));
  const lines = [at.y(peak) - 5];
  for (const [other, each] of peaks) {
    parts.push(s("path", { class: "cg-other-roof", d: `M${at.x(ridge(card, each))} ${at.y(other)}H${at.right}` }));
    const line = at.y(other) - 4;
    if (lines.some((taken) => Math.abs(taken - line) < 13)) continue; // no room for its name
    lines.push(line);
    parts.push(text(at.right, line, `${TITLES[each]} ${three(other)}`, { "text-anchor": "end" }));
  }
  const corner = ridge(card, precision);
  parts.push(s("path", { class: "cg-ridge", d: `M${at.x(corner)} ${at.y(peak)}V${at.bottom}` }));
  parts.push(text(at.x(corner) + 4, at.bottom - 6, `ridge ${three(corner)}`));
  const low = ENDS[0][0];
  parts.push(s("path", { class: "cg-roof", d: `M${at.x(low)} ${at.y(card.memory * low)}L${at.x(corner)} ${at.y(peak)}H${at.right}` }));
  const tilt = (-180 / Math.PI) * Math.atan2(at.y(card.memory * low) - at.y(peak), at.x(corner) - at.x(low));
  const [mx, my] = [at.x(low * 1.4) + 2, at.y(card.memory * low * 1.4) - 7];
  parts.push(text(mx, my, `memory ${three(card.memory)} TB/s`, { transform: `rotate(${tilt} ${mx} ${my})` }));
  parts.push(text(at.right, at.y(peak) - 5, `${TITLES[precision]} ${three(peak)}`, { "text-anchor": "end", class: "cg-strong" }));

  // the lower roof that tiles leave
  const chosen = bounds[target];
  if (chosen.tiles && chosen.ceiling < 0.99 * peak) {
    const from = chosen.ceiling / card.memory;
    parts.push(s("path", { class: "cg-ceiling", d: `M${at.x(from)} ${at.y(chosen.ceiling)}H${at.right}` }));
    const few = `${chosen.programs} program${chosen.programs === 1 ? "" : "s"}`;
    const words = narrow ? few : `${target}, ${few} on ${card.multiprocessors}: ${three(chosen.ceiling)}`;
    parts.push(text(at.right, at.y(chosen.ceiling) + 14, words, { "text-anchor": "end", class: "cg-of-ceiling" }));
  }

  // the other layers
  /** @type {[number, number][]} */
  const taken = [];
  for (const { number, bound, here } of others) {
    if (here) continue;
    const [x, y] = [at.x(bound.intensity), at.y(bound.tflops)];
    let below = y;
    while (taken.some(([a, b]) => Math.abs(a - x) < 17 && Math.abs(b - below) < 17)) below += 17;
    taken.push([x, below]);
    const group = s("g", { class: "cg-layer", transform: `translate(${x} ${below})` });
    if (below !== y) group.append(s("path", { d: `M0 ${y - below}V-8` }));
    group.append(s("circle", { r: 8.5 }), text(0, 4, String(number), { "text-anchor": "middle" }));
    group.addEventListener("click", () => load(number));
    parts.push(group);
  }

  // where it came from
  if (implicit && implicit.intensity !== chosen.intensity) {
    const [x0, y0] = [at.x(implicit.intensity), at.y(implicit.tflops)];
    const [x1, y1] = [at.x(chosen.intensity), at.y(chosen.tflops)];
    const long = Math.hypot(x1 - x0, y1 - y0) || 1;
    const [ux, uy] = [(x1 - x0) / long, (y1 - y0) / long];
    const [tx, ty] = [x1 - 7 * ux, y1 - 7 * uy];
    const barb = (/** @type {number} */ side) => `M${tx} ${ty}l${-8 * ux - 5 * side * uy} ${-8 * uy + 5 * side * ux}`;
    parts.push(s("circle", { class: "cg-was", cx: x0, cy: y0, r: 4 }));
    parts.push(s("path", { class: "cg-slid", d: `M${x0 + 5 * ux} ${y0 + 5 * uy}L${tx} ${ty}${barb(1)}${barb(-1)}` }));
  }

  // the three marks, which move
  MAPS.forEach((which, k) => {
    const { intensity, tflops } = bounds[which];
    marks[k].setAttribute("style", `transform:translate(${at.x(intensity)}px,${at.y(tflops)}px)`);
    marks[k].classList.toggle("cg-told", which === target);
  });

  // what the shapes mean
  const legend = narrow ? [] : MAPS;
  legend.forEach((which, k) => {
    const group = s("g", { class: `cg-mark-${which}`, transform: `translate(${at.right - 300 + 100 * k} 14)` });
    group.append(s("g", { class: "cg-badge", transform: "scale(.72)" }, badgeShape(which), text(0, 5, BADGES[which][0], { "text-anchor": "middle" })));
    group.append(text(14, 4, which));
    parts.push(group);
  });
  back.replaceChildren(...parts);
}
