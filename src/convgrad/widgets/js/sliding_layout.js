// @ts-check
// What the sliding window is made of.  Built once; the drawing writes into it.

import { h, named } from "./dom.js";
import { Sheet } from "./sheet.js";
import { UNDO_KEYS, keysHelp, transport } from "./transport.js";
import { parseNumber } from "./words.js";

/** @typedef {import("./look.js").Look} Look */
/**
 * What the view does when something is used.
 * @typedef {object} Handlers
 * @property {(name: Look["name"] | "patch", row: number, col: number) => void} look
 * @property {(name: Look["name"] | "patch", row: number, col: number) => void} hover
 * @property {() => void} leave
 * @property {(name: Look["name"], slice: number[]) => void} slice
 * @property {(name: "x" | "weight" | "bias", row: number, col: number, value: number) => void} edit
 * @property {(sentence: string) => void} refuse
 * @property {(action: (head: import("./player.js").Head) => import("./player.js").Head) => void} act
 * @property {(speed: number) => void} speed
 * @property {(event: KeyboardEvent) => void} key
 * @property {HTMLElement} message  where complaints are shown
 * @property {HTMLElement} tools
 */
/** @typedef {ReturnType<typeof layout>} Layout */

/** @param {Handlers} on */
export function layout(on) {
  /** @param {string} label */
  const choice = (label) => {
    const buttons = h("span", { class: "cg-examples" });
    const el = h(
      "div",
      { class: "cg-choice", role: "group", "aria-label": label },
      h("span", { class: "cg-legend", "aria-hidden": "true" }, label),
      buttons,
    );
    return { el, buttons };
  };
  const examples = choice("example");
  const kernels = choice("kernel");

  /** @param {Look["name"] | "patch"} name @param {string} key @param {string} words @param {import("./grid.js").GridOptions} [options] */
  const sheet = (name, key, words, options) =>
    new Sheet(
      key,
      name === "patch" ? "x" : name,
      words,
      {
        look: (row, col) => on.look(name, row, col),
        hover: (row, col) => on.hover(name, row, col),
        slice: (slice) => name !== "patch" && on.slice(name, slice),
      },
      options,
    );
  /** @param {"x" | "weight"} name @returns {import("./grid.js").GridOptions} */
  const editable = (name) => ({
    onedit: (row, col, value) => on.edit(name, row, col, value),
    onrefuse: on.refuse,
  });
  const x = sheet("x", "x", "input", editable("x"));
  const w = sheet("w", "kernel", "kernel", editable("weight"));
  const y = sheet("y", "output", "output", {
    onpick: (row, col) => on.look("y", row, col),
  });
  /** @type {(row: number, col: number) => number[] | null} the place of x under a tap; set when drawn */
  let under = () => null;
  const patch = sheet("patch", "x", "under the window", {
    onedit: (row, col, value) => {
      const place = under(row, col);
      if (place) on.edit("x", place[0], place[1], value);
      else on.refuse("This tap lies on zero padding, which is no number of x");
    },
    onrefuse: on.refuse,
  });
  const bias = h("input", { class: "cg-bias", type: "text", autocomplete: "off" });
  bias.addEventListener("change", () => {
    const parsed = parseNumber(bias.value);
    on.refuse("refusal" in parsed ? parsed.refusal : "");
    if ("value" in parsed) on.edit("bias", 0, 0, parsed.value);
  });

  /** @param {string} text */
  const sign = (text) => h("span", { class: "cg-sign", "aria-hidden": "true" }, text);
  const biasBox = h(
    "label",
    { class: "cg-panel cg-bias-box" },
    h("span", { class: "cg-title" }, h("b", {}, "b"), h("span", { class: "cg-words" }, " bias")),
    bias,
  );
  const total = h("output", { class: "cg-total", "aria-live": "off" }); // the sentence is read aloud
  const answer = h("div", { class: "cg-answer" });
  const signs = { times: sign("⋆"), plus: sign("+"), equals: sign("="), arrow: sign("→") };
  const upper = h("div", { class: "cg-operands" });
  const lower = h("div", { class: "cg-operands cg-lower" });
  const stage = h(
    "div",
    {
      class: "cg-stage",
      tabindex: 0,
      role: "group",
      "aria-label": "grids; space plays, arrow keys step",
    },
    upper,
    lower,
  );
  stage.addEventListener("pointerleave", on.leave);

  const head = h("p", { class: "cg-said" });
  const lines = h("div", { class: "cg-lines" });
  const live = h("div", { class: "cg-hidden", role: "status", "aria-live": "polite" });
  const knobs = h("details", { class: "cg-knobs" }, h("summary", {}, "change the convolution"));
  const controls = transport(on, "output cells");
  const root = h(
    "section",
    { class: "cg cg-player cg-sliding" },
    h("div", { class: "cg-top" }, examples.el, kernels.el),
    stage,
    h("div", { class: "cg-bottom" }, head, live, controls.el),
    on.message,
    lines,
    h(
      "div",
      { class: "cg-more" },
      knobs,
      keysHelp([
        ["arrows at an edge", "on to the padding"],
        ["Enter", "edit a number of x or w"],
        ["Escape", "leave a number as it was; back to the playing window"],
        UNDO_KEYS,
      ]),
      on.tools,
    ),
  );
  named(root, "Sliding window");
  root.addEventListener("keydown", on.key);
  return {
    root,
    stage,
    presets: examples.buttons,
    kernels: kernels.buttons,
    kernelChoice: kernels.el,
    x,
    w,
    y,
    patch,
    /** @param {(row: number, col: number) => number[] | null} place */
    setUnder: (place) => (under = place),
    bias,
    biasBox,
    total,
    answer,
    signs,
    upper,
    lower,
    head,
    lines,
    live,
    knobs,
    controls,
    /** The words that are read aloud: the sentence, and a sum that is not too long. */
    said: () => {
      const sum = lines.lastElementChild?.textContent ?? "";
      return `${head.textContent?.replace(/\.$/, "")}. ${sum.length < 160 ? sum : ""}`;
    },
  };
}
