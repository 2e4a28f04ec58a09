// Builds the widgets, from src/convgrad/widgets/js into ../static, and what makes the cells of a page
// live, from book/live into book/live/static: one file per entry.
//
//   node tools/bundle.mjs           write the bundles and say how large they are
//   node tools/bundle.mjs --check   write nothing; fail when a committed bundle is stale
//
// An entry <name>.js gives static/<name>.js, and <name>.css (if there is one) gives
// static/<name>.css.  `@import "palette"` in a stylesheet stands for the CSS variables made from
// src/convgrad/palette.json, so that no colour is written twice.  Python is bundled as text.

import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

import { paletteCss } from "../src/convgrad/widgets/js/colors.js";

const KILO = 1024; // as esbuild counts

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const inRoot = (/** @type {string} */ name) => path.join(root, name);

/**
 * Where sources lie and bundles go, and how large a script may be, minified.  Those in `classic` are no
 * modules, and share their names with nobody.
 * @typedef {{sources: string, target: string, entries: string[], budget: (name: string) => number, classic?: string[]}} Family
 */

/** @type {Family} */
const WIDGETS = {
  sources: inRoot("src/convgrad/widgets/js"),
  target: inRoot("src/convgrad/widgets/static"),
  budget: () => 40_000,
  entries: [
    "contribution_player",
    "predict",
    "sliding_window",
    "geometry_explorer",
    "unfold_matrix",
    "group_blocks",
    "break_the_gradient",
    "gradient_views",
    "roofline",
    "thread_grid",
    "shard_sum",
    "tools",
    "loader",
  ],
};

// The switch is on every page with cells; the editor, which is most of `live`, comes when it is pressed.
/** @type {Family} */
const LIVE = {
  sources: inRoot("book/live"),
  target: inRoot("book/live/static"),
  budget: (name) => (name === "switch.js" ? 4 : 400) * KILO,
  entries: ["live", "worker"],
  classic: ["switch"],
};

/** @type {import("esbuild").Plugin} */
const palette = {
  name: "palette",
  setup(builder) {
    builder.onResolve({ filter: /^palette$/ }, () => ({ path: "palette", namespace: "palette" }));
    builder.onLoad({ filter: /.*/, namespace: "palette" }, () => ({
      contents: paletteCss(),
      loader: "css",
    }));
  },
};

/**
 * Every bundle that the sources build now, by file name.
 * @param {Family} family
 * @returns {Promise<Map<string, string>>}
 */
async function bundles({ sources, target, entries, classic = [] }) {
  const modules = await bundled(sources, target, entries, "esm");
  const scripts = await bundled(sources, target, classic, "iife");
  return new Map([...modules, ...scripts].map((file) => [path.basename(file.path), file.text]));
}

/** @param {string} sources @param {string} target @param {string[]} entries @param {"esm" | "iife"} format */
async function bundled(sources, target, entries, format) {
  const entryPoints = entries.flatMap((name) => [`${name}.js`, `${name}.css`]).filter((file) =>
    existsSync(path.join(sources, file)),
  );
  const { outputFiles } = await build({
    absWorkingDir: sources,
    entryPoints,
    outdir: target,
    bundle: true,
    minify: true,
    format,
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    loader: { ".py": "text" },
    plugins: [palette],
    write: false,
  });
  return outputFiles;
}

/**
 * What is wrong with the committed bundles, in sentences.
 * @param {Family} family
 * @param {Map<string, string>} built
 */
async function complaints(family, built) {
  const { target } = family;
  const words = [];
  const committed = existsSync(target) ? await readdir(target) : [];
  for (const file of committed.filter((name) => !built.has(name))) {
    words.push(`static/${file} has no source in js/: delete it`);
  }
  for (const [file, text] of built) {
    const there = path.join(target, file);
    if (!existsSync(there)) words.push(`static/${file} is missing: run npm run bundle`);
    else if ((await readFile(there, "utf8")) !== text)
      words.push(`static/${file} is not what its sources build: run npm run bundle`);
  }
  return words.concat(tooLarge(family, built));
}

/** @param {Family} family @param {Map<string, string>} built */
function tooLarge({ budget }, built) {
  return [...built]
    .filter(([file, text]) => file.endsWith(".js") && Buffer.byteLength(text) > budget(file))
    .map(([file, text]) => `${file} has ${Buffer.byteLength(text)} bytes, allowed are ${budget(file)}`);
}

/** @param {Family} family @param {Map<string, string>} built */
async function write({ target }, built) {
  await mkdir(target, { recursive: true });
  for (const [file, text] of built) await writeFile(path.join(target, file), text);
  const lines = [...built].map(([file, text]) => {
    const sizes = `${Buffer.byteLength(text)} bytes, ${gzipSync(text).length} gzipped`;
    return `${file.padEnd(28)} ${sizes}`;
  });
  console.log(lines.join("\n"));
}

const check = process.argv.includes("--check");
let count = 0;
for (const family of [WIDGETS, LIVE]) {
  const built = await bundles(family);
  if (!check) await write(family, built);
  const wrong = check ? await complaints(family, built) : tooLarge(family, built);
  for (const sentence of wrong) console.error(sentence);
  if (wrong.length) process.exitCode = 1;
  count += built.size;
}
if (check && !process.exitCode) console.log(`${count} bundles are what their sources build`);
