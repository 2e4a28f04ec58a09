// @ts-check
// ThreadGrid in the page: a product cut into tiles, tiles shared out among multiprocessors over
// time, the K loop of one of them, and two runs whose shares arrive in different orders.

import { indices, refit, shapes, sized } from "./conv.js";
import { attribute, fill, freshId, h, named, say, tinted } from "./dom.js";
import { gemm } from "./implicit.js";
import { inked } from "./inked.js";
import { copySpec } from "./knobs.js";
import { choice } from "./layout.js";
import { clamp, playhead, resize, seek } from "./player.js";
import { cut, isDrawn, runAt, scheduleOf, usual } from "./schedule.js";
import { ProductPicture, TimePicture } from "./thread_drawing.js";
import { LoopPane } from "./thread_loop.js";
import { RunsPane } from "./thread_runs.js";
import { CAPTIONS, figures, sizeWords, stepWords } from "./thread_words.js";
import { UNDO_KEYS, drawTransport, keysHelp, transport } from "./transport.js";
import { PlayedView, widget } from "./view.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./implicit.js").Operand} Operand */
/** @typedef {import("./implicit.js").Target} Target */
/** @typedef {import("./schedule.js").Options} Options */
/** @typedef {import("./schedule.js").Schedule} Schedule */
/** @typedef {import("./thread_loop.js").Spot} Spot */
/** @typedef {import("./view.js").Model} Model */
/** @typedef {{shape: number[], data: number[]}} Tensor */
/** @typedef {{letter: string, title: string, lesson: string, geometry: import("./conv.js").Spec} & Partial<Record<Operand, Tensor>>} Preset */
/** @typedef {"time" | "loop" | "runs"} Shown */
/**
 * What is drawn: of a model, with what follows from it.
 * @typedef {object} State
 * @property {Geometry} g
 * @property {Record<Operand, Tensor> | null} arrays  null where there are too many numbers to draw
 * @property {Options} options
 * @property {Schedule} schedule
 * @property {string} key  another one where the schedule is another
 * @property {Shown} view
 * @property {number} watched
 * @property {number[]} cell
 * @property {number} seed
 */

const OPTIONS = ["target", "tile", "splits", "processors", "two_passes"];
const EDITED = ["geometry", "numbers", ...OPTIONS];
const KEPT = [...EDITED, "view", "watched", "cell", "seed", "step"];
const ARRAYS = /** @type {Operand[]} */ (["x", "weight", "grad_output"]);
/** @type {[Shown, string][]} */
const VIEWS = [
  ["time", "time"],
  ["loop", "K loop"],
  ["runs", "two runs"],
];
/** @type {[Target, string][]} */
const TARGETS = [
  ["weight", "grad_weight"],
  ["forward", "forward"],
  ["input", "grad_input"],
];
const SIZES = indices(9).map((k) => 2 ** k); // of tiles
const NARROW = 620; // below it the pictures stand below each other

/** The numbers of a convolution that can be drawn. @param {(name: string) => any} get @returns {Record<Operand, Tensor>} */
function numbersOf(get) {
  const preset = /** @type {Preset[]} */ (get("presets")).find(({ letter }) => letter === get("numbers"));
  const needed = shapes(get("geometry"));
  return /** @type {any} */ (Object.fromEntries(ARRAYS.map((name) => [name, refit((preset?.x && preset[name]) || get(name), needed[name])])));
}

