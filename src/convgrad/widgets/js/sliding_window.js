// @ts-check
// SlidingWindow in the page: an image, a kernel and what it answers, seen from any of the three.

import { GeometryError, forward, geometryOf, ravel, refit, shapes, unravel } from "./conv.js";
import { attribute, fill, h, say } from "./dom.js";
import { copySpec } from "./knobs.js";
import { isThere, parseLook, placeOf, slicesOfLook, writeLook } from "./look.js";
import { product } from "./places.js";
import { clamp, playhead, resize, seek } from "./player.js";
import { asPictures, draw } from "./sliding_drawing.js";
import { layout } from "./sliding_layout.js";
import { PlayedView, Unfinished, widget } from "./view.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Spec} Spec */
/** @typedef {import("./look.js").Look} Look */
/** @typedef {import("./view.js").Model} Model */
/** @typedef {{shape: number[], data: number[]}} Tensor */
/** @typedef {"x" | "weight" | "bias"} Operand */
/** @typedef {{letter: string, title: string, lesson: string, geometry: Spec, peak: boolean, look?: string} & Record<Operand, Tensor>} Preset */
/** @typedef {{name: string, rows: number[][]}} Kernel */
/** @typedef {{geometry: Geometry, arrays: Record<Operand, Tensor>, peak: boolean}} State */

const OPERANDS = /** @type {Operand[]} */ (["x", "weight", "bias"]);
const EDITED = ["geometry", ...OPERANDS];
const KEPT = [...EDITED, "look", "step", "peak"];
const SYNCED = [...KEPT, "speed", "complaint"];

