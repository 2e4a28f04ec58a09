// @ts-check
// The one row of controls that plays, steps and scrubs, and the list of its keys.

import { attribute, drawing, fill, h, say } from "./dom.js";
import { SPEEDS, seek, toggle } from "./player.js";

/** @typedef {import("./player.js").Head} Head */
/** @typedef {ReturnType<typeof transport>} Transport */

/**
 * @param {{act: (action: (head: Head) => Head) => void, speed: (speed: number) => void}} on
 * @param {string} unit  what the speed counts
 */
export function transport(on, unit) {
  /** @param {string} name @param {string} label @param {(head: Head) => Head} action */
  const button = (name, label, action) =>
    h(
      "button",
      {
        class: `cg-button cg-${name}`,
        "aria-label": label,
        title: label,
        onclick: () => on.act(action),
      },
      drawnIcon(name),
    );
  const first = button("first", "to the start", (head) => seek(head, 0));
  const back = button("back", "one step back", (head) => seek(head, head.step - 1));
  const play = button("play", "play", toggle);
  const next = button("next", "one step on", (head) => seek(head, head.step + 1));
  const last = button("last", "to the end", (head) => seek(head, head.length));
  const scrub = h("input", {
    type: "range",
    class: "cg-scrub",
    min: 0,
    step: 1,
    "aria-label": "step",
    oninput: () => on.act((head) => seek(head, Number(scrub.value))),
  });
  // an output would be read aloud at every step of the clock
  const count = h("output", { class: "cg-count", "aria-live": "off" });
  const speed = h("select", {
    "aria-label": `speed, ${unit} a second`,
    onchange: () => on.speed(Number(speed.value)),
  });
  const el = h(
    "div",
    { class: "cg-controls", role: "group", "aria-label": "playing" },
    h("span", { class: "cg-buttons" }, first, back, play, next, last),
    scrub,
    count,
    speed,
  );
  return { el, first, back, play, next, last, scrub, count, speed };
}

/** @param {Transport} controls @param {Head} head */
export function drawTransport(controls, { step, length, playing, speed }) {
  const { scrub, count, play, first, back, next, last, speed: choice } = controls;
  scrub.max = String(length);
  scrub.value = String(step);
  attribute(scrub, "aria-valuetext", `step ${step} of ${length}`);
  say(count, `${step} / ${length}`);
  count.style.minWidth = `${2 * String(length).length + 3}ch`;
  const label = playing ? "pause" : "play";
  if (play.title !== label) {
    attribute(play, "aria-label", label);
    play.title = label;
    fill(play, drawnIcon(label));
  }
  // not `disabled`, which would throw the focus away at either end
  for (const button of [first, back]) dim(button, step === 0);
  for (const button of [last, next]) dim(button, step === length);
  const speeds = [...new Set([...SPEEDS, speed])].sort((a, b) => a - b);
  if (choice.childElementCount !== speeds.length || choice.value !== `${speed}`) {
    fill(choice, ...speeds.map((rate) => h("option", { value: rate }, `${rate} / s`)));
    choice.value = `${speed}`;
  }
}

/** @param {HTMLElement} button @param {boolean} off */
const dim = (button, off) => attribute(button, "aria-disabled", `${off}`);

/** @type {Record<string, string>} paths on a square of 24 */
const ICONS = {
  first: "M6 5v14M19 5.5v13L9 12z",
  back: "M17 5.5v13L7 12z",
  play: "M7 4.5v15L20 12z",
  pause: "M7 5h3.5v14H7zM13.5 5H17v14h-3.5z",
  next: "M7 5.5v13L17 12z",
  last: "M18 5v14M5 5.5v13L15 12z",
};

/** @param {string} name */
function drawnIcon(name) {
  const { svg, path } = drawing("0 0 24 24");
  path.setAttribute("d", ICONS[name]);
  return svg;
}

/** Of the widgets that have undo. @type {[string, string]} */
export const UNDO_KEYS = ["Ctrl+Z Ctrl+Y", "take back an edit or a knob, do it again"];

/** What the keys do; `extra` are those of one widget. @param {[string, string][]} extra */
export function keysHelp(extra) {
  const keys = [
    ["Space", "play or pause"],
    ["→ ←", "one step on or back"],
    ["Home End", "to the start or the end"],
    ["arrows in a grid", "from cell to cell"],
    ...extra,
  ];
  return keysList(keys);
}

/** @param {string[][]} keys */
export const keysList = (keys) =>
  h(
    "details",
    { class: "cg-keys" },
    h("summary", {}, "keys"),
    h(
      "dl",
      {},
      ...keys.flatMap(([key, does]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)]),
    ),
  );
