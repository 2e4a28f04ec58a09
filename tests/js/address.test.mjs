// @ts-check
// What a link keeps: whatever is written can be read, and what is broken is refused in words.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  BrokenLink,
  differences,
  fragmentOf,
  partsOf,
  stateOf,
} from "../../src/convgrad/widgets/js/address.js";
import { refit } from "../../src/convgrad/widgets/js/conv.js";
import { spec } from "./specs.mjs";

const KEPT = ["geometry", "x", "target", "step", "include_padding", "note"];
const CHOICES = { target: ["weight", "input", "bias"] };

const base = () => ({
  geometry: spec(),
  x: { shape: [1, 1, 5, 5], data: Array.from({ length: 25 }, (_, k) => k % 4) },
  target: "weight",
  step: 0,
  include_padding: true,
  note: "a & b = c#d é",
});
/** @typedef {ReturnType<typeof base>} State */

/** Through the address and back. @param {State} now @param {State} [from] */
function travel(now, from = base()) {
  const part = differences(from, now, KEPT);
  if (!part) return from;
  const fragment = fragmentOf(new Map([["w1", part]]));
  // as a browser hands it back
  const { hash } = new URL(fragment, "http://here/page.html");
  const read = partsOf(hash)?.get("w1");
  assert.ok(read);
  return stateOf(from, read, KEPT, CHOICES);
}

/** A generator that needs no luck. @param {number} seed */
const draws = (seed) => (/** @type {number} */ most) => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * most);
};

test("nothing different, nothing written", () => {
  assert.equal(differences(base(), base(), KEPT), null);
});

test("only what differs is written, in words that can be read", () => {
  const now = { ...base(), step: 18, target: "input" };
  now.geometry.stride = [2, 2];
  now.x = { shape: [1, 1, 5, 5], data: [...now.x.data] };
  now.x.data[13] = -4.5;
  const { of, ...texts } = /** @type {Record<string, string>} */ (differences(base(), now, KEPT));
  assert.match(of, /^[\da-f]{4}$/);
  assert.deepEqual(texts, { stride: "2", x: "0.0.2.3:-4.5", target: "input", step: "18" });
});

test("a knob that resizes an array writes its size and none of its numbers", () => {
  const now = base();
  now.geometry.H = 6;
  now.x = refit(now.x, [1, 1, 6, 5]);
  assert.equal(differences(base(), now, KEPT)?.x, "1x1x6x5;");
  assert.deepEqual(travel(now), now);
});

test("random states come back as they were", () => {
  const draw = draws(7);
  for (let round = 0; round < 300; round++) {
    const now = base();
    const shape = [1 + draw(2), 1 + draw(3), 1 + draw(6), 1 + draw(6)];
    now.geometry = spec({
      ...{ N: shape[0], C: shape[1], H: shape[2], W: shape[3] },
      padding: [[draw(3), draw(3)], [draw(3), draw(3)]],
      stride: [1 + draw(2), 1 + draw(2)],
      padding_mode: ["zeros", "circular"][draw(2)],
    });
    now.x = refit(now.x, shape);
    const many = draw(3) * draw(12);
    for (let k = 0; k < many; k++) {
      now.x.data[draw(now.x.data.length)] = [draw(20) - 10, draw(99) / 7, 1e-7, -123456.75][draw(4)];
    }
    Object.assign(now, {
      target: CHOICES.target[draw(3)],
      step: draw(100),
      include_padding: draw(2) === 1,
      note: ["", "100 %", "a & b = c#d é", "x:1;2,3"][draw(4)],
    });
    assert.deepEqual(travel(now), now);
  }
});

test("several widgets of a page keep their own parts", () => {
  /** @type {Map<string, Record<string, string>>} */
  const parts = new Map();
  for (const [name, part] of /** @type {[string, Record<string, string>][]} */ ([
    ["w1", { of: "0123", step: "4" }],
    ["w12", { of: "4567", x: "0.0.0.0:1" }],
  ])) {
    parts.set(name, part);
  }
  assert.deepEqual(partsOf(fragmentOf(parts)), parts);
});

test("the name of a section is no state, and what mail programs add does no harm", () => {
  for (const fragment of ["", "#", "#why-these-products", "#cgx&w1.step=3", "#cg"]) {
    assert.equal(partsOf(fragment), null, fragment);
  }
  assert.deepEqual(partsOf("#cg1&utm_source=mail&w1.of=0&&="), new Map([["w1", { of: "0" }]]));
});

describe("a broken link", () => {
  const { of } = /** @type {Record<string, string>} */ (differences(base(), { ...base(), step: 1 }, KEPT));
  /** @type {[Record<string, string>, RegExp][]} */
  const broken = [
    [{ of: "0000", step: "1" }, /another state of this page/],
    [{ of, step: "one" }, /step is “one”/],
    [{ of, step: "1.5" }, /step is “1.5”/],
    [{ of, step: "" }, /step is “”/],
    [{ of, step: "0x10" }, /step is/],
    [{ of, step: "1e999" }, /step is/],
    [{ of, target: "everything" }, /target is “everything”/],
    [{ of, include_padding: "maybe" }, /include_padding is/],
    [{ of, note: "%E0%A4%A" }, /note is/],
    [{ of, stride: "1,2,3" }, /stride is/],
    [{ of, padding: "1.5" }, /padding is/],
    [{ of, speed: "3" }, /names speed/],
    [{ of, constructor: "3" }, /names constructor/],
    [{ of, geometry: "3" }, /geometry is/],
    [{ of, x: "0.0.9.9:1" }, /x is/],
    [{ of, x: "0.0.1:1" }, /x is/],
    [{ of, x: "0.0.1.1" }, /x is/],
    [{ of, x: "0.0.1.1:" }, /x is/],
    [{ of, x: "1,2,3" }, /x is/],
    [{ of, x: "1x1x999x9999;" }, /x is/],
    [{ of, x: "1x1x0x5;" }, /x is/],
    [{ of, x: "5x5;" }, /x is/],
    [{ of, x: "0.0.0.0:NaN" }, /x is/],
  ];
  for (const [part, words] of broken) {
    test(JSON.stringify(part).slice(0, 60), () => {
      assert.throws(
        () => stateOf(base(), part, KEPT, CHOICES),
        (error) => error instanceof BrokenLink && words.test(error.message),
      );
    });
  }
  test("of another version", () => {
    assert.throws(() => partsOf("#cg2&w1.step=1"), BrokenLink);
  });
});
