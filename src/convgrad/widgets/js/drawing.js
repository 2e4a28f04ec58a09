// @ts-check
// One moment of the player written into its layout: a function of the numbers and the step.

import {
  accumulate,
  cellAt,
  channelOf,
  factors,
  groupOf,
  indices,
  ravel,
  shapes,
  targetShape,
} from "./conv.js";
import { attribute, fill, h, say, tinted } from "./dom.js";
import { TITLES } from "./layout.js";
import { sliceName } from "./overview.js";
import {
  FACTORS,
  OPERANDS,
  axesOf,
  companions,
  copied,
  product,
  sameSlice,
  spotIn,
  table,
  unread,
} from "./places.js";
import { drawTransport } from "./transport.js";
import {
  GRADIENT,
  caption,
  factorNames,
  formatNumber,
  formula,
  groupLetter,
  spell,
  standingWords,
  subscript,
} from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Contribution} Contribution */
/** @typedef {import("./conv.js").Ledger} Ledger */
/** @typedef {import("./conv.js").Operands} Operands */
/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./layout.js").Panel} Panel */
/** @typedef {import("./places.js").Operand} Operand */
/** @typedef {import("./places.js").Place} Place */
/**
 * Everything that one moment depends on.
 * @typedef {object} Moment
 * @property {Ledger} list  the products in their order; knows geometry, target and order
 * @property {Operands} arrays
 * @property {boolean} includePadding
 * @property {import("./player.js").Head} head
 * @property {Contribution | null} now  the contribution of the step, null before the first
 * @property {Record<Place, number[]>} shown  the slice of each array that is drawn large
 * @property {number[] | null} chosen  the gradient cell whose formula is open
 */

const FLIGHT = 150; // milliseconds that a product falls
const SHOWN_TERMS = 150; // of one formula
/** @type {[[number, number], [number, number]]} */
const NO_BORDER = [
  [0, 0],
  [0, 0],
];

/** @param {Layout} ui @param {Moment} moment */
export function draw(ui, moment) {
  const { list, head } = moment;
  const { geometry: g, target, order } = list;
  ui.targets.show(target);
  ui.orders.show(order);
  say(ui.caption, caption(g, target, order));
  drawOperands(ui, moment);
  const sums = accumulate(list, moment.arrays, head.step);
  const alone = order === "kernel" && target === "input" && g.O > 1;
  ui.share.el.hidden = ui.into.hidden = !alone;
  ui.result.title(GRADIENT[target], alone ? "the shares added up" : "being filled");
  drawResult(ui.result, moment, sums, 0, head.step);
  if (alone) drawShare(ui.share, moment);
  drawSpelled(ui, moment, sums);
  drawControls(ui, moment);
  ui.root.classList.toggle("cg-padded", g.padding.flat().some(Boolean));
  // where a formula is open, a step that is not in it stands back
  ui.root.classList.toggle(
    "cg-asking",
    moment.chosen !== null && `${moment.now?.target}` !== `${moment.chosen}`,
  );
  ui.root.classList.toggle("cg-fast", head.playing && head.speed > 8);
  const places = /** @type {Place[]} */ ([...FACTORS[target], "result"]);
  const sliced = places.some((place) => product(axesOf(g, target, place).shape.slice(0, 2)) > 1);
  ui.root.classList.toggle("cg-sliced", sliced);
}

// ---- operands --------------------------------------------------------------------------------

/** @param {Layout} ui @param {Moment} moment */
function drawOperands(ui, moment) {
  const { list, arrays, now, shown, chosen } = moment;
  const { geometry: g, target, order } = list;
  const active = FACTORS[target];
  arrange(ui, active);
  const grey = unread(g);
  for (const name of OPERANDS) {
    const panel = ui.operands[name];
    const { grid } = panel;
    const idle = !active.includes(name);
    const [a, b] = shown[name];
    const [, , rows, cols] = arrays[name].shape;
    const spot = idle ? null : spotOf(moment, name, now);
    panel.el.classList.toggle("cg-idle", idle);
    say(panel.note, idle ? "not in this product" : name === "x" ? borderNote(g, grey.length) : "");
    grid.shape(rows, cols, name === "x" ? g.padding : NO_BORDER);
    grid.write((row, col) => {
      const cell = name === "x" ? cellAt(g, row, col) : [row, col];
      return cell ? arrays[name].data[ravel([a, b, ...cell], arrays[name].shape)] : 0;
    });
    const axes = axesOf(g, target, name);
    panel.slices(axes, shown[name], now && !idle ? litCell(moment, name, now) : null);
    grid.label(
      `${TITLES[name].join(", ")}, ${sliceName(axes.letters, shown[name])}: ` +
        "arrow keys move, Enter edits a number",
    );
    grid.point(spot);
    grid.mark("cg-partner", chosen && !idle ? partners(moment, name) : []);
    if (name !== "x") continue;
    grid.mark("cg-with", now && spot && !chosen ? companions(g, now, order) : []);
    grid.mark("cg-copied", now?.cell && spot && copied(now) ? [now.cell] : []);
    grid.mark("cg-unread", grey);
  }
}

