// @ts-check
// The roofline without a page: where marks stand, what sliders do, what a pair of sizes says.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { GeometryError, geometryOf } from "../../src/convgrad/widgets/js/conv.js";
import roofline, { shownValue } from "../../src/convgrad/widgets/js/roofline.js";
import { BADGES, ENDS, along, frame } from "../../src/convgrad/widgets/js/roofline_drawing.js";
import { MAPS, bound, commonDivisors, fitting, moved, stopsOf, withValue } from "../../src/convgrad/widgets/js/roofline_model.js";
import { amount, percent, three } from "../../src/convgrad/widgets/js/roofline_words.js";
import { spec } from "./specs.mjs";

const same = spec({ N: 4, C: 8, O: 8, H: 14, W: 14, padding: [[1, 1], [1, 1]] });
const card = { float32: 8, tf32: 16, bfloat16: 32, float16: 32, memory: 1, multiprocessors: 4 };
const settings = { precision: /** @type {const} */ ("float32"), columns: false, tile: 64, splits: 1 };

describe("places in the chart", () => {
  test("equal factors are equal distances", () => {
    assert.equal(along(0.1, ENDS[0]), 0);
    assert.equal(along(1e4, ENDS[0]), 1);
    const steps = [1, 10, 100, 1000].map((v) => along(v, ENDS[0]));
    steps.slice(1).forEach((at, k) => assert.ok(Math.abs(at - steps[k] - 0.2) < 1e-12));
  });
  test("what lies beyond an end stands at the end", () => {
    assert.equal(along(1e-9, ENDS[0]), 0);
    assert.equal(along(1e9, ENDS[1]), 1);
  });
  test("up is more, right is more, and badges have room above the highest mark", () => {
    const at = frame(600, 360);
    assert.ok(at.x(100) > at.x(10) && at.y(100) < at.y(10));
    const highest = Math.min(...MAPS.map((which) => BADGES[which][2]));
    assert.ok(at.y(989) + highest - 14 > 20, "below the legend");
    for (const width of [260, 640]) {
      const { x, right } = frame(width, 300);
      assert.ok(x(1e4) <= right && x(0.1) >= 40);
    }
  });
  test("badges of one point do not cover each other", () => {
    for (const a of MAPS)
      for (const b of MAPS)
        if (a !== b) assert.ok(Math.hypot(BADGES[a][1] - BADGES[b][1], BADGES[a][2] - BADGES[b][2]) > 27);
  });
});

describe("sliders", () => {
  test("hold the value that is there", () => {
    assert.deepEqual(withValue([1, 2, 4], 3), [1, 2, 3, 4]);
    assert.deepEqual(withValue([1, 2, 4], 4), [1, 2, 4]);
    for (const [knob, stops] of Object.entries(stopsOf(spec({ C: 5, O: 10, H: 37, W: 37 })))) {
      const now = knob === "stride" ? 1 : { N: 1, C: 5, O: 10, groups: 1, H: 37, KH: 3 }[knob];
      assert.ok(stops.includes(Number(now)), knob);
    }
  });
  test("groups are what divides both", () => {
    assert.deepEqual(commonDivisors(12, 18), [1, 2, 3, 6]);
    assert.deepEqual(stopsOf(spec({ C: 12, O: 18 })).groups, [1, 2, 3, 6]);
  });
  test("a kernel keeps the size of the image", () => {
    for (const k of [1, 3, 5, 7]) {
      const g = geometryOf(moved(same, "KH", k));
      assert.deepEqual([g.KH, g.KW, g.OH, g.OW], [k, k, 14, 14]);
    }
    const dilated = geometryOf(moved({ ...same, dilation: [2, 2] }, "KH", 5));
    assert.equal(dilated.OH, 14);
  });
  test("fewer channels may mean fewer groups, and depthwise stays depthwise", () => {
    assert.equal(moved({ ...same, groups: 4 }, "C", 6).groups, 2);
    const alone = moved({ ...same, groups: 8 }, "O", 24);
    assert.deepEqual([alone.C, alone.O, alone.groups], [24, 24, 24]);
  });
  test("nothing of the old convolution is written to", () => {
    const before = JSON.stringify(same);
    for (const knob of /** @type {const} */ (["N", "C", "O", "groups", "H", "KH", "stride"])) moved(same, knob, 2);
    assert.equal(JSON.stringify(same), before);
  });
  test("a pair is shown where the two differ", () => {
    assert.equal(shownValue(same, "H"), "14");
    assert.equal(shownValue({ ...same, W: 9 }, "H"), "14×9");
    assert.equal(shownValue({ ...same, stride: [2, 1] }, "stride"), "2×1");
    assert.equal(shownValue(same, "C"), "8");
  });
});

describe("limits", () => {
  test("a tile is a power of two", () => {
    assert.deepEqual([3, 16, 17, 64, 65, 999].map((size) => fitting(size, 128)), [16, 16, 32, 64, 128, 128]);
  });
  test("a multiprocessor without a tile does nothing", () => {
    const g = geometryOf(same);
    const found = bound(g, "grad_weight", card, settings);
    assert.deepEqual([found.tiles, found.waves, found.limit], [2, 1, "tiles"]);
    const split = bound(g, "grad_weight", card, { ...settings, splits: 2 });
    assert.ok(split.share > 1.99 * found.share);
  });
  test("links to what cannot be counted are refused in words", () => {
    const { fits } = /** @type {any} */ (roofline).abilities;
    const limits = { operations: 1e15 };
    fits(geometryOf(same), limits);
    assert.throws(() => fits(geometryOf({ ...same, N: 0 }), limits), GeometryError);
    const large = geometryOf(spec({ N: 1e6, C: 1e4, O: 1e4, H: 99, W: 99 }));
    assert.throws(() => fits(large, limits), /operations: the roofline counts up to/);
  });
});

describe("figures", () => {
  test("have three digits and a unit", () => {
    assert.deepEqual([1234.5, 0.02194, 67].map(three), ["1230", "0.0219", "67"]);
    assert.equal(amount("bytes", 51527680), "51.5 MB");
    assert.equal(amount("milliseconds", 0.2194), "219 µs");
    assert.equal(amount("operations", 7398752256), "7.4·10⁹");
    assert.equal(percent(0.03409), "3.41 %");
  });
});
