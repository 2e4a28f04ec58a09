// @ts-check
// The parts of live cells that need no browser: what is kept, what waits, what is counted.

import assert from "node:assert/strict";
import test from "node:test";

import { lines } from "../../book/live/lines.js";
import { indentAfter } from "../../book/live/indent.js";
import { Kept } from "../../book/live/kept.js";
import { Kernel, Stopped } from "../../book/live/kernel.js";
import { placed } from "../../book/live/places.js";
import { countedFetch, inMegabytes } from "../../book/live/progress.js";

// ---- what the reader writes -------------------------------------------------------------------

function memory() {
  /** @type {Map<string, string>} */
  const kept = new Map();
  return {
    kept,
    getItem: (/** @type {string} */ key) => kept.get(key) ?? null,
    setItem: (/** @type {string} */ key, /** @type {string} */ value) => void kept.set(key, value),
    removeItem: (/** @type {string} */ key) => void kept.delete(key),
  };
}

test("an edit is kept for its cell and page until the original is back", () => {
  const storage = memory();
  const page = new Kept("a.json", storage);
  assert.equal(page.set(3, "x = 1", "x = 2"), true);
  assert.equal(new Kept("a.json", storage).get(3, "x = 1"), "x = 2");
  assert.equal(new Kept("a.json", storage).get(4, "x = 1"), null);
  assert.equal(new Kept("b.json", storage).get(3, "x = 1"), null);
  page.set(3, "x = 1", "x = 1");
  assert.equal(page.get(3, "x = 1"), null);
  assert.equal(storage.kept.size, 0);
});

test("an edit of code that the book has no more is not shown", () => {
  const page = new Kept("a.json", memory());
  page.set(3, "x = 1", "x = 2");
  assert.equal(page.get(3, "y = 1"), null);
});

test("a storage that is forbidden, full or spoilt takes nothing away from the page", () => {
  const refuse = () => {
    throw new Error("forbidden");
  };
  const forbidden = new Kept("a", { getItem: refuse, setItem: refuse, removeItem: refuse });
  assert.equal(forbidden.get(0, "x"), null);
  assert.equal(forbidden.set(0, "x", "y"), false);
  const spoilt = memory();
  spoilt.setItem("cg-live:a", "{");
  assert.equal(new Kept("a", spoilt).get(0, "x"), null);
  assert.equal(new Kept("a", spoilt).set(0, "x", "y"), true);
});

test("a new line is indented as Python goes on", () => {
  assert.equal(indentAfter("for i in x:"), "    ");
  assert.equal(indentAfter("    if y:  # so"), "        ");
  assert.equal(indentAfter("    total = ("), "        ");
  assert.equal(indentAfter("    return x"), "");
  assert.equal(indentAfter("    return ("), "        ");
  assert.equal(indentAfter("    x = 1"), "    ");
  assert.equal(indentAfter("    returned = 1"), "    ");
  assert.equal(indentAfter(""), "");
});

// ---- what was left out ------------------------------------------------------------------------

test("lines that were left out are named in one phrase", () => {
  const left = (/** @type {[number, number][]} */ ...runs) =>
    lines(runs.map(([first, last]) => ({ first, last, need: "PyTorch" })));
  assert.equal(left([3, 3]), "Line 3");
  assert.equal(left([3, 4]), "Lines 3 to 4");
  assert.equal(left([3, 3], [4, 6]), "Lines 3 to 6");
  assert.equal(left([1, 1], [4, 6]), "Lines 1 and 4 to 6");
  assert.equal(left([1, 1], [3, 3], [5, 5]), "Lines 1, 3 and 5");
});

test("cells find their places in the page, in order", () => {
  /** @type {{place?: true, shown?: true}[]} */
  const cells = [{ place: true, shown: true }, {}, { place: true }, { place: true, shown: true }];
  const found = [...placed(cells, ["a", "b", "c"])];
  assert.deepEqual(
    found.map(([element, , index]) => [element, index]),
    [["a", 0], ["c", 3]],
  );
});

// ---- the worker -------------------------------------------------------------------------------

const well = { ok: true, left: [], error: null };

function workshop() {
  /** @type {any[]} */
  const workers = [];
  const make = () => {
    const worker = { sent: /** @type {any[]} */ ([]), ended: false, onmessage: (/** @type {any} */ _) => {} };
    workers.push({
      ...worker,
      hear: (/** @type {object} */ data) => worker.onmessage({ data }),
      worker,
    });
    return /** @type {any} */ (
      Object.assign(worker, {
        postMessage: (/** @type {any} */ message) => worker.sent.push(message),
        terminate: () => (worker.ended = true),
      })
    );
  };
  /** @type {any[]} */
  const said = [];
  const kernel = new Kernel(make, {
    progress: () => {},
    ready: () => said.push("ready"),
    failed: (reason) => said.push(reason),
    state: (model, values) => said.push([model, values]),
  });
  return { workers, kernel, said };
}

