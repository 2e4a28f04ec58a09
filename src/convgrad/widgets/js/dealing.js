// @ts-check
// How many devices there are, and how much each gets: a number, and the shares as a sum; and which
// map is drawn.

import { indices } from "./conv.js";
import { fill, freshId, h } from "./dom.js";
import { choice } from "./layout.js";
import { clamp } from "./player.js";
import { evenly } from "./shards.js";

/** Which image, kernel and channel of its group are drawn. @typedef {{n: number, o: number, c: number}} Pick */
/** What is dealt out: how much each device has, how many devices there may be, of what. @typedef {{sizes: number[], most: number, things: string}} Dealt */

/**
 * Fills `place` with the fields; gives back what writes into them.
 * @param {HTMLElement} place @param {(sizes: number[]) => void} take
 * @param {{refuse: (sentence: string) => void, guard: import("./bench.js").Handlers["guard"]}} on
 */
export function dealing(place, take, { refuse, guard }) {
  const id = freshId("devices");
  /** @type {Dealt} */
  let dealt = { sizes: [1], most: 1, things: "" };
  const sum = (/** @type {number[]} */ sizes) => sizes.reduce((all, size) => all + size, 0);
  const deal = guard((/** @type {number} */ devices) => {
    const count = sum(dealt.sizes);
    const P = clamp(Math.round(devices || 1), 1, Math.min(count, dealt.most));
    write(dealt); // a number beyond the limits does not stay
    if (P !== dealt.sizes.length) take(evenly(count, P));
  });
  const share = guard(() => {
    const sizes = (shares.value.match(/\d+/g) ?? []).map(Number);
    const count = sum(dealt.sizes);
    if (sizes.length && sizes.length <= dealt.most && !sizes.includes(0) && sum(sizes) === count) return take(sizes);
    const came = sizes.length ? `${sizes.join(" + ")}${sizes.length > 1 ? ` = ${sum(sizes)}` : ""}` : "empty";
    refuse(`the shares are ${came}: needed are up to ${dealt.most} shares of ${count} ${dealt.things}, each 1 or more, such as ${evenly(count, Math.min(2, count)).join(" + ")}`);
  });
  const number = h("input", { id, type: "number", step: 1, min: 1, inputmode: "numeric", onchange: () => deal(number.valueAsNumber) });
  const button = (/** @type {string} */ sign, /** @type {string} */ word, /** @type {number} */ by) =>
    h("button", { tabindex: -1, "aria-label": `${word} devices`, onclick: () => deal(dealt.sizes.length + by) }, sign);
  const [less, more] = [button("−", "fewer", -1), button("+", "more", 1)];
  const shares = h("input", { class: "cg-shares", type: "text", autocomplete: "off", onchange: share });
  fill(place, h("label", { for: id }, "devices"), h("span", { class: "cg-stepper" }, less, number, more), h("label", {}, "shares", shares));

  /** @param {Dealt} now */
  function write(now) {
    dealt = now;
    const most = Math.min(sum(now.sizes), now.most);
    number.value = `${now.sizes.length}`;
    number.max = `${most}`;
    less.disabled = now.sizes.length === 1;
    more.disabled = now.sizes.length >= most;
    shares.value = now.sizes.join(" + ");
  }
  return write;
}

/**
 * Fills `place` with rows of buttons for image, kernel and channel, where there are several; gives
 * back what writes into them.
 * @param {HTMLElement} place @param {(pick: Pick) => void} take
 * @param {{guard: import("./bench.js").Handlers["guard"]}} on
 */
export function picking(place, take, { guard }) {
  let drawn = "";
  /** @type {(pick: Pick) => void} */
  let show = () => {};
  return (/** @type {import("./conv.js").Geometry} */ g, /** @type {Pick} */ pick) => {
    const axes = /** @type {const} */ ([["n", "image", g.N], ["o", "kernel", g.O], ["c", "channel", g.CG]]);
    if (drawn !== `${axes}`) {
      drawn = `${axes}`;
      let now = pick;
      const several = axes.filter(([, , count]) => count > 1).map(([axis, name, count]) => {
        const options = indices(count).map((k) => /** @type {[string, string]} */ ([`${k}`, `${k}`]));
        return { axis, ...choice(name, options, guard((k) => take({ ...now, [axis]: Number(k) }))) };
      });
      fill(place, ...several.map(({ el }) => el));
      show = (next) => {
        now = next;
        for (const { axis, show: mark } of several) mark(`${now[axis]}`);
      };
    }
    show(pick);
  };
}