class SlidingView extends PlayedView {
  /** @param {Model} model @param {HTMLElement} el */
  constructor(model, el) {
    super(model, playhead(0));
    this.state = this.#read();
    this.y = forward(this.state.geometry, this.state.arrays, this.state.arrays.bias.data);
    this.head = playhead(this.y.length, model.get("step"), model.get("speed"));
    this.start = /** @type {Preset} */ (
      Object.fromEntries(["look", "peak", "geometry", ...OPERANDS].map((k) => [k, model.get(k)]))
    );
    /** @type {Look | null} what somebody chose to look at, until the next step */
    this.look = parseLook(model.get("look"));
    /** @type {Look | null} what the mouse is over */
    this.hovered = null;
    /** @type {import("./look.js").Slices} */
    this.at = slicesOfLook(this.state.geometry, this.#shown(), { n: 0, o: 0, c: 0 });

    this.ui = layout({
      look: this.guard((name, row, col) => this.#lookAt(this.#inSlice(name, row, col))),
      hover: this.guard((name, row, col) => this.#hover(this.#inSlice(name, row, col))),
      leave: this.guard(() => this.#hover(null)),
      slice: this.guard((name, slice) => this.#turn(name, slice)),
      edit: this.guard((name, row, col, value) => this.#edit(name, row, col, value)),
      refuse: (sentence) => this.complain(sentence),
      act: this.guard((action) => this.move(action(this.head))),
      speed: this.guard((speed) => this.send({ speed })),
      key: this.guard((event) => this.#key(event)),
      message: this.message,
      tools: this.tools,
    });
    this.#build();
    this.#press();
    this.mount(el, this.ui.root, SYNCED);
    this.draw();
  }

  /** @param {typeof import("./tools.js")} tools */
  furnish({ KnobForm }) {
    this.form = new KnobForm(
      this.state.geometry,
      this.guard((wish) => this.#wish(wish)),
    );
    this.ui.knobs.append(this.form.el);
  }

  // ---- model → state -------------------------------------------------------------------------

  /** @returns {State} */
  #read() {
    const { model } = this;
    const geometry = geometryOf(model.get("geometry"));
    const arrays = { x: model.get("x"), weight: model.get("weight"), bias: model.get("bias") };
    const needed = needs(geometry);
    for (const name of OPERANDS) {
      if (`${arrays[name].shape}` !== `${needed[name]}`) throw new Unfinished(name);
    }
    return { geometry, arrays, peak: model.get("peak") };
  }

  follow() {
    const next = this.#read();
    const before = this.state;
    const { geometry: g } = next;
    const resized = JSON.stringify(g) !== JSON.stringify(before.geometry);
    const edited = OPERANDS.some((name) => next.arrays[name] !== before.arrays[name]);
    this.state = next;
    if (resized || edited) {
      this.y = forward(g, next.arrays, next.arrays.bias.data);
      this.#press();
    }
    if (resized) {
      this.head = resize(this.head, this.y.length);
      this.hovered = null;
      this.form?.show(g);
    }
    const [step, speed] = [this.model.get("step"), this.model.get("speed")];
    const moved = step !== this.head.step || speed !== this.head.speed;
    const old = writeLook(this.look);
    const wanted = this.model.get("look");
    if (wanted !== old || resized) {
      const look = parseLook(wanted);
      this.look = look && isThere(g, look) ? look : null;
    } else if (step !== this.head.step) this.look = null; // the window was moved elsewhere
    this.head = { ...this.head, step: clamp(step, 0, this.y.length), speed };
    if (this.look?.name === "y") this.head = seek(this.head, placeOf(g, this.look.index) + 1);
    const complaint = this.model.get("complaint");
    if (complaint) {
      this.complain(complaint);
      this.form?.show(g);
    }
    if (resized || edited || moved || next.peak !== before.peak || writeLook(this.look) !== old) {
      this.at = slicesOfLook(g, this.#shown(), this.at);
      this.draw();
    }
    // such as the step of a cell that is looked at
    this.settle({ look: writeLook(this.look), step: this.head.step });
  }

  // ---- state → model -------------------------------------------------------------------------

  /** @param {Operand} name @param {number} row @param {number} col @param {number} value */
  #edit(name, row, col, value) {
    const { shape, data } = this.state.arrays[name];
    const { n, o, c } = this.at;
    const { geometry: g } = this.state;
    const index = { x: [n, Math.floor(o / g.OG) * g.CG + c, row, col], weight: [o, c, row, col], bias: [o] };
    const copy = [...data];
    copy[ravel(index[name], shape)] = value;
    this.send({ [name]: { shape, data: copy } });
    this.speak();
  }

  /**
   * A wish: taken when such a convolution exists, else explained where it was made.
   * @param {Spec} wish @param {(g: Geometry) => Partial<Record<Operand, Tensor>>} [given]
   * @param {(sentence: string) => void} [refuse]
   */
  #wish(
    wish,
    given = () => ({}),
    refuse = (sentence) => this.form?.refuse(sentence, this.state.geometry),
  ) {
    let g;
    try {
      g = this.#small(geometryOf(wish));
    } catch (error) {
      if (!(error instanceof GeometryError)) throw error;
      refuse(error.message);
      return;
    }
    const needed = needs(g);
    const arrays = { ...this.state.arrays, ...given(g) };
    const fitted = OPERANDS.map((name) => [name, refit(arrays[name], needed[name])]);
    this.send({ geometry: copySpec(wish), ...Object.fromEntries(fitted) });
    this.form?.show(wish);
    this.speak();
  }

  /** Refuses what would be nothing to draw, or too much. @param {Geometry} g */
  #small(g) {
    if (!g.N) {
      throw new GeometryError("the batch is empty, N = 0: the sliding window needs an image");
    }
    const limits = this.model.get("limits");
    const cells = Math.max(...Object.values(shapes(g)).map(product));
    const products = product(shapes(g).grad_output) * g.CG * g.KH * g.KW;
    if (cells > limits.cells || products > limits.products) {
      throw new GeometryError(
        `this has ${products} products and arrays of up to ${cells} cells: the sliding window ` +
          `draws up to ${limits.products} products and ${limits.cells} cells; take fewer ` +
          "channels, or a smaller image",
      );
    }
    return g;
  }

  /** @param {Preset} preset */
  #load({ geometry, x, weight, bias, peak, look = "y[0,0,0,0]" }) {
    this.hovered = null;
    const speed = asPictures(geometry) ? 60 : 2; // a picture has many places
    this.send({ geometry: copySpec(geometry), x, weight, bias, peak, look, speed });
    this.form?.show(geometry);
    this.speak();
  }

  /** Every kernel becomes this one. @param {Kernel} kernel */
  #take({ rows }) {
    const spec = { ...copySpec(this.state.geometry), KH: rows.length, KW: rows[0].length };
    const same = (/** @type {Geometry} */ g) => {
      const shape = shapes(g).weight;
      return { weight: { shape, data: Array(shape[0] * shape[1]).fill(rows.flat()).flat() } };
    };
    this.#wish(spec, same, (sentence) => this.complain(sentence));
  }

  // ---- what is looked at ---------------------------------------------------------------------

  /** What is to be seen: under the mouse, chosen, or the window of the step. @returns {Look | null} */
  #shown() {
    const chosen = this.hovered ?? this.look;
    if (chosen) return chosen;
    const { step } = this.head;
    if (!step) return null;
    return { name: "y", index: unravel(step - 1, shapes(this.state.geometry).grad_output) };
  }

  /** The cell of the slice that is shown. @param {Look["name"] | "patch"} name @param {number} row @param {number} col @returns {Look | null} */
  #inSlice(name, row, col) {
    const { n, o, c } = this.at;
    const { CG, OG } = this.state.geometry;
    if (name === "patch") return { name: "w", index: [o, c, row, col] };
    const index = { x: [n, Math.floor(o / OG) * CG + c], w: [o, c], y: [n, o] }[name];
    return { name, index: [...index, row, col] };
  }

  /** @param {Look | null} look */
  #lookAt(look) {
    if (this.head.playing) this.halt();
    this.hovered = null;
    if (writeLook(look) === writeLook(this.look)) return this.draw();
    this.send({ look: writeLook(look) });
    this.speak();
  }

