// @ts-check
// Python, started and ready to run cells: the same in a worker of the page and in Node.
//
// Everything comes from the site itself: the runtime and its packages, and the wheel of convgrad.
// What runs a cell is Python (convgrad_live.py); here it is given its way to the page.

import display from "./python/standins/IPython/display.py";
import ipython from "./python/standins/IPython/__init__.py";
import anywidget from "./python/standins/anywidget.py";
import runner from "./python/convgrad_live.py";
import needs from "./python/needs.py";

/**
 * @typedef {object} Settings
 * @property {string} index where the runtime lies, with a slash at its end
 * @property {string} lock the list of packages, by its address
 * @property {Record<string, string>} modules which package a module is in
 * @property {Record<string, string>} absent what cannot be had here, and what it needs
 * @property {Record<string, string>} beside files that lie beside the package in a checkout
 */

/** @typedef {{first: number, last: number, need: string}} Left lines that were left out */
/** @typedef {{line: number, text: string, name: string}} Trouble */
/** @typedef {{ok: boolean, left: Left[], error: Trouble | null}} Outcome */
/** @typedef {{run: (label: string, code: string, quiet?: boolean) => Promise<Outcome>, update: (model: string, values: object) => void, forget: () => void}} Engine */

const HOME = "/lib/convgrad_live";
const SITE_PACKAGES = "/lib/python3.12/site-packages";
const FIRST = ["numpy", "convgrad"];

/**
 * @param {(options: object) => Promise<any>} loadPyodide
 * @param {Settings} settings
 * @param {(message: any) => void} send what a cell shows, while it runs
 * @returns {Promise<Engine>}
 */
export async function startPython(loadPyodide, settings, send) {
  const { index, lock, modules, absent, beside } = settings;
  const silent = { messageCallback: () => {}, errorCallback: () => {} };
  const python = await loadPyodide({ indexURL: index, lockFileURL: lock, packages: FIRST });
  const write = (/** @type {string} */ file, /** @type {string} */ text) => {
    python.FS.mkdirTree(file.slice(0, file.lastIndexOf("/")));
    python.FS.writeFile(file, text);
  };
  write(`${HOME}/convgrad_live.py`, runner);
  write(`${HOME}/needs.py`, needs);
  write(`${HOME}/standins/anywidget.py`, anywidget);
  write(`${HOME}/standins/IPython/__init__.py`, ipython);
  write(`${HOME}/standins/IPython/display.py`, display);
  // the package lies two folders below what is a checkout elsewhere
  const checkout = SITE_PACKAGES.slice(0, SITE_PACKAGES.lastIndexOf("/"));
  for (const [name, text] of Object.entries(beside)) write(`${checkout}/${name}`, text);
  python.runPython(`import sys; sys.path += ["${HOME}", "${HOME}/standins"]`);
  const live = python.pyimport("convgrad_live");
  const session = live.start(
    (/** @type {string} */ message) => send(JSON.parse(message)),
    (/** @type {string} */ names) => python.loadPackage(JSON.parse(names), silent),
    JSON.stringify(modules),
    JSON.stringify(absent),
  );
  return {
    run: async (label, code, quiet = false) =>
      JSON.parse(await live.run(session, label, code, quiet)),
    update: (model, values) => session.update(model, python.toPy(values)),
    forget: () => session.forget(),
  };
}
