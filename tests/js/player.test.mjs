// @ts-check
// The player without a page: where the head stands, what keys do, where focus goes in a grid.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { moveFocus } from "../../src/convgrad/widgets/js/grid.js";
import {
  advance,
  playhead,
  press,
  resize,
  seek,
  toggle,
} from "../../src/convgrad/widgets/js/player.js";

describe("the head", () => {
  test("starts where it is told, within its list", () => {
    assert.equal(playhead(9).step, 0);
    assert.equal(playhead(9, 4).step, 4);
    assert.equal(playhead(9, 40).step, 9);
    assert.equal(playhead(9, -1).step, 0);
  });

  test("seek goes there, rounds, stays inside and stops", () => {
    const playing = toggle(playhead(9));
    assert.deepEqual([seek(playing, 3).step, seek(playing, 3).playing], [3, false]);
    assert.equal(seek(playing, 2.6).step, 3);
    assert.equal(seek(playing, 99).step, 9);
    assert.equal(seek(playing, -5).step, 0);
  });

  test("play drops the first product at once, then as many as the speed says", () => {
    let head = advance(toggle(playhead(100, 0, 4)), 0);
    assert.equal(head.step, 1);
    head = advance(head, 1000);
    assert.equal(head.step, 5);
  });

  test("parts of a product are carried over from frame to frame", () => {
    let head = { ...toggle(playhead(100, 0, 3)), carry: 0 };
    for (let frame = 0; frame < 60; frame++) head = advance(head, 1000 / 60);
    assert.equal(head.step, 3);
  });

  test("stops at the end, and plays again from the start", () => {
    let head = advance(toggle(playhead(3, 0, 10)), 1000);
    assert.deepEqual([head.step, head.playing], [3, false]);
    head = toggle(head);
    assert.deepEqual([head.step, head.playing], [0, true]);
  });

  test("pauses where it is", () => {
    const head = toggle(advance(toggle(playhead(10, 0, 2)), 1000));
    assert.deepEqual([head.step, head.playing], [3, false]);
    assert.equal(advance(head, 5000), head);
  });

  test("an empty list does not play", () => {
    assert.equal(toggle(playhead(0)).playing, false);
    assert.equal(seek(playhead(0), 1).step, 0);
  });

  test("another list keeps the step where that is possible", () => {
    assert.equal(resize(playhead(10, 7), 20).step, 7);
    assert.equal(resize(playhead(10, 7), 5).step, 5);
    assert.equal(resize(toggle(playhead(10, 7)), 0).playing, false);
  });
});

describe("keys", () => {
  const head = playhead(10, 4);
  for (const [key, step] of /** @type {[string, number][]} */ ([
    ["ArrowRight", 5],
    ["ArrowLeft", 3],
    ["Home", 0],
    ["End", 10],
  ])) {
    test(`${key} goes to ${step}`, () => assert.equal(press(head, key)?.step, step));
  }
  test("Space plays and pauses", () => {
    const playing = press(head, " ");
    assert.equal(playing?.playing, true);
    assert.equal(playing && press(playing, " ")?.playing, false);
  });
  test("other keys are left alone", () => assert.equal(press(head, "a"), null));
});

describe("moving inside a grid of 3 rows and 4 columns", () => {
  for (const [key, to] of /** @type {[string, number[]][]} */ ([
    ["ArrowUp", [0, 2]],
    ["ArrowDown", [2, 2]],
    ["ArrowLeft", [1, 1]],
    ["ArrowRight", [1, 3]],
    ["Home", [1, 0]],
    ["End", [1, 3]],
  ])) {
    test(key, () => assert.deepEqual(moveFocus(key, 1, 2, 3, 4), to));
  }
  test("stops at the edges", () => {
    assert.deepEqual(moveFocus("ArrowUp", 0, 0, 3, 4), [0, 0]);
    assert.deepEqual(moveFocus("ArrowRight", 2, 3, 3, 4), [2, 3]);
  });
  test("knows no other keys", () => assert.equal(moveFocus("Enter", 0, 0, 3, 4), null));
});
