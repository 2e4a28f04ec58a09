// @ts-check
// The lines of a cell that were left out, in words.

/** @typedef {import("./engine.js").Left} Left */

/** "Line 3", "Lines 3 to 5 and 8". @param {Left[]} left */
export function lines(left) {
  /** @type {[number, number][]} */
  const runs = [];
  for (const { first, last } of left) {
    const before = runs.at(-1);
    if (before && first === before[1] + 1) before[1] = last;
    else runs.push([first, last]);
  }
  const words = runs.map(([first, last]) => (first === last ? `${first}` : `${first} to ${last}`));
  const one = runs.length === 1 && runs[0][0] === runs[0][1];
  const all = words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words[0];
  return `${one ? "Line" : "Lines"} ${all}`;
}
