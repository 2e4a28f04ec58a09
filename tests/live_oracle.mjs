// @ts-check
// Runs the cells of pages as the worker of a page does, in Node:
//
//   node tests/live_oracle.mjs FOLDER < PAGES > OUTCOMES
//
// FOLDER is what tools/live.py writes.  PAGES is a list of pages, each a list of cells (their code);
// each page starts with no names.  For every cell comes back how it ended and what it showed.

import { mkdtemp, readFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

import { build } from "esbuild";

const folder = path.resolve(process.argv[2]);
const start = JSON.parse(await readFile(path.join(folder, "start.json"), "utf8"));
const index = path.join(folder, start.index);
const outfile = path.join(await mkdtemp(path.join(os.tmpdir(), "live-")), "engine.mjs");
await build({
  entryPoints: ["book/live/engine.js"],
  bundle: true,
  format: "esm",
  loader: { ".py": "text" },
  outfile,
});
const { loadPyodide } = await import(pathToFileURL(path.join(index, "pyodide.mjs")).href);
const { startPython } = await import(pathToFileURL(outfile).href);

console.log = console.error; // Pyodide tells there what it loads

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
/** @type {string[][]} */
const pages = JSON.parse(Buffer.concat(chunks).toString());

/** @type {object[]} */
let heard = [];
const settings = { ...start, index, lock: path.join(folder, start.lock) };
const python = await startPython(loadPyodide, settings, (/** @type {object} */ m) => heard.push(m));
const outcomes = [];
for (const page of pages) {
  python.forget();
  const ended = [];
  for (const [place, code] of page.entries()) {
    heard = [];
    const outcome = await python.run(`cell ${place + 1}`, code);
    ended.push({ ...outcome, heard });
  }
  outcomes.push(ended);
}
process.stdout.write(JSON.stringify(outcomes), () => process.exit());
