// @ts-check
// A page whose cells can be edited and run: comes when the reader presses the switch.

import { h, say } from "../../src/convgrad/widgets/js/dom.js";

import { LiveCell } from "./cell.js";
import { Kept } from "./kept.js";
import { Kernel, Stopped } from "./kernel.js";
import { placed } from "./places.js";
import { inMegabytes } from "./progress.js";
import { widgets } from "./widgets.js";

const READY = "Python is ready.";
const KEYS = "Ctrl+Enter or Shift+Enter runs a cell; Tab leaves its editor.";
const GONE = "All names are gone: “Run all above” brings them back. What you wrote is still there.";

/**
 * @typedef {object} Beginning
 * @property {string} base the folder of all this, as an address
 * @property {import("./switch.js").Start} start
 * @property {import("./switch.js").Cell[]} cells
 * @property {HTMLButtonElement} button the switch
 * @property {string} page its name, under which edits are kept
 */

/**
 * Make the page live; resolves when it is, while Python still starts, to what gives the page back.
 * @param {Beginning} beginning
 * @returns {Promise<() => void>}
 */
export async function live({ base, start, cells, button, page }) {
  await styled(base + start.style);
  const bar = makeBar();
  let ready = READY;
  /** Cells without a place in the page that have been run. @type {Set<number>} */
  const unseen = new Set();
  const kernel = new Kernel(() => makeWorker(base, start), {
    progress: (progress) => {
      bar.progress(progress.loaded / progress.total);
      const isComing = progress.loaded < progress.total;
      if (!kernel.isReady) bar.say(`Python is starting: ${inMegabytes(progress)}`);
      else bar.say(isComing ? `Loading what a cell needs: ${inMegabytes(progress)}` : ready);
    },
    ready: () => {
      bar.progress(1);
      bar.say(ready);
    },
    failed: (reason) => {
      bar.progress(1);
      bar.say(`Python could not be started (${reason}). Run a cell to try again.`);
    },
    state: (model, values) => drawn.hear(model, values),
  });
  const drawn = widgets(new URL("../_widgets/", base).href, start.tools, (model, values) =>
    kernel.update(model, values),
  );

  const stop = () => {
    ready = `Stopped, and Python is ready again. ${GONE}`;
    kernel.stop();
    drawn.forget();
    unseen.clear();
    for (const cell of live) cell.forget();
    bar.announce(`Stopped. ${GONE}`);
  };

  /** @type {import("./cell.js").Page} */
  const ways = {
    kernel,
    kept: new Kept(page, localStorage),
    runAbove,
    stop,
    drawWidget: drawn.draw,
    announce: (sentence) => bar.announce(sentence),
    hasAbove: (index) => toRunAbove(index).length > 0,
    hasUnrunAbove: (index) =>
      toRunAbove(index).some(([each]) => !unseen.has(each) && !shownAt(each)?.hasRun),
  };
  /** @type {HTMLElement[]} */
  const elements = [...document.querySelectorAll(".bd-article div.cell")].map(
    (each) => /** @type {HTMLElement} */ (each),
  );
  const live = [...placed(cells, elements)].map(
    ([element, cell, index], n) => new LiveCell(element, cell, index, n + 1, ways),
  );

  const shownAt = (/** @type {number} */ index) => live.find((each) => each.index === index);

  /** What there is to run above a cell, in order; folded solutions are left to the reader. @param {number} end */
  function toRunAbove(end) {
    return [...cells.entries()].filter(([index, { code, folded }]) => index < end && code && !folded);
  }

  /** @param {LiveCell} cell @param {boolean} [andThis] */
  async function runAbove(cell, andThis = false) {
    /** @type {Promise<boolean>[]} */
    const ended = [];
    for (const [index, { code }] of toRunAbove(cell.index)) {
      ended.push(shownAt(index)?.run() ?? runUnseen(index, code));
    }
    if (andThis) ended.push(cell.run());
    // the first that fails takes back those that wait
    for (const each of ended) each.then((well) => well || kernel.forgetWaiting());
    await Promise.all(ended);
  }

  /** A cell that the page does not show, for the names that others use. @param {number} index @param {string} code */
  async function runUnseen(index, code) {
    try {
      const label = "a cell that is not shown";
      const { error } = await kernel.run({ label, code, quiet: true, hear: () => {} });
      if (!error) unseen.add(index);
      return !error;
    } catch (error) {
      if (!(error instanceof Stopped)) console.error(error);
      return false;
    }
  }

  function leave() {
    kernel.close();
    drawn.forget();
    for (const cell of live) cell.remove();
    bar.element.remove();
    document.documentElement.classList.remove("cg-run-on");
    say(button, "Run live");
    button.setAttribute("aria-pressed", "false");
    button.focus();
  }

  bar.stop.addEventListener("click", stop);
  bar.leave.addEventListener("click", () => button.click()); // the switch turns it off as well
  document.querySelector(".bd-header-article")?.append(bar.element);
  document.documentElement.classList.add("cg-run-on");
  say(button, "Live");
  button.setAttribute("aria-pressed", "true");
  kernel.start();
  return leave;
}

/** @param {string} base @param {import("./switch.js").Start} start */
function makeWorker(base, start) {
  const worker = new Worker(base + start.worker, { type: "module" });
  const { modules, absent, beside, sizes, first } = start;
  const settings = { index: base + start.index, lock: base + start.lock, modules, absent, beside };
  worker.postMessage({ kind: "start", settings, sizes, first });
  return worker;
}

/** @param {string} address */
function styled(address) {
  if (document.querySelector(`link[href="${address}"]`)) return Promise.resolve();
  return new Promise((done, failed) => {
    const link = h("link", { rel: "stylesheet", href: address, onload: done, onerror: failed });
    document.head.append(link);
  });
}

/** The strip under the page's head: how Python is, and what ends it. */
function makeBar() {
  const status = h("p", { class: "cg-run-status", role: "status" }, "Python is starting …");
  const keys = h("p", { class: "cg-run-keys" }, KEYS);
  const heard = h("p", { class: "cg-run-heard", "aria-live": "polite" });
  const stop = h("button", { class: "cg-run-button" }, "Stop");
  stop.title = "End what runs and start Python anew";
  const leave = h("button", { class: "cg-run-button" }, "Leave live");
  leave.title = "The page as it was; what you wrote is kept";
  const done = h("div", { class: "cg-run-done", "aria-hidden": "true" });
  const element = h(
    "div",
    { class: "cg-run-bar", role: "region", "aria-label": "Live cells" },
    status,
    keys,
    h("div", { class: "cg-run-ends" }, stop, leave),
    heard,
    done,
  );
  return {
    element,
    stop,
    leave,
    say: (/** @type {string} */ words) => say(status, words),
    announce: (/** @type {string} */ words) => say(heard, words),
    progress: (/** @type {number} */ part) =>
      done.style.setProperty("--cg-part", String(Math.min(1, part))),
  };
}