class ThreadView extends PlayedView {
  /** @type {Record<string, any>} */
  #start;
  /** What is looked at by pointer, and by keyboard. @type {(Spot | null)[]} */
  #looks = [null, null];
  #width;
  /** Where to go once another schedule is there. @type {"" | "start" | "end"} */
  #goal = "";
  #presets;
  #targets = choice("multiply", TARGETS, this.guard((target) => this.#take({ target })));
  #views = choice("show", VIEWS, this.guard((view) => this.#take({ view })));
  #passes = choice("shares meet by", [["", "atomics"], ["1", "two passes"]], this.guard((way) => this.#take({ two_passes: Boolean(way) })));
  #fields;
  #caption = h("p", { class: "cg-caption", id: freshId("caption") });
  #product = new ProductPicture(this.guard((tile) => this.#pick(tile)));
  #time = new TimePicture(this.guard((processor) => this.#watch(processor)));
  #loop = new LoopPane(this.guard((spot, byFocus) => this.#look(spot, byFocus)));
  #runs = new RunsPane(
    this.guard((row, col) => this.#choose(row, col)),
    this.guard(() => this.#again()),
  );
  #stage = h("div", { class: "cg-stage", tabindex: 0, role: "group", "aria-label": "tiles and time; space plays, arrow keys step" });
  #spelled = h("p", { class: "cg-spelled" });
  #live = h("div", { class: "cg-hidden", role: "status", "aria-live": "polite" });
  #figures = h("dl", { class: "cg-figures" });
  #knobs = h("details", { class: "cg-knobs" }, h("summary", {}, "change the convolution"));
  #controls = transport({ act: this.guard((action) => this.move(action(this.head))), speed: this.guard((speed) => this.send({ speed })) }, "steps");

  /** @param {Model} model @param {HTMLElement} el */
  constructor(model, el) {
    super(model, playhead(0));
    this.#width = el.clientWidth || 700;
    this.#start = Object.fromEntries(KEPT.slice(0, -1).map((name) => [name, model.get(name)]));
    /** @type {State} */
    this.state = this.#read();
    this.head = playhead(this.#count(), model.get("step"), model.get("speed"));
    const presets = /** @type {Preset[]} */ (model.get("presets"));
    /** @param {string} text @param {string} title @param {() => any} changes */
    const button = (text, title, changes) => h("button", { title, "aria-label": `${text}: ${title}`, onclick: this.guard(() => this.#take(changes())) }, text);
    this.#presets = h(
      "span",
      { class: "cg-examples" },
      ...presets.map(({ letter, title, lesson, geometry }) => button(letter, `${title}. ${lesson}`, () => ({ geometry: copySpec(geometry), numbers: letter, cell: [0, 0, 0], watched: 0 }))),
      button("reset", "back to how it began", () => this.#start),
    );
    this.#fields = this.#makeFields();
    this.#views.el.setAttribute("aria-describedby", this.#caption.id);
    const top = (/** @type {string} */ kind, /** @type {Node[]} */ ...parts) => h("div", { class: `cg-top ${kind}` }, ...parts);
    const root = h(
      "section",
      { class: "cg cg-player cg-threads", onkeydown: this.guard((event) => this.playKey(event)) },
      top("", h("div", { class: "cg-choice", role: "group", "aria-label": "running examples" }, h("span", { class: "cg-legend", "aria-hidden": "true" }, "example"), this.#presets)),
      top("", this.#targets.el, this.#views.el),
      top("cg-settings", ...this.#fields.map(({ el }) => el), this.#passes.el),
      this.#caption,
      this.#stage,
      h("div", { class: "cg-bottom" }, this.#spelled, this.#live, this.#controls.el),
      this.message,
      this.#figures,
      h("div", { class: "cg-more" }, this.#knobs, keysHelp([["↑ ↓ on the timeline", "watch another multiprocessor"], UNDO_KEYS]), this.tools),
    );
    this.root = root;
    named(root, "Thread grid");
    this.draw();
    this.mount(el, root, [...KEPT, ...ARRAYS, "speed", "complaint"]);
    const watch = new ResizeObserver(
      this.guard(() => {
        if (!el.clientWidth || el.clientWidth === this.#width) return;
        this.#width = el.clientWidth;
        this.draw();
      }),
    );
    watch.observe(el);
    this.undo.push(() => watch.disconnect());
  }

  // ---- model → state -------------------------------------------------------------------------

  /** @returns {State} */
  #read() {
    const { model } = this;
    /** @param {string} name @returns {any} */
    const get = (name) => model.get(name);
    const g = sized(get("geometry")); // Python, the form of knobs and links have checked it
    const options = /** @type {Options} */ (/** @type {any} */ (Object.fromEntries(OPTIONS.map((name) => [name, get(name)]))));
    const key = JSON.stringify([g, options]);
    const { M, N, groups } = gemm(g, options.target);
    return {
      g,
      arrays: isDrawn(g, get("limits").drawn) ? numbersOf((name) => (name === "geometry" ? g : get(name))) : null,
      options,
      schedule: this.state?.key === key ? this.state.schedule : scheduleOf(g, options),
      key,
      view: get("view"),
      watched: clamp(get("watched"), 0, options.processors - 1),
      cell: [groups, M, N].map((size, axis) => clamp(get("cell")[axis], 0, size - 1)),
      seed: get("seed"),
    };
  }

  /** How many steps there are: steps in time, or shares that arrive and, in a second pass, are added. */
  #count() {
    const { schedule: { parts, time }, view, options } = this.state;
    return view === "runs" ? parts * (options.two_passes && parts > 1 ? 2 : 1) : time;
  }

  follow() {
    const before = this.state;
    const { model } = this;
    this.state = this.#read();
    const { watched, g } = this.state;
    const [given, speed] = [model.get("step"), model.get("speed")];
    const count = this.#count();
    const step = clamp({ end: count, start: 0, "": given }[this.#goal], 0, count);
    this.#goal = "";
    const playing = this.head.playing && step === this.head.step;
    this.head = { ...resize(this.head, count), step, speed, playing };
    if (this.state.key !== before.key) this.#looks = [null, null];
    this.settle({ step, watched });
    const complaint = model.get("complaint");
    if (complaint) this.complain(complaint);
    if (complaint || JSON.stringify(g) !== JSON.stringify(before.g)) this.form?.show(g);
    this.draw();
  }

  // ---- state → model -------------------------------------------------------------------------

  /** Something else is shown: complete if it was complete before, else from the start. @param {Record<string, any>} changes */
  #take(changes) {
    const { geometry, target } = changes;
    const g = geometry ? sized(geometry) : this.state.g;
    const limits = this.model.get("limits");
    const drawn = isDrawn(g, limits.drawn);
    const isOther = geometry && !changes.tile && (changes.numbers || drawn !== Boolean(this.state.arrays));
    const all = { ...(isOther && usual(g, target ?? this.state.options.target, drawn)), ...changes };
    const { programs } = cut(g, { ...this.state.options, ...all });
    if (programs > limits.programs) {
      const [some, most] = [programs, limits.programs].map((count) => count.toLocaleString("en"));
      this.complain(`this makes ${some} programs: the thread grid draws up to ${most}; take larger tiles or fewer shares`);
      this.form?.show(this.state.g);
      return this.draw();
    }
    this.#goal = this.head.length && this.head.step === this.head.length ? "end" : "start";
    this.head = { ...this.head, playing: false };
    this.send(all);
  }

  /** @param {number} watched */
  #watch(watched) {
    if (watched === this.state.watched) return;
    this.send({ watched });
    this.speak();
  }

  /** The multiprocessor that works on a tile now, or does first. @param {number} tile */
  #pick(tile) {
    const { schedule } = this.state;
    const { step } = this.head;
    const its = schedule.runs.filter(({ program }) => schedule.program(program).tile === tile);
    const now = its.find(({ start, end }) => start < step && step <= end) ?? its[0];
    if (step <= now.start || step > now.end) this.move(seek(this.head, now.start + 1));
    this.#watch(now.processor);
  }

  /** @param {number} row @param {number} col */
  #choose(row, col) {
    const [group, ...at] = this.state.cell;
    if (`${at}` === `${[row, col]}`) return;
    this.send({ cell: [group, row, col] });
    this.speak();
  }

  #again() {
    if (this.state.schedule.parts < 2) return;
    this.send({ seed: (this.state.seed + 2) % 10_000 });
    this.speak();
  }

  /** @param {typeof import("./tools.js")} tools */
  furnish({ knobs }) {
    this.form = knobs(
      () => ({ geometry: this.state.g, arrays: {}, limits: this.model.get("limits"), drawer: "thread grid" }),
      (changes) => this.#take(changes),
      (action) => this.guard(action),
    );
    this.#knobs.append(this.form.el);
  }

  // ---- fields --------------------------------------------------------------------------------

  /** Tile, splits and processors, each with what writes its value. */
  #makeFields() {
    const label = (/** @type {string} */ words, /** @type {HTMLElement} */ field) => h("label", { class: "cg-field" }, h("span", {}, words), field);
    const sides = ["tile rows", "tile columns", "step in K"].map((words, axis) => {
      const field = h("select", { onchange: this.guard(() => this.#take({ tile: this.state.options.tile.map((size, k) => (k === axis ? Number(field.value) : size)) })) });
      const show = () => {
        const value = this.state.options.tile[axis];
        const sizes = [...new Set([...SIZES, value])].sort((a, b) => a - b);
        if (field.childElementCount !== sizes.length) fill(field, ...sizes.map((size) => h("option", { value: size }, `${size}`)));
        field.value = `${value}`;
      };
      return { el: label(words, field), show };
    });
    /** @type {["splits" | "processors", string, () => number][]} */
    const counts = [
      ["splits", "split K into", () => this.state.schedule.steps],
      ["processors", "multiprocessors", () => this.model.get("limits").processors],
    ];
    const counted = counts.map(([trait, words, most]) => {
      const field = h("input", { type: "number", min: 1, step: 1, inputmode: "numeric" });
      // an emptied field: what stood there stands
      field.onchange = this.guard(() => (field.value ? this.#take({ [trait]: clamp(Math.round(field.valueAsNumber), 1, most()) }) : this.draw()));
      const show = () => {
        field.max = `${most()}`;
        field.value = `${this.state.options[trait]}`;
      };
      return { el: label(words, field), show };
    });
    return [...sides, ...counted];
  }

  // ---- looking and drawing -------------------------------------------------------------------

  /** @param {Spot | null} spot @param {boolean} byFocus */
  #look(spot, byFocus) {
    if (this.head.playing || JSON.stringify(this.#looks[Number(byFocus)]) === JSON.stringify(spot)) return;
    // whoever comes last is answered: a pointer that rests gives way to the keyboard
    this.#looks = byFocus ? [null, spot] : [spot, this.#looks[1]];
    this.draw();
    if (spot && byFocus) this.speak();
  }

  leave() {
    this.#looks = [null, null];
  }

  speak() {
    say(this.#live, this.#spelled.textContent ?? "");
  }

  draw() {
    const { state, head } = this;
    const { g, options, schedule, view, watched, cell } = state;
    const { step } = head;
    drawTransport(this.#controls, head);
    this.root.classList.toggle("cg-fast", head.playing && head.speed > 8);
    const presets = /** @type {Preset[]} */ (this.model.get("presets"));
    presets.forEach(({ letter, geometry }, k) => {
      const isShown = this.model.get("numbers") === letter && JSON.stringify(copySpec(geometry)) === JSON.stringify(copySpec(g));
      attribute(this.#presets.children[k], "aria-pressed", `${isShown}`);
    });
    this.#targets.show(options.target);
    this.#views.show(view);
    this.#passes.show(options.two_passes ? "1" : "");
    this.#passes.el.disabled = options.splits < 2;
    for (const { show } of this.#fields) show();
    say(this.#caption, `${CAPTIONS[view]}. ${sizeWords(g, options.target)}.`);
    const counts = figures(schedule);
    if (this.#figures.childElementCount !== counts.length) fill(this.#figures, ...counts.map(([name]) => h("div", {}, h("dt", {}, name), h("dd"))));
    counts.forEach(([, words], k) => say(/** @type {Element} */ (this.#figures.children[k].lastChild), words));
    // the program that is watched: of the last step or, before the first, of the first; or the last there was
    const run = runAt(schedule, watched, Math.max(0, step - 1)) ?? schedule.rows[watched].at(-1) ?? null;
    const parts = { time: [this.#product.el, this.#time.el], loop: [this.#product.el, this.#loop.el], runs: [this.#runs.el] }[view];
    if (parts.some((part, k) => part !== this.#stage.children[k]) || this.#stage.childElementCount !== parts.length) fill(this.#stage, ...parts);
    attribute(this.#stage, "data-view", view);
    const isNarrow = this.#width < NARROW;
    const room = isNarrow ? Math.min(this.#width, 420) : Math.min(320, this.#width * 0.45);
    let words = view === "runs" ? this.#runs.draw({ ...state, step, key: `${state.key} ${cell} ${state.seed} ${JSON.stringify(state.arrays)}` }) : stepWords(schedule, step, watched);
    if (view !== "runs") this.#product.draw(schedule, step, run, run ? schedule.program(run.program).group : 0, room);
    if (view === "time") this.#time.draw(schedule, step, watched, isNarrow ? this.#width : this.#width - room - 28);
    if (view === "loop") words = this.#loop.draw({ ...state, run, step, spot: head.playing ? null : (this.#looks[0] ?? this.#looks[1]) }) || words;
    fill(this.#spelled, ...tinted(inked(words)));
  }
}

/** @type {import("./equip.js").Abilities} */
const abilities = {
  kept: KEPT,
  choices: { target: TARGETS.map(([target]) => target), view: VIEWS.map(([view]) => view) },
  edited: EDITED,
  code: (get, torch) => {
    const shown = /** @type {const} */ ({ weight: "grad_weight", forward: "y", input: "grad_input" })[/** @type {Target} */ (get("target"))];
    const g = sized(get("geometry"));
    if (!isDrawn(g, get("limits").drawn)) return torch.randomCode(g, shown);
    const numbers = /** @type {Record<string, any>} */ (numbersOf((name) => (name === "geometry" ? g : get(name))));
    return torch.program((name) => numbers[name] ?? get(name), shown);
  },
};

export default widget("thread grid", (model, el) => new ThreadView(model, el), abilities);