/** The factors first, with the sign between them; what takes no part stands last. @param {Layout} ui @param {Operand[]} active */
function arrange(ui, active) {
  const idle = OPERANDS.filter((name) => !active.includes(name));
  const [first, ...rest] = [...active, ...idle].map((name) => ui.operands[name].el);
  const row = active.length > 1 ? [first, ui.times, ...rest] : [first, ...rest];
  const { children } = ui.operandRow;
  const same = row.length === children.length && row.every((el, k) => el === children[k]);
  if (!same) fill(ui.operandRow, ...row);
}

/** @param {Geometry} g @param {number} grey  how many cells no window reads */
function borderNote(g, grey) {
  const notes = [];
  if (g.padding.flat().some(Boolean)) {
    notes.push(
      g.padding_mode === "zeros" ? "hatched: zero padding" : `hatched: ${g.padding_mode} copies`,
    );
  }
  if (grey) notes.push("grey: read by no window");
  return notes.join(" · ");
}

/** What the border of grad_input means. @param {Geometry} g @param {number} grey */
function landingNote(g, grey) {
  const notes = [];
  if (g.padding.flat().some(Boolean)) {
    const where = g.padding_mode === "zeros" ? "lost" : "added to the cell that is copied";
    notes.push(`hatched: what lands here is ${where}`);
  }
  if (grey) notes.push("grey: read by no window, so 0");
  return notes.join(" · ");
}

/** Row and column of a contribution where its slice is the one shown. @param {Moment} moment @param {Place} place @param {Contribution | null} c */
function spotOf({ list: { geometry, target }, shown }, place, c) {
  if (!c) return null;
  const slice = sliceOf(geometry, target, place, c);
  return sameSlice(slice, shown[place]) ? spotIn(target, place, c) : null;
}

/** @param {Geometry} g @param {import("./conv.js").Target} target @param {Place} place @param {Contribution} c */
function sliceOf(g, target, place, c) {
  if (place === "grad_output") return [c.n, c.o];
  if (place === "share") return [0, c.o];
  if (target === "bias") return [0, 0];
  const onKernel = place === "weight" || (place === "result" && target === "weight");
  return onKernel ? [c.o, Number(c.c)] : [c.n, channelOf(g, c.o, Number(c.c))];
}

/** The step's cell in the small pictures, which have no border. @param {Moment} moment @param {Place} place @param {Contribution} c */
function litCell({ list: { geometry: g, target } }, place, c) {
  const onImage = place === "x" || (place === "result" && target === "input");
  const spot = onImage ? c.cell : spotIn(target, place, c);
  return spot && [...sliceOf(g, target, place, c), ...spot];
}

/** The cells that meet in the chosen gradient cell. @param {Moment} moment @param {Operand} name */
function partners(moment, name) {
  return stepsOfChosen(moment)
    .map((k) => spotOf(moment, name, moment.list.at(k)))
    .filter((spot) => spot !== null);
}

// ---- the gradient ----------------------------------------------------------------------------

/**
 * @param {Panel} panel @param {Moment} moment
 * @param {Float64Array} sums @param {number} from @param {number} to  the steps that count here
 */
