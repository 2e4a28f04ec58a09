// @ts-check
// BreakTheGradient: a wrong gradient beside the right one, the checks that notice, and a duel.

import { geometryOf, ravel, shapes, unravel } from "./conv.js";
import { attribute, fill, h, say } from "./dom.js";
import { alike, roundOf, showing } from "./duel.js";
import { MODES, breakLayout } from "./break_layout.js";
import { copySpec } from "./knobs.js";
import { right, wrong } from "./mutants.js";
import { differ, findings, sameShape } from "./noticing.js";
import { sliceName } from "./overview.js";
import { OPERANDS, axesOf, product, table } from "./places.js";
import { clamp } from "./player.js";
import { Unfinished, View, widget } from "./view.js";
import { GRADIENT, formatNumber, subscript } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Spec} Spec */
/** @typedef {import("./conv.js").Target} Target */
/** @typedef {import("./conv.js").Tensor} Tensor */
/** @typedef {import("./places.js").Operand} Operand */
/** @typedef {import("./view.js").Model} Model */
/** A mistake in words: its title, what it does, what gives it away, where it does not show. @typedef {{name: string, target: Target, title: string, sentence: string, tell: string, hides: string}} Mistake */
/** @typedef {{name: string, title: string, does: string}} Check */
/** @typedef {{letter: string, title: string, lesson: string, geometry: Spec} & Record<Operand, {shape: number[], data: number[]}>} Preset */

const EDITED = ["geometry", ...OPERANDS];
const PLAYED = ["mode", "mistake", "seed", "round", "guesses", "revealed", "found", "tries"];

/** @type {[[number, number], [number, number]]} */
const NO_BORDER = [
  [0, 0],
  [0, 0],
];

/** Four axes for drawing: a gradient of the bias is one row. @param {Tensor} array @returns {Tensor} */
const asGrid = ({ shape, data }) =>
  shape.length === 4 ? { shape, data } : { shape: [1, 1, 1, ...shape], data };

