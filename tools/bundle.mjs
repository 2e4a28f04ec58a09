// Builds the widgets: one file per entry, from src/convgrad/widgets/js into ../static.
//
//   node tools/bundle.mjs           write the bundles and say how large they are
//   node tools/bundle.mjs --check   write nothing; fail when a committed bundle is stale
//
// An entry <name>.js gives static/<name>.js, and js/<name>.css (if there is one) gives
// static/<name>.css.  `@import "palette"` in a stylesheet stands for the CSS variables made from
// src/convgrad/palette.json, so that no colour is written twice.

import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

import { paletteCss } from "../src/convgrad/widgets/js/colors.js";

const ENTRIES = [
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
];
const BUDGET = 40_000; // bytes a script, minified

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const sources = path.join(root, "src/convgrad/widgets/js");
const target = path.join(root, "src/convgrad/widgets/static");

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
 * @returns {Promise<Map<string, string>>}
 */
async function bundles() {
  const entryPoints = ENTRIES.flatMap((name) => [`${name}.js`, `${name}.css`]).filter((file) =>
    existsSync(path.join(sources, file)),
  );
  const { outputFiles } = await build({
    absWorkingDir: sources,
    entryPoints,
    outdir: target,
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    plugins: [palette],
    write: false,
  });
  return new Map(outputFiles.map((file) => [path.basename(file.path), file.text]));
}

/**
 * What is wrong with the committed bundles, in sentences.
 * @param {Map<string, string>} built
 */
async function complaints(built) {
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
  return words.concat(tooLarge(built));
}

/** @param {Map<string, string>} built */
function tooLarge(built) {
  return [...built]
    .filter(([file, text]) => file.endsWith(".js") && Buffer.byteLength(text) > BUDGET)
    .map(([file, text]) => `${file} has ${Buffer.byteLength(text)} bytes, allowed are ${BUDGET}`);
}

/** @param {Map<string, string>} built */
async function write(built) {
  await mkdir(target, { recursive: true });
  for (const [file, text] of built) await writeFile(path.join(target, file), text);
  const lines = [...built].map(([file, text]) => {
    const sizes = `${Buffer.byteLength(text)} bytes, ${gzipSync(text).length} gzipped`;
    return `${file.padEnd(28)} ${sizes}`;
  });
  console.log(lines.join("\n"));
}

const built = await bundles();
const check = process.argv.includes("--check");
if (!check) await write(built);
const wrong = check ? await complaints(built) : tooLarge(built);
for (const sentence of wrong) console.error(sentence);
if (wrong.length) process.exitCode = 1;
else if (check) console.log(`${built.size} bundles are what their sources build`);
