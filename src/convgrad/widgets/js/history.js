// @ts-check
// What was edited, so that it can be taken back: states of the model, no page in here.

import { same } from "./static_page.js";

/** @typedef {Record<string, unknown>} State */

/** How many edits can be taken back. */
export const MOST = 100;

export class History {
  /** @type {State[]} */
  past = [];
  /** @type {State[]} */
  future = [];

  /** @param {State} present @param {number} [most] */
  constructor(present, most = MOST) {
    this.present = present;
    this.most = most;
  }

  /** Takes note of a state, whoever brought it about. @param {State} next */
  see(next) {
    if (same(next, this.present)) return;
    // back where it was: a kernel has refused the edit, or somebody has typed the old number
    if (this.past.length && same(next, this.past.at(-1))) return void this.undo();
    this.past.push(this.present);
    if (this.past.length > this.most) this.past.shift();
    this.future = [];
    this.present = next;
  }

  /** The state before the last edit; null when there is none. */
  undo() {
    return this.#move(this.past, this.future);
  }

  /** The state that was last taken back; null when there is none. */
  redo() {
    return this.#move(this.future, this.past);
  }

  /** @param {State[]} from @param {State[]} to */
  #move(from, to) {
    const state = from.pop();
    if (!state) return null;
    to.push(this.present);
    this.present = state;
    return state;
  }
}