class BreakView extends View {
  /** @param {Model} model @param {HTMLElement} el */
  constructor(model, el) {
    super(model);
    this.geometry = geometryOf(model.get("geometry"));
    this.arrays = this.#arrays();
    this.start = { geometry: copySpec(this.geometry), ...this.arrays };
    /** @type {Mistake[]} */
    this.mistakes = model.get("mistakes");
    /** @type {number[] | null} the slice that is drawn large; null: the first with a difference */
    this.slice = null;
    /** @type {Record<Operand, number[]>} */
    this.looked = { x: [0, 0], weight: [0, 0], grad_output: [0, 0] };
    /** @type {number[] | null} row and column of the cell that is spelled out */
    this.chosen = null;
    /** What has been worked out for these numbers. @type {Map<string, Tensor | null>} */
    this.known = new Map();
    this.labelling = 0;
    this.undo.push(() => clearTimeout(this.labelling));
    this.ui = breakLayout({
      mode: this.guard((mode) => {
        this.chosen = this.slice = null;
        this.send({ mode, ...FRESH });
      }),
      mistake: this.guard((mistake) => this.#show(mistake)),
      pick: this.guard((row, col) => this.#pick(row, col)),
      pin: this.guard((slice) => this.#pin(slice)),
      edit: this.guard((name, row, col, value) => this.#edit(name, row, col, value)),
      look: this.guard((name, slice) => {
        this.looked[name] = slice;
        this.#drawOperands();
      }),
      refuse: (sentence) => this.complain(sentence),
      reveal: this.guard(() => this.#reveal()),
      next: this.guard(() => this.#next()),
      key: this.guard((event) => this.#key(event)),
      message: this.message,
      tools: this.tools,
    });
    this.ui.numbers.addEventListener("toggle", this.guard(() => this.#drawOperands()));
    this.mount(el, this.ui.root, [...EDITED, ...PLAYED, "complaint"]);
    this.draw();
  }

  /** @param {typeof import("./tools.js")} tools */
  furnish({ knobs }) {
    const { model } = this;
    this.form = knobs(
      () => ({ geometry: this.geometry, arrays: this.arrays, limits: model.get("limits"), drawer: "widget" }),
      (changes) => this.#change(changes),
      (action) => this.guard(action),
    );
    this.ui.knobs.append(this.form.el);
  }

  // ---- model and state -----------------------------------------------------------------------

  /** @returns {Record<Operand, {shape: number[], data: number[]}>} */
  #arrays() {
    const { model } = this;
    const needed = shapes(geometryOf(model.get("geometry")));
    for (const name of OPERANDS) {
      if (`${model.get(name).shape}` !== `${needed[name]}`) throw new Unfinished(name);
    }
    return { x: model.get("x"), weight: model.get("weight"), grad_output: model.get("grad_output") };
  }

  follow() {
    const arrays = this.#arrays();
    const geometry = geometryOf(this.model.get("geometry"));
    const resized = JSON.stringify(geometry) !== JSON.stringify(this.geometry);
    if (resized) {
      this.geometry = geometry;
      this.form?.show(geometry);
      this.looked = { x: [0, 0], weight: [0, 0], grad_output: [0, 0] };
      this.slice = null;
      this.chosen = null;
    }
    if (resized || OPERANDS.some((name) => arrays[name] !== this.arrays[name])) {
      this.arrays = arrays;
      this.known.clear();
    }
    const complaint = this.model.get("complaint");
    if (complaint) this.complain(complaint);
    this.draw();
  }

  /** Another convolution or other numbers begin the round again. @param {Record<string, any>} changes */
  #change(changes) {
    this.send(this.model.get("mode") === "duel" ? { ...changes, guesses: [], revealed: false } : changes);
  }

  /** @param {Operand} name @param {number} row @param {number} col @param {number} value */
  #edit(name, row, col, value) {
    const { shape, data } = this.arrays[name];
    const copy = [...data];
    copy[ravel([...this.looked[name], row, col], shape)] = value;
    this.#change({ [name]: { shape, data: copy } });
  }

  // ---- which mistake -------------------------------------------------------------------------

  #duelling() {
    return this.model.get("mode") === "duel";
  }

  #round() {
    const shown = showing(
      this.mistakes,
      (name) => this.#made(name),
      (target) => this.#should(target),
    );
    return roundOf(shown, this.model.get("seed"), this.model.get("round"));
  }

  /** What a mistake makes of the gradient. @param {string} name */
  #made(name) {
    const array = this.known.get(name) ?? wrong(name, this.geometry, this.arrays);
    this.known.set(name, array);
    return array;
  }

  /** The right gradient. @param {Target} target */
  #should(target) {
    const array = this.known.get(target) ?? right(target, this.geometry, this.arrays);
    this.known.set(target, array);
    return array;
  }

  /** The mistake whose gradient is drawn. @returns {Mistake | null} */
  #mistake() {
    if (this.#duelling()) return this.#round()?.hidden ?? null;
    const name = this.model.get("mistake");
    return this.mistakes.find((mistake) => mistake.name === name) ?? this.mistakes[0];
  }

  /** @param {string} mistake */
  #show(mistake) {
    this.chosen = this.slice = null;
    this.send({ mistake });
  }

  #solved() {
    const { model } = this;
    return model.get("revealed") || model.get("guesses").includes(this.#round()?.hidden.name);
  }

  /** @param {string} name */
  #guess(name) {
    const { model } = this;
    const guesses = model.get("guesses");
    if (this.#solved() || guesses.includes(name)) return;
    const hit = name === this.#round()?.hidden.name;
    this.send({
      guesses: [...guesses, name],
      tries: model.get("tries") + 1,
      found: model.get("found") + (hit ? 1 : 0),
    });
    if (hit) this.ui.next.focus();
  }

  #reveal() {
    this.send({ revealed: true });
    this.ui.next.focus();
  }

