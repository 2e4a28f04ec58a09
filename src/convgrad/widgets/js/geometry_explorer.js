// @ts-check
// GeometryExplorer in the page: sizes as formulas, a map of what the windows read, and the border.

import { GeometryError, geometryOf, paddedSize, samePadding } from "./conv.js";
import { attribute, say } from "./dom.js";
import { draw } from "./explorer_drawing.js";
import { layout } from "./explorer_layout.js";
import { isOneDimensional, mapWords } from "./explorer_words.js";
import { copySpec } from "./knobs.js";
import { View, widget } from "./view.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Spec} Spec */
/** @typedef {import("./explorer_layout.js").Preset} Preset */
/** @typedef {import("./explorer_words.js").Spot} Spot */
/** @typedef {import("./view.js").Model} Model */

const EDITED = ["geometry", "transposed", "view"];
const KEPT = [...EDITED, "look"];
const SYNCED = [...KEPT, "complaint"];

/** @param {string} text @returns {Spot | null} */
export function parseSpot(text) {
  const match = /^([xy])\[(-?\d+),(-?\d+)\]$/.exec(text);
  if (!match) return null;
  const name = /** @type {Spot["name"]} */ (match[1]);
  return { name, index: [Number(match[2]), Number(match[3])] };
}

/** @param {Spot | null} spot */
const writeSpot = (spot) => (spot ? `${spot.name}[${spot.index}]` : "");

class ExplorerView extends View {
  /** @param {Model} model @param {HTMLElement} el */
  constructor(model, el) {
    super(model);
    this.g = geometryOf(model.get("geometry"));
    this.start = /** @type {Preset} */ (
      Object.fromEntries(["geometry", "transposed", "view"].map((name) => [name, model.get(name)]))
    );
    /** @type {Spot | null} */
    this.look = parseSpot(model.get("look"));
    /** @type {Spot | null} */
    this.hovered = null;
    /** @type {Spec | null} the rows of before, to come back to from one axis */
    this.tall = null;
    const presets = /** @type {Preset[]} */ (model.get("presets"));
    const reset = { ...this.start, name: "reset", title: "back to the sizes at the beginning" };
    this.ui = layout(this.g, [...presets, reset], {
      look: this.guard((name, row, col) => this.#lookAt(this.#spot(name, row, col))),
      hover: this.guard((name, row, col) => this.#hover(this.#spot(name, row, col))),
      leave: this.guard(() => this.#hover(null)),
      wish: this.guard((wish) => this.#wish(wish)),
      same: this.guard(() => this.#same()),
      axes: this.guard((axes) => this.#turn(axes)),
      choose: this.guard((trait, value) => {
        this.send({ [trait]: value });
        this.#speak();
      }),
      load: this.guard((preset) => this.#load(preset)),
      key: this.guard((event) => this.#key(event)),
      message: this.message,
      tools: this.tools,
    });
    this.mount(el, this.ui.root, SYNCED);
    this.draw();
  }

  // ---- model → view --------------------------------------------------------------------------

  follow() {
    const g = geometryOf(this.model.get("geometry"));
    if (JSON.stringify(g) !== JSON.stringify(this.g)) {
      this.g = g;
      this.hovered = null;
      for (const form of this.ui.forms) form.show(g);
    }
    const look = parseSpot(this.model.get("look"));
    this.look = look && this.#isThere(look) ? look : null;
    const complaint = this.model.get("complaint");
    if (complaint) this.complain(complaint);
    this.draw();
  }

  /** @param {Spec} wish */
  #wish(wish) {
    const form = this.ui.forms[isOneDimensional(this.g) ? 0 : 1];
    try {
      fits(geometryOf(wish), this.model.get("limits"));
    } catch (error) {
      if (!(error instanceof GeometryError)) throw error;
      form.refuse(error.message, this.g);
      return;
    }
    this.send({ geometry: copySpec(wish), look: "" });
    form.show(wish);
    this.#speak();
  }

  /** What there is now, where nobody looks at a cell. */
  #speak() {
    const { g } = this;
    const cells = isOneDimensional(g) ? g.OW : `${g.OH}×${g.OW}`;
    say(this.ui.live, `y has ${cells} cells. ${mapWords(g, this.model.get("transposed"))}`);
  }

  #same() {
    const form = this.ui.forms[isOneDimensional(this.g) ? 0 : 1];
    try {
      this.#wish({ ...copySpec(this.g), padding: samePadding(this.g) });
    } catch (error) {
      if (!(error instanceof GeometryError)) throw error;
      form.refuse(error.message, this.g);
    }
  }

  /** From two axes to one and back; what the rows were is kept. @param {string} to */
  #turn(to) {
    const spec = copySpec(this.g);
    if ((to === "1") === isOneDimensional(spec)) return;
    if (to === "1") {
      this.tall = copySpec(spec);
      spec.H = spec.KH = spec.stride[0] = spec.dilation[0] = 1;
      spec.padding[0] = [0, 0];
    } else {
      const { H, KH, stride, dilation, padding } = this.tall ?? {
        ...spec,
        H: spec.W,
        KH: spec.KW,
        stride: [spec.stride[1]],
        dilation: [spec.dilation[1]],
        padding: [spec.padding[1]],
      };
      [spec.H, spec.KH, spec.stride[0], spec.dilation[0]] = [H, KH, stride[0], dilation[0]];
      spec.padding[0] = /** @type {[number, number]} */ ([...padding[0]]);
    }
    this.#wish(spec);
    this.draw();
  }

  /** @param {Preset} preset */
  #load({ geometry, transposed, view }) {
    this.send({ geometry: copySpec(geometry), transposed, view, look: "" });
    this.#speak();
  }

  // ---- what is looked at ---------------------------------------------------------------------

  /** Grids count from 0; the border of x begins before. @param {Spot["name"]} name @param {number} row @param {number} col @returns {Spot} */
  #spot(name, row, col) {
    const [[top], [left]] = this.g.padding;
    if (name === "x") return { name, index: [row - top, col - left] };
    return { name, index: isOneDimensional(this.g) ? [0, row] : [row, col] }; // a row a window
  }

  /** @param {Spot} spot */
  #isThere({ name, index: [row, col] }) {
    const { g } = this;
    if (name === "y") return row >= 0 && col >= 0 && row < g.OH && col < g.OW;
    const [[top, bottom], [left, right]] = g.padding;
    return row >= -top && col >= -left && row < g.H + bottom && col < g.W + right;
  }

  /** @param {Spot | null} spot */
  #lookAt(spot) {
    this.hovered = null;
    if (writeSpot(spot) === writeSpot(this.look)) return this.draw();
    this.send({ look: writeSpot(spot) });
    const lines = [...this.ui.lines.children].map((each) => each.textContent);
    say(this.ui.live, `${this.ui.said.textContent}. ${lines.join("; ")}`);
  }