const turn = () => new Promise((done) => setTimeout(done));

test("jobs run one after another, and hear only of themselves", async () => {
  const { workers, kernel } = workshop();
  /** @type {any[]} */
  const heard = [];
  const job = (/** @type {string} */ code) => ({
    label: "cell 1",
    code,
    hear: (/** @type {any} */ message) => heard.push([code, message.text]),
  });
  const first = kernel.run(job("one"));
  const second = kernel.run(job("two"));
  const [{ hear, worker }] = workers;
  assert.deepEqual(worker.sent, []); // not before Python is ready
  hear({ kind: "ready" });
  assert.deepEqual(worker.sent.map((/** @type {any} */ m) => m.code), ["one"]);
  hear({ kind: "stream", job: 1, text: "a" });
  hear({ kind: "done", job: 1, outcome: well });
  assert.deepEqual(await first, well);
  await turn();
  hear({ kind: "stream", job: 1, text: "late" });
  hear({ kind: "stream", job: 2, text: "b" });
  hear({ kind: "done", job: 2, outcome: well });
  await second;
  assert.deepEqual(heard, [["one", "a"], ["two", "b"]]);
  assert.equal(kernel.isBusy, false);
});

test("stop ends the worker and all jobs, and starts another worker", async () => {
  const { workers, kernel } = workshop();
  const jobs = ["one", "two"].map((code) => kernel.run({ label: "", code, hear: () => {} }));
  workers[0].hear({ kind: "ready" });
  kernel.stop();
  for (const job of jobs) await assert.rejects(job, Stopped);
  assert.equal(workers[0].worker.ended, true);
  assert.equal(workers.length, 2);
  workers[0].hear({ kind: "ready" }); // an old one says nothing to anybody
  assert.equal(kernel.isReady, false);
});

test("a cell that fails can take back those that wait", async () => {
  const { workers, kernel } = workshop();
  const first = kernel.run({ label: "", code: "one", hear: () => {} });
  const second = kernel.run({ label: "", code: "two", hear: () => {} });
  const over = first.then(() => kernel.forgetWaiting());
  workers[0].hear({ kind: "ready" });
  workers[0].hear({ kind: "done", job: 1, outcome: { ...well, ok: false } });
  await over;
  await assert.rejects(second, Stopped);
  await turn();
  assert.equal(workers[0].worker.sent.length, 1);
});

test("a worker that cannot start says why, and the next job tries again", async () => {
  const { workers, kernel, said } = workshop();
  const job = kernel.run({ label: "", code: "one", hear: () => {} });
  workers[0].hear({ kind: "failed", reason: "no file" });
  await assert.rejects(job, /no file/);
  assert.deepEqual(said, ["no file"]);
  kernel.run({ label: "", code: "two", hear: () => {} }).catch(() => {});
  assert.equal(workers.length, 2);
});

// ---- progress ---------------------------------------------------------------------------------

test("bytes are counted as they come, of a total that is known before", async () => {
  /** @type {import("../../book/live/progress.js").Progress[]} */
  const told = [];
  const sizes = { "core.wasm": 6, "more.whl": 4, "other.whl": 2 };
  const ask = async (/** @type {any} */ address) =>
    new Response(new Uint8Array(address.endsWith("wasm") ? 6 : 4), {
      headers: { "Content-Type": "application/wasm" },
    });
  const counted = countedFetch(
    /** @type {any} */ (ask),
    sizes,
    ["core.wasm", "more.whl"],
    ["/a/core.wasm"],
    (progress) => told.push({ ...progress }),
  );
  const core = await counted("/a/core.wasm");
  assert.equal(core.headers.get("Content-Type"), "application/wasm"); // compiled while it comes
  assert.equal((await core.arrayBuffer()).byteLength, 6);
  assert.deepEqual(told.at(-1), { loaded: 6, total: 10 });
  await (await counted("/a/more.whl")).arrayBuffer();
  assert.deepEqual(told.at(-1), { loaded: 10, total: 10 });
  const before = told.length;
  await (await counted("/a/unknown.json")).arrayBuffer();
  assert.equal(told.length, before);
  assert.equal(inMegabytes({ loaded: 3_210_000, total: 16_800_000 }), "3.2 of 16.8 MB");
});

test("what was asked for early is not asked for again, once", async () => {
  let asked = 0;
  const ask = async () => {
    asked += 1;
    return new Response("x");
  };
  const counted = countedFetch(/** @type {any} */ (ask), { a: 1 }, [], ["/a"], () => {});
  await counted("/a");
  assert.equal(asked, 1);
  await counted("/a");
  assert.equal(asked, 2);
});