function drawResult(panel, moment, sums, from, to) {
  const { list, now, shown, chosen } = moment;
  const { geometry: g, target, order } = list;
  const axes = axesOf(g, target, "result");
  const [, , rows, cols] = axes.shape;
  const slice = shown.result;
  const touched = new Uint8Array(sums.length);
  for (let k = from; k < to; k++) if (list.t[k] >= 0) touched[list.t[k]] = 1;
  /** @param {readonly number[]} slice @param {readonly number[]} spot */
  const offset = ([a, b], [row, col]) => ravel([a, b, row, col], [...axes.shape]);
  const { grid } = panel;
  grid.shape(rows, cols, target === "input" ? g.padding : NO_BORDER);
  grid.write((row, col) => {
    const inside = row >= 0 && col >= 0 && row < rows && col < cols;
    return inside ? sums[offset(slice, [row, col])] : null;
  });
  const cells = table(rows, cols);
  grid.mark(
    "cg-empty",
    cells.filter((spot) => !touched[offset(slice, spot)]),
  );
  const here = now && (from === 0 || to > from) ? spotOf(moment, "result", now) : null;
  const spot = here && (panel.el.dataset.kernel ?? `${now?.o}`) === `${now?.o}` ? here : null;
  grid.point(spot);
  const onImage = target === "input";
  grid.mark("cg-with", now && spot && onImage && !chosen ? companions(g, now, order) : []);
  grid.mark("cg-copied", now?.cell && spot && onImage && copied(now) ? [now.cell] : []);
  const grey = onImage ? unread(g) : [];
  grid.mark("cg-unread", grey);
  say(panel.note, onImage ? landingNote(g, grey.length) : "");
  const name = sliceName(axes.letters, slice);
  grid.label(`${GRADIENT[target]}${name && `, ${name}`}: Enter shows a cell as a formula`);
  if (panel.el.dataset.kernel !== undefined) return;
  const four = chosen && (chosen.length > 1 ? chosen : [0, 0, 0, chosen[0]]);
  grid.mark("cg-chosen", four && sameSlice(four, slice) ? [four.slice(2)] : []);
  panel.slices(axes, slice, now && now.target && litCell(moment, "result", now), (each) =>
    cells
      .filter((cell) => touched[offset(each, cell)])
      .map(([row, col]) => `M${col} ${row}h1v1h-1z`)
      .join(""),
  );
}

/** One kernel's contribution to grad_input, alone. @param {Panel} panel @param {Moment} moment */
function drawShare(panel, moment) {
  const { list, arrays, head, now, shown } = moment;
  const { geometry: g, target } = list;
  const o = shown.share[1];
  const each = list.length / g.O; // in this order every kernel has its own stretch of steps
  const from = o * each;
  const to = Math.max(from, Math.min(head.step, from + each));
  panel.title(`share of kernel ${o}`, g.groups > 1 ? `group ${groupLetter(groupOf(g, o))}` : "");
  panel.el.dataset.kernel = String(o);
  drawResult(panel, moment, accumulate(list, arrays, to, from), from, to);
  const lit = now && now.o === o ? litCell(moment, "weight", now) : null;
  const whole = `M0 0h${g.KW}v${g.KH}h-${g.KW}z`;
  panel.slices(axesOf(g, target, "share"), [0, o], lit && [0, o, lit[2], lit[3]], ([, k]) =>
    head.step >= (k + 1) * each ? whole : "",
  );
  say(panel.slice, product(shapes(g).x.slice(0, 2)) > 1 ? sliceName("nc", shown.result) : "");
}

// ---- words and controls ----------------------------------------------------------------------

/** @param {Layout} ui @param {Moment} moment @param {Float64Array} sums */
function drawSpelled(ui, { list, arrays, head, now }, sums) {
  const { geometry: g, target } = list;
  if (!now) {
    const many = `${list.length} product${list.length === 1 ? "" : "s"} will fall into `;
    const name = tinted([{ text: GRADIENT[target], key: "result" }]);
    fill(ui.spelled, many, ...name, ". Press play, or step.");
    return;
  }
  const sum = now.target ? sums[ravel(now.target, targetShape(g, target))] : 0;
  const values = factors(list, head.step - 1, arrays);
  fill(ui.spelled, ...tinted(spell(g, target, now, values, sum)));
}

/** @param {Layout} ui @param {Moment} moment */
function drawControls({ controls, padSwitch, padLabel }, { list, head, includePadding }) {
  const { geometry: g, target } = list;
  drawTransport(controls, head);
  padSwitch.checked = includePadding;
  padLabel.hidden =
    target === "bias" || g.padding_mode !== "zeros" || !g.padding.flat().some(Boolean);
}

// ---- one product falls -----------------------------------------------------------------------

/**
 * The product flies from between its factors into its cell.
 * @param {Layout} ui @param {Moment} moment
 */
