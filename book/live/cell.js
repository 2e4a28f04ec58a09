// @ts-check
// One cell of a live page: its editor, its buttons, what it shows.

import { h, say } from "../../src/convgrad/widgets/js/dom.js";

import { editor } from "./editor.js";
import { Stopped } from "./kernel.js";
import { lines } from "./lines.js";
import { OLD, Output } from "./output.js";

/** @typedef {import("./switch.js").Cell} Described */
/** @typedef {import("./engine.js").Left} Left */

/**
 * What a cell asks of the page.
 * @typedef {object} Page
 * @property {import("./kernel.js").Kernel} kernel
 * @property {import("./kept.js").Kept} kept
 * @property {(cell: LiveCell, andThis?: boolean) => Promise<void>} runAbove
 * @property {() => void} stop
 * @property {(place: HTMLElement, widget: any) => void} drawWidget
 * @property {(sentence: string) => void} announce
 * @property {(index: number) => boolean} hasAbove whether there is anything to be run above
 * @property {(index: number) => boolean} hasUnrunAbove
 */

export class LiveCell {
  hasRun = false;
  #editor;
  #original;
  #buttons;
  #state;
  #note;
  #place;
  #before;
  #input;
  #inputBefore;
  #page;
  #isRunning = false;
  #isShowing = false; // something other than what the page was built with