  /** @param {Spot | null} spot */
  #hover(spot) {
    if (writeSpot(spot) === writeSpot(this.hovered)) return;
    this.hovered = spot;
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Escape" && this.look) this.#lookAt(null);
  }

  draw() {
    const { g, model } = this;
    const transposed = model.get("transposed");
    const presets = /** @type {Preset[]} */ (model.get("presets"));
    presets.forEach((preset, k) => {
      const same =
        JSON.stringify(copySpec(preset.geometry)) === JSON.stringify(copySpec(g)) &&
        preset.transposed === transposed;
      attribute(this.ui.buttons.children[k], "aria-pressed", `${same}`);
    });
    const spot = this.hovered ?? this.look;
    draw(this.ui, { g, transposed, often: model.get("view") === "uses", spot });
  }
}

/** Refuses what is too large, or more than one plane. @param {Geometry} g @param {{cells: number}} limits */
function fits(g, limits) {
  const [height, width] = paddedSize(g);
  if (height * width > limits.cells) {
    throw new GeometryError(
      `the padded input is ${height}×${width}, ${height * width} cells: the explorer draws ` +
        `up to ${limits.cells}; take a smaller input or less padding`,
    );
  }
  if ([g.N, g.C, g.O].some((count) => count !== 1)) {
    throw new GeometryError("the explorer draws one image, one channel and one kernel");
  }
}

/** @type {import("./equip.js").Abilities} */
const abilities = {
  kept: KEPT,
  choices: { view: ["uses", "source"] },
  edited: EDITED,
  fits,
  code: (get, torch) => torch.layerCode(geometryOf(get("geometry")), get("transposed")),
};

export default widget("geometry explorer", (model, el) => new ExplorerView(model, el), abilities);
