// @ts-check
// What BreakTheGradient is made of: two gradients side by side, the table of checks, the duel.

import { freshId, h, named } from "./dom.js";
import { Panel, choice } from "./layout.js";
import { UNDO_KEYS, keysList } from "./transport.js";

/** @typedef {import("./places.js").Operand} Operand */
/**
 * What the view does when something is used.
 * @typedef {object} Handlers
 * @property {(mode: string) => void} mode
 * @property {(name: string) => void} mistake
 * @property {(row: number, col: number) => void} pick
 * @property {(slice: number[]) => void} pin
 * @property {(name: Operand, row: number, col: number, value: number) => void} edit
 * @property {(name: Operand, slice: number[]) => void} look  at another slice of an operand
 * @property {(sentence: string) => void} refuse
 * @property {() => void} reveal
 * @property {() => void} next
 * @property {(event: KeyboardEvent) => void} key
 * @property {HTMLElement} message
 * @property {HTMLElement} tools
 */

/** @typedef {ReturnType<typeof breakLayout>} Layout */

export const MODES = ["look", "duel"];

/** @type {Record<Operand, [string, string, string]>} colour, letter, words */
const OPERANDS = {
  x: ["x", "x", "input"],
  weight: ["kernel", "w", "kernel"],
  grad_output: ["grad_output", "g", "upstream gradient"],
};

/** @param {Handlers} on */
export function breakLayout(on) {
  const presets = h("span", { class: "cg-examples" });
  const modes = choice(
    "mode",
    [
      ["look", "look"],
      ["duel", "find it: a duel"],
    ],
    on.mode,
  );
  const id = freshId("mistake");
  const select = h("select", { id, onchange: () => on.mistake(select.value) });
  const chooser = h("div", { class: "cg-field cg-mistake" }, h("label", { for: id }, "mistake"), select);
  const sentence = h("p", { class: "cg-caption", "aria-live": "polite" });

  const question = h("p", { class: "cg-question" });
  const guesses = h("div", { class: "cg-guesses", role: "group", "aria-label": "which mistake is it?" });
  const verdict = h("div", { class: "cg-verdict", role: "status", tabindex: -1 });
  const reveal = h("button", { class: "cg-plain", onclick: on.reveal }, "show the answer");
  const next = h("button", { class: "cg-plain cg-strong", onclick: on.next }, "next round");
  const score = h("span", { class: "cg-score" });
  const duel = h(
    "div",
    { class: "cg-duel" },
    question,
    guesses,
    verdict,
    h("div", { class: "cg-duel-row" }, next, reveal, score),
  );

  const options = { onpick: on.pick };
  const right = new Panel("result", on.pin, options);
  const broken = new Panel("result", on.pin, options);
  broken.el.classList.add("cg-broken");
  const stage = h(
    "div",
    {
      class: "cg-stage",
      tabindex: 0,
      role: "group",
      "aria-label": "gradients; arrow keys change the mistake",
    },
    h(
      "div",
      { class: "cg-operands" },
      right.el,
      h("span", { class: "cg-sign", "aria-hidden": "true" }, "≠"),
      broken.el,
    ),
    h("p", { class: "cg-key", "aria-hidden": "true" }, h("i", { class: "cg-differs" }), " differs from the right one"),
  );
  const spelled = h("p", { class: "cg-spelled", role: "status" });

  const body = h("tbody", { role: "rowgroup" });
  const heads = ["check", "notices it?", "by these numbers"];
  const checks = h(
    "table",
    // the roles outright: a narrow screen shows it as blocks, and browsers forget that it is a table
    { class: "cg-checks", role: "table" },
    h("caption", {}, "Which checks notice?"),
    h(
      "thead",
      { role: "rowgroup" },
      h("tr", { role: "row" }, ...heads.map((text) => h("th", { scope: "col", role: "columnheader" }, text))),
    ),
    body,
  );

  /** @param {Operand} name */
  const operand = (name) => {
    const [key, ...title] = OPERANDS[name];
    const panel = new Panel(key, (slice) => on.look(name, slice), {
      onedit: (row, col, value) => on.edit(name, row, col, value),
      onrefuse: on.refuse,
    });
    panel.title(...title);
    return panel;
  };
  const operands = { x: operand("x"), weight: operand("weight"), grad_output: operand("grad_output") };
  const numbers = h(
    "details",
    { class: "cg-numbers" },
    h("summary", {}, "x, w and g"),
    h("div", { class: "cg-operands" }, ...Object.values(operands).map((panel) => panel.el)),
  );
  const knobs = h("details", { class: "cg-knobs" }, h("summary", {}, "change the convolution"));
  const root = h(
    "section",
    { class: "cg cg-player cg-break" },
    h(
      "div",
      { class: "cg-top" },
      h(
        "div",
        { class: "cg-choice", role: "group", "aria-label": "running examples" },
        h("span", { class: "cg-legend", "aria-hidden": "true" }, "example"),
        presets,
      ),
      modes.el,
    ),
    h("div", { class: "cg-top cg-which" }, chooser, sentence),
    duel,
    stage,
    spelled,
    on.message,
    h("div", { class: "cg-scroll" }, checks),
    h("div", { class: "cg-more" }, numbers, knobs, keysList(KEYS), on.tools),
  );
  named(root, "Break the gradient");
  root.addEventListener("keydown", on.key);
  return {
    ...{ root, presets, modes, select, chooser, sentence, stage, right, broken, spelled, body },
    ...{ duel, question, guesses, verdict, reveal, next, score, operands, numbers, knobs },
  };
}

const KEYS = [
  ["→ ←", "the next mistake, the one before"],
  ["1 … 4", "in the duel: guess"],
  ["arrows in a grid", "from cell to cell"],
  ["Enter", "on a cell: what stands there and what should; on x, w, g: edit"],
  UNDO_KEYS,
];