  /**
   * @param {HTMLElement} element the page's .cell
   * @param {Described} described
   * @param {number} index in the notebook
   * @param {number} number among those whose code is shown, from 1
   * @param {Page} page
   */
  constructor(element, described, index, number, page) {
    this.described = described;
    this.index = index;
    this.label = `cell ${number}`;
    this.#page = page;
    this.#original = described.code;
    this.#input = /** @type {HTMLElement} */ (element.querySelector(".cell_input"));
    this.#inputBefore = [...this.#input.childNodes];
    this.#place =
      /** @type {HTMLElement | null} */ (element.querySelector(".cell_output")) ??
      h("div", { class: "cell_output docutils container" });
    this.#before = [...this.#place.childNodes];
    this.#editor = editor(page.kept.get(index, this.#original) ?? this.#original, {
      label: `Code of ${this.label}`,
      run: () => this.run(),
      change: (text) => this.#changed(text),
    });
    const button = (/** @type {string} */ words, /** @type {() => void} */ onclick, label = "") =>
      h("button", { class: "cg-run-button", onclick, "aria-label": label || undefined }, words);
    this.#buttons = {
      run: button("Run", () => (this.#isRunning ? page.stop() : this.run())),
      above: button("Run all above", () => page.runAbove(this)),
      reset: button("Reset", () => this.reset(), `Reset ${this.label}`),
    };
    this.#state = h("span", { class: "cg-run-state" });
    this.#note = h("p", { class: "cg-run-note", hidden: true });
    const tools = h(
      "div",
      { class: "cg-run-tools", role: "group", "aria-label": `Tools of ${this.label}` },
      this.#buttons.run,
      this.#buttons.above,
      this.#buttons.reset,
      this.#state,
    );
    this.#input.replaceChildren(
      h("div", { class: "highlight cg-run-code" }, this.#editor.element),
      tools,
      this.#note,
    );
    if (!this.#place.isConnected) this.#input.after(this.#place);
    this.#nameRun();
    this.#buttons.above.disabled = !page.hasAbove(index);
    this.#buttons.above.setAttribute("aria-label", `Run all above ${this.label}`);
    this.#rest();
  }

  get code() {
    return this.#editor.text();
  }

  get isEdited() {
    return this.code !== this.#original;
  }

  focus() {
    this.#editor.focus();
  }

  /**
   * Run it; true if it ended well.
   * @returns {Promise<boolean>}
   */
  async run() {
    const { kernel } = this.#page;
    if (this.#isRunning) return false;
    if (this.described.needs && !this.isEdited && !this.#mayTry()) {
      this.#explain([]);
      return true;
    }
    const output = new Output(this.#place, this.label, this.#page.drawWidget);
    this.#isShowing = true;
    this.#editor.point(0);
    this.#setRunning(true);
    this.#say(kernel.isReady ? "waiting" : "waiting for Python");
    try {
      const outcome = await kernel.run(
        { label: this.label, code: this.code, hear: (message) => output.hear(message) },
        () => this.#say("running …"),
      );
      this.hasRun = true;
      this.#setRunning(false);
      if (outcome.error) {
        output.trouble(outcome.error, ...this.#help(outcome.error));
        this.#editor.point(outcome.error.line);
        const line = outcome.error.line ? `, line ${outcome.error.line}` : "";
        this.#say(`${outcome.error.name}${line}`);
        this.#page.announce(`${this.label}: ${outcome.error.name}${line}`);
        return false;
      }
      if (outcome.left.length) {
        this.#isShowing = false;
        this.#explain(outcome.left);
      } else {
        output.finish();
        this.#note.hidden = true;
        this.#say("done");
        this.#page.announce(`${this.label} is done`);
      }
      return true;
    } catch (error) {
      this.#setRunning(false);
      this.#say(error instanceof Stopped ? "stopped" : "could not be run");
      return false;
    }
  }

  /** The names of Python are gone. */
  forget() {
    this.hasRun = false;
    if (!this.#isRunning) this.#rest();
  }

  /** The code and the output that the page was built with. */
  reset() {
    this.#editor.replace(this.#original);
    this.#editor.point(0);
    this.#place.replaceChildren(...this.#before);
    this.#note.hidden = true;
    this.#isShowing = false;
    this.#rest();
    this.#page.announce(`${this.label} is as it was`);
  }

  /** The page as it was. */
  remove() {
    this.#editor.remove();
    this.#input.replaceChildren(...this.#inputBefore);
    this.#place.replaceChildren(...this.#before);
    if (!this.#before.length) this.#place.remove();
  }

  /** Whether its code says what is missing, so that the rest of it can be run. */
  #mayTry() {
    return !this.described.needs?.startsWith("memory");
  }

  /** The reader has changed the code. @param {string} text */
  #changed(text) {
    const isKept = this.#page.kept.set(this.index, this.#original, text);
    if (isKept) this.#rest();
    else this.#say("edited; this browser keeps nothing");
  }

  /** @param {boolean} isRunning */
  #setRunning(isRunning) {
    this.#isRunning = isRunning;
    this.#place.classList.toggle(OLD, isRunning);
    this.#nameRun();
  }

  #nameRun() {
    say(this.#buttons.run, this.#isRunning ? "Stop" : "Run");
    this.#buttons.run.setAttribute("aria-label", `${this.#isRunning ? "Stop" : "Run"} ${this.label}`);
  }

  /** @param {string} words */
  #say(words) {
    say(this.#state, [this.label, words].filter(Boolean).join(": "));
    this.#buttons.reset.disabled = this.#isRunning || !(this.isEdited || this.#isShowing);
  }

  /** What stands there while nothing happens. */
  #rest() {
    const { needs } = this.described;
    this.#say(this.isEdited ? "edited" : needs ? `needs ${needs}` : "");
  }

  /** Why it, or a part of it, was not run, and where it can be. @param {Left[]} left */
  #explain(left) {
    const needs = left.length ? left.map((each) => each.need) : [this.described.needs ?? ""];
    const need = [...new Set(needs)].join(" and ");
    const which = left.length ? lines(left) : "This cell";
    const words = [`${which} ${/^(Line |This)/.test(which) ? "needs" : "need"} ${need}, which a browser does not have.`];
    words.push("To run this, open the chapter as a notebook:");
    const rest = [];
    if (left.length) rest.push("What can be run here was run, and its names are there.");
    if (!this.isEdited) rest.push("What is shown below was computed when the book was built.");
    this.#note.replaceChildren(
      `${words.join(" ")} `,
      h("code", {}, "make lab"),
      ["", ...rest].join(" ").replace(/^/, "."),
    );
    this.#note.hidden = false;
    this.#say(`needs ${need}`);
    this.#page.announce(`${this.label} needs ${need}`);
  }

  /** @param {import("./engine.js").Trouble} trouble */
  #help({ name }) {
    if (name !== "NameError" || !this.#page.hasUnrunAbove(this.index)) return [];
    return [
      h(
        "p",
        { class: "cg-run-help" },
        "The name may come from a cell above that has not been run. ",
        h(
          "button",
          { class: "cg-run-button", onclick: () => this.#page.runAbove(this, true) },
          "Run all above, then this",
        ),
      ),
    ];
  }
}
