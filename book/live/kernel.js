// @ts-check
// The page's side of the worker: jobs one after another, and a way to end what does not end.

/** @typedef {import("./engine.js").Outcome} Outcome */
/** @typedef {{label: string, code: string, quiet?: boolean, hear: (message: any) => void}} Job */
/** @typedef {{job: Job, begun: () => void, done: (outcome: Outcome) => void, failed: (error: Error) => void}} Entry */

/** A job was ended before it was done. */
export class Stopped extends Error {}

/**
 * @typedef {object} Ears who hears of what happens
 * @property {(progress: import("./progress.js").Progress) => void} progress
 * @property {() => void} ready
 * @property {(reason: string) => void} failed
 * @property {(model: string, values: Record<string, unknown>) => void} state
 */

export class Kernel {
  /** @type {Worker | null} */
  #worker = null;
  #ready = false;
  /** @type {Entry[]} */
  #waiting = [];
  /** @type {Entry | null} */
  #running = null;
  #number = 0;
  #make;
  #ears;

  /** @param {() => Worker} make a worker that has been told to start @param {Ears} ears */
  constructor(make, ears) {
    this.#make = make;
    this.#ears = ears;
  }

  get isBusy() {
    return this.#running !== null || this.#waiting.length > 0;
  }

  get isReady() {
    return this.#ready;
  }

  /** Start Python, if it has not been started. */
  start() {
    if (this.#worker) return;
    this.#ready = false;
    const worker = this.#make();
    this.#worker = worker;
    worker.onmessage = ({ data }) => {
      if (worker === this.#worker) this.#hear(data);
    };
    worker.onerror = (event) => {
      event.preventDefault?.();
      if (worker === this.#worker) this.#fail(event.message || "the worker did not start");
    };
  }

  /**
   * Run a cell when those before it are done; `begun` is called when its turn comes.
   * @param {Job} job @param {() => void} [begun]
   * @returns {Promise<Outcome>}
   */
  run(job, begun = () => {}) {
    this.start();
    return new Promise((done, failed) => {
      this.#waiting.push({ job, begun, done, failed });
      this.#next();
    });
  }

  /** The reader has moved something in an explorable. @param {string} model @param {object} values */
  update(model, values) {
    this.#worker?.postMessage({ kind: "update", model, values });
  }

  /** End all jobs; the names of Python are gone, and a new one starts. */
  stop() {
    this.#worker?.terminate();
    this.#worker = null;
    this.#drop(new Stopped("stopped"));
    this.start();
  }

  /** Take all jobs back that have not begun. */
  forgetWaiting() {
    for (const entry of this.#waiting.splice(0)) entry.failed(new Stopped("not begun"));
  }

  /** End it for good. */
  close() {
    this.#worker?.terminate();
    this.#worker = null;
    this.#ready = false;
    this.#drop(new Stopped("closed"));
  }

  #next() {
    if (!this.#ready || this.#running || !this.#waiting.length) return;
    const entry = /** @type {Entry} */ (this.#waiting.shift());
    this.#running = entry;
    this.#number += 1;
    entry.begun();
    const { label, code, quiet = false } = entry.job;
    this.#worker?.postMessage({ kind: "run", job: this.#number, label, code, quiet });
  }

  /** @param {any} message */
  #hear(message) {
    if (message.kind === "progress") this.#ears.progress(message);
    else if (message.kind === "state") this.#ears.state(message.model, message.values);
    else if (message.kind === "failed") this.#fail(message.reason);
    else if (message.kind === "ready") {
      this.#ready = true;
      this.#ears.ready();
      this.#next();
    } else if (message.job === this.#number && this.#running) {
      if (message.kind === "done") {
        const { done } = this.#running;
        this.#running = null;
        done(message.outcome);
        // what waits for the outcome may first take back what would come next
        queueMicrotask(() => this.#next());
      } else this.#running.job.hear(message);
    }
  }

  /** @param {string} reason */
  #fail(reason) {
    this.#worker?.terminate();
    this.#worker = null;
    this.#ready = false;
    this.#drop(new Error(reason));
    this.#ears.failed(reason);
  }

  /** @param {Error} error */
  #drop(error) {
    const entries = this.#running ? [this.#running, ...this.#waiting] : this.#waiting;
    this.#running = null;
    this.#waiting = [];
    for (const entry of entries) entry.failed(error);
  }
}
