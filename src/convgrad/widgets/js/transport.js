// @ts-check
// The one row of controls with which steps are played: buttons, a slider, a counter, the speed.

import { attribute, drawing, fill, h, say } from "./dom.js";
import { SPEEDS, seek, toggle } from "./player.js";

/** @typedef {import("./player.js").Head} Head */
/** @typedef {ReturnType<typeof transport>} Transport */

/**
 * @param {{act: (action: (head: Head) => Head) => void, speed: (speed: number) => void}} on
 * @param {string} unit  what is counted: "products"
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
  const count = h("output", { class: "cg-count" });
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

/** Where the head stands, written into the controls. @param {Transport} controls @param {Head} head */
export function drawControls(controls, { step, length, playing, speed }) {
  controls.scrub.max = String(length);
  controls.scrub.value = String(step);
  controls.scrub.setAttribute("aria-valuetext", `step ${step} of ${length}`);
  say(controls.count, `${step} / ${length}`);
  controls.count.style.minWidth = `${2 * String(length).length + 3}ch`;
  const label = playing ? "pause" : "play";
  if (controls.play.getAttribute("aria-label") !== label) {
    controls.play.setAttribute("aria-label", label);
    controls.play.title = label;
    fill(controls.play, drawnIcon(label));
  }
  // not `disabled`, which would throw the focus away at either end
  for (const button of [controls.first, controls.back]) dim(button, step === 0);
  for (const button of [controls.last, controls.next]) dim(button, step === length);
  const speeds = [...new Set([...SPEEDS, speed])].sort((a, b) => a - b);
  if (controls.speed.childElementCount !== speeds.length || controls.speed.value !== `${speed}`) {
    fill(controls.speed, ...speeds.map((rate) => h("option", { value: rate }, `${rate} / s`)));
    controls.speed.value = `${speed}`;
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
