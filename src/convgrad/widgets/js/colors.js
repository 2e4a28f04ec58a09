// @ts-check
// The colours of the book as CSS variables, made from the one table in palette.json.

import table from "../../palette.json" with { type: "json" };

/** @typedef {{light: string, dark: string}} Pair */

/** @type {Record<string, Pair>} */
export const PALETTE = table;

/** The CSS variable of a colour: `grad_output` → `--cg-grad-output`. @param {string} key */
export const variable = (key) => `--cg-${key.replaceAll("_", "-")}`;

/**
 * One rule's declarations for a theme.
 * @param {"light" | "dark"} theme
 */
export function declarations(theme) {
  const colours = Object.entries(PALETTE).map(([key, pair]) => `${variable(key)}:${pair[theme]};`);
  return `color-scheme:${theme};${colours.join("")}`;
}

/** Where somebody has said which theme is on: the book, JupyterLab, Colab, VS Code. */
const SAID_DARK = [
  'html[data-theme="dark"]',
  'body[data-jp-theme-light="false"]',
  'html[theme="dark"]',
  "body.vscode-dark",
];
const SAID_ANYTHING =
  "html[data-theme],html[theme],:has(>body[data-jp-theme-light],>body.vscode-light)";

/**
 * The stylesheet that gives `.cg` its colours.  Dark where the page says so; where the page says
 * nothing, as the system prefers; on paper always light.
 */
export function paletteCss() {
  const dark = declarations("dark");
  return [
    `.cg{${declarations("light")}}`,
    `@media screen{${SAID_DARK.map((page) => `${page} .cg`).join(",")}{${dark}}}`,
    `@media screen and (prefers-color-scheme:dark){:root:not(${SAID_ANYTHING}) .cg{${dark}}}`,
  ].join("\n");
}
