// @ts-check
// The worker of a page: Python runs here, so that the page never stands still.
//
// It is told {kind: "start", settings, sizes, first} once, then {kind: "run", job, label, code, quiet} and
// {kind: "update", model, values}.  It answers with {kind: "progress", loaded, total}, "ready" or
// "failed", and for a job with what the cell shows and at last {kind: "done", job, outcome}.

import { startPython } from "./engine.js";
import { countedFetch } from "./progress.js";

/** @type {Promise<import("./engine.js").Engine> | undefined} */
let python;
/** @type {number | null} */
let job = null;
const tell = (/** @type {object} */ message) => postMessage(message);

/**
 * @param {import("./engine.js").Settings} settings
 * @param {Record<string, number>} sizes of files, in bytes
 * @param {string[]} first those without which nothing runs
 */
async function begin(settings, sizes, first) {
  const early = ["pyodide.asm.wasm", "python_stdlib.zip"].map((name) => settings.index + name);
  globalThis.fetch = countedFetch(globalThis.fetch, sizes, first, early, (progress) =>
    tell({ kind: "progress", ...progress }),
  );
  const { loadPyodide } = await import(`${settings.index}pyodide.mjs`);
  return startPython(loadPyodide, settings, (message) => tell({ ...message, job }));
}

onmessage = async ({ data }) => {
  if (data.kind === "start") {
    python = begin(data.settings, data.sizes, data.first);
    python.then(
      () => tell({ kind: "ready" }),
      (error) => tell({ kind: "failed", reason: String(error?.message ?? error) }),
    );
  } else if (data.kind === "run") {
    const engine = await python;
    job = data.job;
    /** @type {import("./engine.js").Outcome} */
    const outcome = await /** @type {any} */ (engine).run(data.label, data.code, data.quiet);
    tell({ kind: "done", job, outcome });
    job = null;
  } else if (data.kind === "update") {
    (await python)?.update(data.model, data.values);
  }
};
