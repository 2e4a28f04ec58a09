// @ts-check
// The duel: which mistake a round hides and among which it is to be found.  Numbers, no page.
// Mirrors duel() of break_the_gradient.py: the same seed hides the same mistakes in both.

import { differ, sameShape } from "./noticing.js";

/** @typedef {import("./conv.js").Target} Target */
/** @typedef {import("./conv.js").Tensor} Tensor */
/** @typedef {{name: string, target: Target}} Named */

const CHOICES = 4; // mistakes to choose from

/** A number below `most` that follows from all that is given. @param {number} most @param {...number} from */
export function draw(most, ...from) {
  let bits = 0x2545f491;
  for (const number of from) {
    bits = Math.imul(bits ^ number, 0x9e3779b1);
    bits ^= bits >>> 15;
    bits = Math.imul(bits, 0x2c1b3c6d);
    bits ^= bits >>> 12;
  }
  return (bits >>> 0) % most;
}

/** Whether two results look alike. @param {Tensor | null} a @param {Tensor | null} b */
export const alike = (a, b) =>
  a === null || b === null
    ? a === b
    : sameShape(a, b) && Array.from(a.data).every((value, k) => !differ(value, b.data[k]));

/**
 * The mistakes that show on these numbers, each with another wrong gradient.
 * @template {Named} M
 * @param {readonly M[]} mistakes
 * @param {(name: string) => Tensor | null} made  what each one makes of the gradient
 * @param {(target: Target) => Tensor} should  the right one
 * @returns {M[]}
 */
export function showing(mistakes, made, should) {
  /** @type {{target: Target, made: Tensor | null}[]} */
  const seen = [];
  return mistakes.filter(({ name, target }) => {
    const array = made(name);
    const known = seen.some((each) => each.target === target && alike(each.made, array));
    if (known || alike(array, should(target))) return false;
    seen.push({ target, made: array });
    return true;
  });
}

/**
 * The mistake of a round and those it is hidden among, in their usual order; null where no
 * gradient has two that can be told apart.
 * @template {Named} M
 * @param {readonly M[]} shown  what `showing` found
 * @param {number} seed @param {number} round
 * @returns {{hidden: M, among: M[]} | null}
 */
export function roundOf(shown, seed, round) {
  const fair = shown.filter(({ target }) => shown.filter((m) => m.target === target).length > 1);
  if (!fair.length) return null;
  // every mistake once, in an order of its own, before any comes again
  const order = fair.map((_, k) => k);
  const cycle = Math.floor(round / fair.length);
  for (let k = fair.length - 1; k > 0; k--) {
    const other = draw(k + 1, seed, cycle, k);
    [order[k], order[other]] = [order[other], order[k]];
  }
  const hidden = fair[order[round % fair.length]];
  const among = fair.filter(({ target }) => target === hidden.target);
  for (let k = 0; among.length > CHOICES; k++) {
    const out = draw(among.length, seed, round, k);
    if (among[out] !== hidden) among.splice(out, 1);
  }
  return { hidden, among };
}