  #next() {
    this.chosen = this.slice = null;
    this.send({ ...FRESH, round: this.model.get("round") + 1 });
    /** @type {HTMLElement | null} */ (this.ui.guesses.querySelector("button"))?.focus();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const at = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (at.closest("input, select, textarea, summary")) return;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const choice = this.#duelling() && this.#round()?.among[Number(event.key) - 1];
    if (choice) this.#guess(choice.name);
    else if (step && !this.#duelling()) {
      const now = this.mistakes.findIndex(({ name }) => name === this.model.get("mistake"));
      const to = this.mistakes[clamp(now + step, 0, this.mistakes.length - 1)];
      this.#show(to.name);
    } else return;
    event.preventDefault();
    event.stopPropagation(); // in a notebook the same keys move between cells
  }

  // ---- drawing -------------------------------------------------------------------------------

  draw() {
    const { ui, model } = this;
    const mistake = this.#mistake();
    const duel = this.#duelling();
    ui.modes.show(model.get("mode"));
    ui.chooser.hidden = ui.sentence.hidden = duel;
    ui.duel.hidden = !duel;
    attribute(ui.stage, "aria-label", duel ? "gradients" : "gradients; arrow keys change the mistake");
    this.#drawPresets();
    this.#drawChooser();
    if (duel) this.#drawDuel();
    ui.stage.hidden = !mistake;
    if (mistake) this.#drawGradients(mistake);
    this.#drawChecks(mistake);
    this.#drawOperands();
  }

  #drawPresets() {
    const presets = /** @type {Preset[]} */ (this.model.get("presets"));
    const box = this.ui.presets;
    if (!box.childElementCount) {
      /** @param {string} text @param {string} title @param {Pick<Preset, "geometry" | Operand>} to */
      const button = (text, title, { geometry, x, weight, grad_output }) => {
        const onclick = this.guard(() => this.#change({ geometry, x, weight, grad_output }));
        return h("button", { title, "aria-label": `${text}: ${title}`, onclick }, text);
      };
      fill(
        box,
        ...presets.map((preset) => button(preset.letter, `${preset.title}. ${preset.lesson}`, preset)),
        button("reset", "back to the sizes and numbers at the beginning", this.start),
      );
    }
    presets.forEach((preset, k) => {
      const same =
        JSON.stringify(copySpec(preset.geometry)) === JSON.stringify(copySpec(this.geometry)) &&
        OPERANDS.every((name) => `${preset[name].data}` === `${this.arrays[name].data}`);
      attribute(box.children[k], "aria-pressed", `${same}`);
    });
  }

  #drawChooser() {
    const { select, sentence } = this.ui;
    if (!select.childElementCount) {
      const targets = [...new Set(this.mistakes.map(({ target }) => target))];
      const groups = targets.map((target) => {
        const own = this.mistakes.filter((mistake) => mistake.target === target);
        const options = own.map(({ name, title }) => h("option", { value: name }, title));
        return h("optgroup", { label: GRADIENT[target] }, ...options);
      });
      fill(select, ...groups);
    }
    // not at once: every mistake has to be tried for that
    clearTimeout(this.labelling);
    this.labelling = window.setTimeout(this.guard(() => this.#label()), 150);
    const mistake = this.#mistake();
    if (!mistake || this.#duelling()) return;
    select.value = mistake.name;
    const hidden = this.#shows(mistake) ? "" : ` Not to be seen here: ${mistake.hides}.`;
    const said = `${mistake.sentence} ${mistake.tell}${hidden}`;
    if (sentence.textContent === said) return; // or it would be read aloud again
    fill(sentence, mistake.sentence, " ", h("span", {}, mistake.tell + hidden));
  }

  /** Says in the list which mistakes make no difference to these numbers. */
  #label() {
    for (const option of this.ui.select.options) {
      const mistake = this.mistakes.find(({ name }) => name === option.value);
      if (!mistake) continue;
      say(option, mistake.title + (this.#shows(mistake) ? "" : " (not to be seen here)"));
    }
  }

  /** Whether it gives another gradient than the right one, or none. @param {Mistake} mistake */
  #shows({ name, target }) {
    return !alike(this.#made(name), this.#should(target));
  }

  /** @param {Mistake} mistake */
  #drawGradients({ name, target }) {
    const { ui, geometry: g } = this;
    const should = asGrid(this.#should(target));
    const made = this.#made(name);
    const broken = made && asGrid(made);
    const axes = axesOf(g, target, "result");
    const wrongs = broken ? wrongCells(broken, should) : new Set();
    const [first] = wrongs;
    const shown = this.slice ?? (first ? first.split(",", 2).map(Number) : [0, 0]);
    /** @param {import("./layout.js").Panel} panel @param {Tensor} array @param {Tensor | null} other @param {Set<string>} marked @param {string} title */
    const drawOne = (panel, array, other, marked, title) => {
      const [A, B, rows, cols] = array.shape;
      const slice = [Math.min(shown[0], A - 1), Math.min(shown[1], B - 1)];
      const cells = table(rows, cols);
      /** @param {readonly number[]} of @param {readonly number[]} cell */
      const isMarked = (of, cell) => marked.has(`${[...of, ...cell]}`);
      panel.title(title, GRADIENT[target]);
      panel.grid.shape(rows, cols, NO_BORDER);
      panel.grid.write((row, col) => array.data[ravel([...slice, row, col], array.shape)]);
      panel.grid.mark(
        "cg-differs",
        cells.filter((cell) => isMarked(slice, cell)),
      );
      for (const cell of cells) {
        const el = panel.grid.cell(...cell);
        if (!isMarked(slice, cell)) el?.removeAttribute("aria-label");
        else el?.setAttribute("aria-label", `${el.textContent}, ${counterpart([...slice, ...cell], other)}`);
      }
      panel.grid.point(this.chosen);
      const name = A * B > 1 ? `, ${sliceName(axes.letters, slice)}` : "";
      panel.grid.label(`${title} ${GRADIENT[target]}${name}: arrow keys move, Enter compares a cell`);
      panel.slices({ ...axes, shape: array.shape }, slice, null, (each) =>
        cells
          .filter((cell) => isMarked(each, cell))
          .map(([row, col]) => `M${col} ${row}h1v1h-1z`)
          .join(""),
      );
      const odd = other && array !== should && !sameShape(array, other);
      say(panel.note, odd ? `shape ${array.shape.join("×")}, needed is ${other.shape.join("×")}` : "");
    };
    // in the right one only what is missing in the other is marked
    drawOne(ui.right, should, broken, broken ? missing(should, broken) : new Set(), "right");
    ui.broken.el.classList.toggle("cg-stopped", !broken);
    if (broken) drawOne(ui.broken, broken, should, wrongs, "broken");
    else {
      ui.broken.title("broken", GRADIENT[target]);
      ui.broken.grid.shape(0, 0, NO_BORDER);
      say(ui.broken.note, "it stops with an error and returns nothing");
    }
    ui.root.classList.toggle("cg-sliced", product(should.shape.slice(0, 2)) > 1);
    this.#spell(target, shown, should, broken);
  }

  /** The chosen cell in words. @param {Target} target @param {number[]} slice @param {Tensor} should @param {Tensor | null} made */
  #spell(target, slice, should, made) {
    const { chosen, ui } = this;
    if (!chosen) {
      say(ui.spelled, `${overall(should, made)} Choose a cell to compare it.`);
      return;
    }
    const index = [...slice, ...chosen];
    const name = subscript(GRADIENT[target], target === "bias" ? [chosen[1]] : index);
    const [a, b] = [should, made].map((array) =>
      array && index.every((k, axis) => k < array.shape[axis])
        ? array.data[ravel(index, array.shape)]
        : null,
    );
    const words = [a, b].map((value) => (value === null ? "no such cell" : formatNumber(value)));
    const off = a !== null && b !== null && differ(a, b) ? `, off by ${formatNumber(b - a)}` : "";
    say(ui.spelled, `${name}: right ${words[0]}, broken ${words[1]}${off}`);
  }

  /** @param {Mistake | null} mistake */
  #drawChecks(mistake) {
    const checks = /** @type {Check[]} */ (this.model.get("checks"));
    const found = mistake ? findings(mistake.name, mistake.target, this.geometry, this.arrays) : [];
    const { body } = this.ui;
    if (body.childElementCount !== checks.length) {
      const rows = checks.map(({ title, does }) =>
        h(
          "tr",
          { role: "row" },
          h("th", { scope: "row", role: "rowheader" }, title, h("small", {}, does)),
          h("td", { role: "cell" }),
          h("td", { role: "cell" }),
        ),
      );
      fill(body, ...rows);
    }
    checks.forEach(({ name }, k) => {
      const row = body.children[k];
      const finding = found.find(({ check }) => check === name);
      row.classList.toggle("cg-silent", !finding?.noticed);
      say(row.children[1], !finding ? "–" : finding.noticed ? "✗ notices" : "○ lets it pass");
      say(row.children[2], finding?.evidence ?? "");
    });
  }

  #drawOperands() {
    const { ui, arrays, geometry: g } = this;
    if (!ui.numbers.open) return; // nobody sees them
    for (const name of OPERANDS) {
      const panel = ui.operands[name];
      const { shape, data } = arrays[name];
      const slice = this.looked[name];
      const axes = axesOf(g, "weight", name);
      panel.grid.shape(shape[2], shape[3], NO_BORDER);
      panel.grid.write((row, col) => data[ravel([...slice, row, col], shape)]);
      panel.slices(axes, slice, null);
      panel.grid.label(`${name}, ${sliceName(axes.letters, slice)}: arrow keys move, Enter edits a number`);
    }
  }

  /** @param {number} row @param {number} col */
  #pick(row, col) {
    this.chosen = `${this.chosen}` === `${[row, col]}` ? null : [row, col];
    this.draw();
  }

  /** @param {number[]} slice */
  #pin(slice) {
    this.slice = slice;
    this.chosen = null;
    this.draw();
  }

  // ---- the duel ------------------------------------------------------------------------------

  #drawDuel() {
    const { ui, model } = this;
    const round = this.#round();
    ui.guesses.hidden = ui.reveal.hidden = ui.next.hidden = !round;
    if (!round) {
      say(ui.question, "On this convolution no two mistakes can be told apart: take a larger one.");
      fill(ui.guesses);
      fill(ui.verdict);
      return;
    }
    const guesses = /** @type {string[]} */ (model.get("guesses"));
    const solved = this.#solved();
    const { hidden, among } = round;
    const number = model.get("round") + 1;
    say(ui.question, `Round ${number}: ${GRADIENT[hidden.target]} is broken. Which mistake is it?`);
    const names = among.map(({ name }) => name);
    if (ui.guesses.dataset.names !== `${names}`) {
      ui.guesses.dataset.names = `${names}`;
      const buttons = among.map(({ name, title }, k) => {
        const onclick = this.guard(() => this.#guess(name));
        return h("button", { class: "cg-guess", onclick }, h("kbd", {}, `${k + 1}`), h("span", {}, title), h("b"));
      });
      fill(ui.guesses, ...buttons);
    }
    among.forEach(({ name }, k) => {
      const button = ui.guesses.children[k];
      const said = guesses.includes(name) || (solved && name === hidden.name);
      const word = said ? (name === hidden.name ? "✓ this one" : "✗ not this one") : "";
      say(/** @type {Element} */ (button.lastElementChild), word);
      attribute(button, "aria-disabled", `${solved || guesses.includes(name)}`);
    });
    ui.reveal.hidden = solved;
    ui.next.hidden = !solved;
    const [found, tries] = [model.get("found"), model.get("tries")];
    const times = `${tries} guess${tries === 1 ? "" : "es"}`;
    say(ui.score, tries ? `${found} found with ${times}` : "");
    this.#drawVerdict(round, guesses.at(-1), solved);
  }

  /** @param {{hidden: Mistake, among: Mistake[]}} round @param {string | undefined} last @param {boolean} solved */
  #drawVerdict({ hidden, among }, last, solved) {
    const { verdict } = this.ui;
    if (solved) {
      const word = last === hidden.name ? "Found." : `It was: ${hidden.title}.`;
      return fill(verdict, h("p", {}, h("strong", {}, word), " ", hidden.sentence), h("p", {}, hidden.tell));
    }
    const guess = among.find(({ name }) => name === last);
    if (!guess) return fill(verdict);
    fill(
      verdict,
      h("p", {}, h("strong", {}, "Not this one."), " ", guess.sentence, " ", this.#refutation(guess, hidden)),
    );
  }

  /** Where the gradient of the guess is another one than what is shown. @param {Mistake} guess @param {Mistake} hidden */
  #refutation({ name, target, tell }, hidden) {
    const [guessed, made] = [name, hidden.name].map((each) => {
      const array = this.#made(each);
      return array && asGrid(array);
    });
    if (!guessed) return "It would stop with an error; this one returns a gradient.";
    if (!made) return "It would return a gradient; this one stops with an error.";
    if (!sameShape(guessed, made)) {
      const [would, does] = [guessed, made].map(({ shape }) => shape.join("×"));
      return `It would give the shape ${would}, this one gives ${does}.`;
    }
    const [first] = wrongCells(guessed, made);
    const index = String(first).split(",").map(Number);
    const [would, does] = [guessed, made].map(({ data, shape }) => formatNumber(data[ravel(index, shape)]));
    const cell = subscript(GRADIENT[target], target === "bias" ? index.slice(3) : index);
    return `It would put ${would} into ${cell}, where ${does} stands. ${tell}`;
  }
}

