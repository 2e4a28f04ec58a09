// @ts-check
// The palette: every text colour can be read where it stands, in both themes (WCAG AA).

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { PALETTE, paletteCss } from "../../src/convgrad/widgets/js/colors.js";

/** Relative luminance of #rrggbb. @param {string} color */
function luminance(color) {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const c = parseInt(color.slice(at, at + 2), 16) / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** @param {string} a @param {string} b */
function contrast(a, b) {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

const TEXT = ["ink", "muted", "padding", "error", "x", "kernel", "grad_output", "result"];
const HUES = ["x", "kernel", "grad_output", "result", "padding"];

for (const theme of /** @type {const} */ (["light", "dark"])) {
  describe(theme, () => {
    for (const key of TEXT) {
      const own = HUES.includes(key) ? [`${key}_soft`] : HUES.map((hue) => `${hue}_soft`);
      for (const ground of ["paper", "panel", ...own]) {
        if (key === "error" && ground.endsWith("_soft")) continue; // never stands in a cell
        test(`${key} on ${ground}`, () => {
          const ratio = contrast(PALETTE[key][theme], PALETTE[ground][theme]);
          assert.ok(ratio >= 4.5, `${ratio.toFixed(2)} : 1`);
        });
      }
    }
  });
}

test("the stylesheet says every colour for light, for dark, and for no choice", () => {
  const css = paletteCss();
  for (const [key, { light, dark }] of Object.entries(PALETTE)) {
    const name = `--cg-${key.replaceAll("_", "-")}`;
    assert.equal(css.split(`${name}:${light};`).length - 1, 1, name);
    assert.equal(css.split(`${name}:${dark};`).length - 1, 2, name);
  }
});