export function fall(ui, moment) {
  const { list, arrays, head, now } = moment;
  const landing = now && spotOf(moment, "result", now);
  const goal = landing && ui.result.grid.cell(landing[0], landing[1]);
  if (!now || !goal || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const stage = ui.stage.getBoundingClientRect();
  const centre = (/** @type {Element} */ element) => {
    const box = element.getBoundingClientRect();
    return [box.left + box.width / 2 - stage.left, box.top + box.height / 2 - stage.top];
  };
  const starts = FACTORS[list.target].flatMap((name) => {
    const spot = spotOf(moment, name, now);
    const cell = spot && ui.operands[name].grid.cell(spot[0], spot[1]);
    return cell ? [centre(cell)] : [];
  });
  if (!starts.length) return;
  const start = [0, 1].map((axis) => starts.reduce((sum, at) => sum + at[axis], 0) / starts.length);
  const end = centre(goal);
  const [a, b] = factors(list, head.step - 1, arrays);
  say(ui.chip, formatNumber(a * b, 4));
  ui.chip.classList.toggle("cg-lost", !now.target);
  ui.chip.hidden = false;
  const at = (/** @type {number[]} */ [left, top]) =>
    `translate(${left}px, ${top}px) translate(-50%, -50%)`;
  for (const old of ui.chip.getAnimations()) old.cancel();
  const flight = ui.chip.animate(
    [
      { transform: at(start), opacity: 1 },
      { transform: at(end), opacity: 1, offset: 0.85 },
      { transform: at(end), opacity: 0 },
    ],
    { duration: FLIGHT, easing: "cubic-bezier(.5,0,.8,.6)" },
  );
  flight.onfinish = () => (ui.chip.hidden = true);
}

// ---- the formula of one cell -----------------------------------------------------------------

/** The steps that fall into the chosen cell. @param {Moment} moment */
function stepsOfChosen({ list, chosen }) {
  if (!chosen) return [];
  const offset = ravel(chosen, targetShape(list.geometry, list.target));
  return indices(list.length).filter((k) => list.t[k] === offset);
}

/**
 * @param {Layout} ui @param {Moment} moment
 * @param {{seek: (step: number) => void, close: () => void}} on
 */
export function drawFormula({ formulaBox }, moment, on) {
  const { list, arrays, head, chosen } = moment;
  formulaBox.hidden = !chosen;
  if (!chosen) return;
  const before = drawn.get(formulaBox);
  const same =
    before && before.list === list && before.arrays === arrays && before.chosen === chosen;
  if (!same) writeFormula(formulaBox, moment, on);
  drawn.set(formulaBox, moment);
  let [fallen, standing] = [0, 0];
  const steps = stepsOfChosen(moment);
  for (const k of steps) {
    if (k >= head.step) break;
    const [a, b] = factors(list, k, arrays);
    standing += a * b;
    fallen++;
  }
  for (const term of formulaBox.querySelectorAll(".cg-term")) {
    const step = Number(term.getAttribute("data-step"));
    attribute(term, "aria-current", step === head.step ? "step" : "false");
    term.classList.toggle("cg-fallen", step <= head.step && fallen < steps.length);
  }
  const status = formulaBox.querySelector(".cg-standing");
  if (status) say(status, standingWords(fallen, steps.length, standing, sumOf(moment)));
}

/** What the chosen cell is in the end. @param {Moment} moment */
const sumOf = ({ list, arrays, chosen }) =>
  accumulate(list, arrays)[ravel(chosen ?? [], targetShape(list.geometry, list.target))];

/** What each formula shows: it is written again only when that changes, to keep the focus. @type {WeakMap<Element, Moment>} */
const drawn = new WeakMap();

/**
 * @param {HTMLElement} formulaBox @param {Moment} moment
 * @param {{seek: (step: number) => void, close: () => void}} on
 */
function writeFormula(formulaBox, moment, on) {
  const { list, arrays } = moment;
  const chosen = moment.chosen ?? [];
  const { geometry: g, target } = list;
  const steps = stepsOfChosen(moment);
  const terms = steps.slice(0, SHOWN_TERMS).map((k) => ({
    step: k + 1,
    c: list.at(k),
    values: factors(list, k, arrays),
  }));
  const sum = sumOf(moment);
  const name = { text: subscript(GRADIENT[target], chosen), key: "result" };
  const more = steps.length > terms.length ? ` + … (${steps.length - terms.length} more)` : "";
  const letters = terms.flatMap(({ step, c }, k) => {
    const attributes = {
      class: "cg-term",
      "data-step": step,
      title: `go to step ${step}`,
    };
    const onclick = () => on.seek(step);
    const term = tinted(factorNames(g, target, c, true));
    return [k ? " + " : "", h("button", { ...attributes, onclick }, ...term)];
  });
  const counted = ` is the sum of ${steps.length} product${steps.length === 1 ? "" : "s"}`;
  fill(
    formulaBox,
    h(
      "p",
      { class: "cg-formula-head" },
      h("span", {}, ...tinted([name]), counted, h("span", { class: "cg-standing" })),
      h(
        "button",
        {
          class: "cg-button cg-close",
          "aria-label": "close the formula",
          onclick: on.close,
        },
        "×",
      ),
    ),
    h("p", {}, ...tinted([name]), " = ", ...(letters.length ? letters : ["0"]), more),
    h("p", {}, ...tinted(formula(target, terms, sum, more))),
  );
}
