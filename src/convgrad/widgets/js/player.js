// @ts-check
// Where the player stands, as plain values: no clock and no page in here.
// `step` counts the products that have fallen, from 0 (none) to `length` (all).

/** @typedef {{step: number, length: number, playing: boolean, speed: number, carry: number}} Head */

/** Products a second that can be chosen. */
export const SPEEDS = [1, 2, 4, 8, 16, 60, 240];

/** @param {number} length @param {number} [step] @param {number} [speed] @returns {Head} */
export const playhead = (length, step = 0, speed = 2) => ({
  step: clamp(step, 0, length),
  length,
  playing: false,
  speed,
  carry: 0,
});

/** Go to a step; stops playing. @param {Head} head @param {number} step @returns {Head} */
export const seek = (head, step) => ({
  ...head,
  step: clamp(Math.round(step), 0, head.length),
  playing: false,
  carry: 0,
});

/** Play or pause; from the end it plays again from the start. @param {Head} head @returns {Head} */
export function toggle(head) {
  if (head.playing || head.length === 0) return { ...head, playing: false, carry: 0 };
  // the first product falls at once, not after a pause
  return { ...head, playing: true, step: head.step >= head.length ? 0 : head.step, carry: 1 };
}

/**
 * Let time pass: as many products fall as the speed says; stops at the end.
 * @param {Head} head @param {number} milliseconds @returns {Head}
 */
export function advance(head, milliseconds) {
  if (!head.playing) return head;
  const due = head.carry + (head.speed * milliseconds) / 1000;
  const whole = Math.floor(due + 1e-9);
  const step = Math.min(head.step + whole, head.length);
  return { ...head, step, carry: Math.max(0, due - whole), playing: step < head.length };
}

/** Another list of products: stay where that is possible. @param {Head} head @param {number} length @returns {Head} */
export const resize = (head, length) =>
  length === head.length
    ? head
    : { ...head, length, step: clamp(head.step, 0, length), playing: head.playing && length > 0 };

/**
 * What a key does to the player, or null when it is not one of its keys.
 * @param {Head} head @param {string} key @returns {Head | null}
 */
export function press(head, key) {
  switch (key) {
    case " ":
      return toggle(head);
    case "ArrowRight":
      return seek(head, head.step + 1);
    case "ArrowLeft":
      return seek(head, head.step - 1);
    case "Home":
      return seek(head, 0);
    case "End":
      return seek(head, head.length);
    default:
      return null;
  }
}

/** @param {number} value @param {number} least @param {number} most */
export const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