  /** @param {Look | null} look */
  #hover(look) {
    if (this.head.playing || writeLook(look) === writeLook(this.hovered)) return;
    this.hovered = look;
    this.at = slicesOfLook(this.state.geometry, this.#shown(), this.at);
    this.draw();
  }

  /** Another slice of one array; the others follow. @param {Look["name"]} name @param {number[]} slice */
  #turn(name, slice) {
    const { geometry: g } = this.state;
    this.at = slicesOfLook(g, { name, index: [...slice, 0, 0] }, this.at);
    const { n, o, c } = this.at;
    this.hovered = null;
    // the same cell of the slice that is shown now
    const shown = this.#shown();
    if (shown) {
      const index = { x: [n, Math.floor(o / g.OG) * g.CG + c], w: [o, c], y: [n, o] }[shown.name];
      const look = { name: shown.name, index: [...index, ...shown.index.slice(2)] };
      if (writeLook(look) !== writeLook(shown)) return this.#lookAt(look);
    }
    this.draw();
  }

  leave() {
    this.look = this.hovered = null;
    this.model.set("look", "");
    this.at = slicesOfLook(this.state.geometry, null, this.at);
  }

  speak() {
    say(this.ui.live, this.ui.said());
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const editing = event.target instanceof HTMLInputElement;
    if (event.key === "Escape" && this.look && !editing) this.#lookAt(null);
    else this.playKey(event);
  }

  // ---- drawing -------------------------------------------------------------------------------

  #build() {
    /** @param {string} text @param {string} title @param {() => void} action */
    const button = (text, title, action) =>
      h("button", { title, "aria-label": `${text}: ${title}`, onclick: this.guard(action) }, text);
    const presets = /** @type {Preset[]} */ (this.model.get("presets"));
    fill(
      this.ui.presets,
      ...presets.map((preset) =>
        button(preset.letter, `${preset.title}. ${preset.lesson}`, () => this.#load(preset)),
      ),
      button("reset", "back to the sizes and numbers at the beginning", () =>
        this.#load(this.start),
      ),
    );
    const kernels = /** @type {Kernel[]} */ (this.model.get("kernels"));
    fill(
      this.ui.kernels,
      ...kernels.map((kernel) =>
        h("button", { onclick: this.guard(() => this.#take(kernel)) }, kernel.name),
      ),
    );
  }

  /** Shows which of the presets and kernels stands in the grids. */
  #press() {
    const { state } = this;
    const presets = /** @type {Preset[]} */ (this.model.get("presets"));
    presets.forEach((preset, k) =>
      attribute(this.ui.presets.children[k], "aria-pressed", `${sameNumbers(preset, state)}`),
    );
    const kernels = /** @type {Kernel[]} */ (this.model.get("kernels"));
    const { shape, data } = state.arrays.weight;
    kernels.forEach(({ rows }, k) => {
      const flat = rows.flat();
      const size = `${shape.slice(2)}` === `${[rows.length, rows[0].length]}`;
      const same = size && data.every((value, tap) => value === flat[tap % flat.length]);
      attribute(this.ui.kernels.children[k], "aria-pressed", `${same}`);
    });
  }

  draw() {
    const { state, head, at, y } = this;
    const shown = this.#shown();
    this.at = slicesOfLook(state.geometry, shown, at);
    draw(this.ui, {
      g: state.geometry,
      numbers: { ...state.arrays, y },
      peak: state.peak,
      head,
      shown,
      made: this.look ? y.length : head.step,
      slices: this.at,
    });
  }
}

/** @param {Geometry} g */
const needs = (g) => ({ x: shapes(g).x, weight: shapes(g).weight, bias: [g.O] });

/** @param {Preset} preset @param {State} state */
function sameNumbers(preset, { geometry, arrays }) {
  if (JSON.stringify(copySpec(preset.geometry)) !== JSON.stringify(copySpec(geometry))) return false;
  return OPERANDS.every((name) =>
    preset[name].data.every((value, k) => value === arrays[name].data[k]),
  );
}

/** @type {import("./equip.js").Abilities} */
const abilities = { kept: KEPT, edited: EDITED, code: (get, { program }) => program(get, "y") };

export default widget("sliding window", (model, el) => new SlidingView(model, el), abilities);