/** What a round begins with. */
const FRESH = { guesses: [], revealed: false };

/** The cells of `array` that are not those of `other`, as texts; those beyond it too, unless they are not asked for. @param {Tensor} array @param {Tensor} other @param {boolean} [beyond] @returns {Set<string>} */
function wrongCells(array, other, beyond = true) {
  /** @type {Set<string>} */
  const wrongs = new Set();
  for (let k = 0; k < array.data.length; k++) {
    const index = unravel(k, array.shape);
    const there = index.every((at, axis) => at < other.shape[axis]);
    if (there ? differ(array.data[k], other.data[ravel(index, other.shape)]) : beyond) wrongs.add(`${index}`);
  }
  return wrongs;
}

/** The cells of the right gradient that the broken one has not. @param {Tensor} should @param {Tensor} broken */
const missing = (should, broken) =>
  new Set(
    Array.from(should.data, (_, k) => unravel(k, should.shape))
      .filter((index) => index.some((at, axis) => at >= broken.shape[axis]))
      .map((index) => `${index}`),
  );

/** How far off a gradient is, in a sentence. @param {Tensor} should @param {Tensor | null} made */
function overall(should, made) {
  if (!made) return "It returns nothing.";
  const shared = wrongCells(made, should, false).size;
  if (sameShape(made, should)) return `${shared} of ${product(should.shape)} cells differ.`;
  const [has, needs] = [made, should].map(({ shape }) => shape.join("×"));
  return `Its shape is ${has}, needed is ${needs}. Of the cells that both have, ${shared} differ.`;
}

/** What the other gradient has in a cell, in words. @param {number[]} index @param {Tensor | null} other */
function counterpart(index, other) {
  if (!other || index.some((at, axis) => at >= other.shape[axis])) return "the other has no such cell";
  return `right is ${formatNumber(other.data[ravel(index, other.shape)])}`;
}

/** @type {import("./equip.js").Abilities} */
const abilities = {
  kept: [...EDITED, "mode", "mistake", "seed", "round"],
  choices: { mode: MODES },
  edited: EDITED,
  // the right gradients; which of them a duel is about must not be told
  code: (get, { program }) => program(get, ...Object.values(GRADIENT)),
};

export default widget("widget", (model, el) => new BreakView(model, el), abilities);
