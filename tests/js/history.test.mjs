// @ts-check
// Edits that can be taken back and done again.

import assert from "node:assert/strict";
import { test } from "node:test";

import { History } from "../../src/convgrad/widgets/js/history.js";

/** @param {number} n */
const state = (n) => ({ x: { shape: [1], data: [n] }, geometry: { N: 1 } });

test("undo goes back edit by edit, redo forward again, and both end", () => {
  const edits = new History(state(0));
  edits.see(state(1));
  edits.see(state(2));
  assert.deepEqual(edits.undo(), state(1));
  assert.deepEqual(edits.undo(), state(0));
  assert.equal(edits.undo(), null);
  assert.deepEqual(edits.redo(), state(1));
  assert.deepEqual(edits.redo(), state(2));
  assert.equal(edits.redo(), null);
});

test("what undo brings back is no edit of its own", () => {
  const edits = new History(state(0));
  edits.see(state(1));
  edits.see(/** @type {any} */ (edits.undo()));
  assert.deepEqual([edits.past.length, edits.future.length], [0, 1]);
});

test("an equal state is no edit", () => {
  const edits = new History(state(0));
  edits.see(state(0));
  assert.equal(edits.undo(), null);
});

test("a new edit ends what could be done again", () => {
  const edits = new History(state(0));
  edits.see(state(1));
  edits.undo();
  edits.see(state(5));
  assert.equal(edits.redo(), null);
  assert.deepEqual(edits.undo(), state(0));
});

test("an edit that a kernel refuses leaves nothing to take back", () => {
  const edits = new History(state(0));
  edits.see(state(1));
  edits.see(state(0)); // the kernel gives the old state back
  assert.equal(edits.undo(), null);
});

test("it remembers so many edits and no more", () => {
  const edits = new History(state(0), 3);
  for (let k = 1; k <= 9; k++) edits.see(state(k));
  let oldest = null;
  for (let back = edits.undo(); back; back = edits.undo()) oldest = back;
  assert.deepEqual(oldest, state(6));
});
