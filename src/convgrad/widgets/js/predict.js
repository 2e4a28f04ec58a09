// @ts-check
// Predict: a question whose answer is a number, a grid of numbers or a choice.
//
// All that the reader has done is in the model, so several displays agree and a live kernel knows.
// A view draws the model; only a field that cannot be read is the view's own affair.

import { judge, readAnswer } from "./answers.js";
import { fill, freshId, h, say } from "./dom.js";
import { blankEntry, fieldsOf, mark, rich, solvedEntry } from "./fields.js";
import { restore, store } from "./progress.js";

/** @typedef {import("./answers.js").Question} Question */
/** @typedef {import("./answers.js").Verdict} Verdict */
/** A text that is no answer, and the field it stands in. @typedef {{problem: string, field: number}} Unread */
/** @typedef {{get: (name: string) => any, set: (values: Record<string, unknown>) => void,
 *    on: (name: string, callback: () => void) => void, off: (name: string, callback: () => void) => void,
 *    save_changes: () => void}} Model */

/** What a reader starts with. */
const FRESH = { answer: null, correct: false, attempts: 0, hints_shown: 0, revealed: false };

/** @param {Model} model @returns {Question} */
const questionOf = (model) => ({
  kind: model.get("kind"),
  solution: model.get("solution"),
  mistakes: model.get("mistakes"),
  tolerance: model.get("tolerance"),
  axes: model.get("axes"),
  labels: model.get("labels"),
  given: model.get("given"),
});

class View {
  /** @type {Unread | null} of this view alone, until something else is typed */
  unread = null;
  /** The verdict that was last said: one that stays is not read aloud again with every key. */
  said = "";

  /** @param {Model} model @param {HTMLElement} el */
  constructor(model, el) {
    this.model = model;
    this.question = questionOf(model);
    const id = freshId("predict");
    this.fields = fieldsOf(this.question, { choices: model.get("choices"), name: model.get("name") }, id);
    this.check = h("button", { type: "submit", class: "cg-ask-primary" }, "Check");
    this.hint = h("button", { type: "button", onclick: () => this.#help() });
    this.again = h("button", { type: "button", onclick: () => this.#startOver() }, "Start over");
    this.verdict = h("div", { class: "cg-ask-verdict", id: `${id}-said`, role: "status", tabindex: -1 });
    this.hints = h("ol", { class: "cg-ask-hints", "aria-live": "polite" });
    const controls = h("div", { class: "cg-ask-controls" }, this.check, this.hint, this.again);
    this.root = h(
      "div",
      {
        class: "cg cg-predict",
        role: "group",
        "aria-labelledby": id,
        "data-lm-suppress-shortcuts": "true", // JupyterLab's single keys stay out of the fields
      },
      h("p", { class: "cg-ask-kicker", id }, model.get("title")),
      rich("div", model.get("question")),
      this.#form(controls),
      this.verdict,
      this.hints,
    );
    el.append(this.root);
    this.draw();
  }

  /** @param {HTMLElement} controls */
  #form(controls) {
    const attributes = {
      class: "cg-ask-form",
      "data-kind": this.question.kind,
      novalidate: true,
      oninput: () => this.#type(),
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        this.#submit();
      },
      // said outright, because JupyterLab keeps forms from being sent by Enter
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const inField = event.target instanceof HTMLInputElement;
        if (event.key !== "Enter" || event.isComposing || !inField) return;
        event.preventDefault();
        this.#submit();
      },
    };
    return h("form", attributes, this.fields.element, controls);
  }

  // ---- what the reader does -----------------------------------------------------------------

  /** @param {Record<string, unknown>} values */
  #change(values) {
    this.unread = null;
    this.model.set(values);
    store(this.model);
  }

  /** @param {Record<string, unknown>} values */
  #save(values) {
    this.#change(values);
    this.model.save_changes();
  }

  #type() {
    // not sent to a kernel: what comes back from there would be older than what is typed meanwhile
    this.#change({ entry: this.fields.texts() });
  }

  #submit() {
    if (this.#done()) return;
    const entry = this.fields.texts();
    const read = readAnswer(this.question, entry);
    if (read.problem !== undefined) {
      this.unread = read;
      this.draw();
      this.#goTo(Math.max(read.field, 0));
      return;
    }
    const { passed, wrong } = judge(this.question, read.answer);
    const attempts = this.model.get("attempts") + 1;
    this.#save({ entry: entry.map(trueMinus), answer: read.answer, correct: passed, attempts });
    if (passed) this.#keepFocus();
    else if (this.question.kind !== "choice") this.#goTo(wrong);
  }

  #help() {
    const shown = this.model.get("hints_shown");
    if (shown < this.model.get("hints").length) this.#save({ hints_shown: shown + 1 });
    else this.#save({ revealed: true, entry: solvedEntry(this.question), answer: null });
    this.#keepFocus();
  }

  #startOver() {
    this.#save({ ...FRESH, entry: blankEntry(this.question) });
    this.#goTo(0);
  }

  /** @param {number} field */
  #goTo(field) {
    this.fields.inputs[field].focus();
    this.fields.inputs[field].select();
  }

  /** A button that had the focus and is gone hands it to the verdict, not to nowhere. */
  #keepFocus() {
    const { activeElement } = document;
    if (!this.root.contains(activeElement) || activeElement?.closest("[hidden]")) this.verdict.focus();
  }

  // ---- what there is to see -----------------------------------------------------------------

  #done() {
    return this.model.get("correct") || this.model.get("revealed");
  }

  draw() {
    const answer = this.model.get("answer") ?? null; // Python in a browser sends its None as undefined
    const judged = answer === null ? null : judge(this.question, answer);
    const failed = judged !== null && !judged.passed;
    const done = this.#done();
    this.fields.show(this.model.get("entry"), done);
    mark(this.fields, this.unread ? this.unread.field : failed ? this.#wrongField(judged) : -1, this.verdict.id);
    this.check.hidden = done;
    // the answer comes after the hints, or after a try where there are none
    this.hint.hidden = done || (!this.model.get("hints").length && !this.model.get("attempts"));
    this.again.hidden = !done;
    this.#drawHelp();
    this.#drawVerdict(judged);
    this.root.dataset.state = this.unread || failed ? "wrong" : done ? "done" : "open";
  }

  /**
   * The field to mark: none once something else stands in the fields than what was judged.
   * @param {Verdict} judged
   */
  #wrongField(judged) {
    const answer = this.model.get("answer");
    const now = readAnswer(this.question, this.model.get("entry")).answer;
    if (String(now) !== String(answer)) return -1;
    return this.question.kind === "choice" ? answer : judged.wrong;
  }

  #drawHelp() {
    const all = this.model.get("hints");
    const shown = this.model.get("hints_shown");
    while (this.hints.children.length > shown) this.hints.lastChild?.remove();
    for (const html of all.slice(this.hints.children.length, shown)) this.hints.append(rich("li", html));
    const next = shown ? `Next hint (${shown + 1} of ${all.length})` : "Show a hint";
    say(this.hint, shown === all.length ? "Show the answer" : next);
  }

  /** @param {Verdict | null} judged */
  #drawVerdict(judged) {
    const solved = this.model.get("correct") || this.model.get("revealed");
    const [sign, word] = this.#headline(judged);
    const saying = JSON.stringify([word, this.unread?.problem, judged?.message, this.model.get("attempts")]);
    if (saying === this.said) return;
    this.said = saying;
    if (!word) return fill(this.verdict);
    const body = rich("div", solved ? this.model.get("explanation") : "");
    if (body.firstElementChild?.tagName !== "P") body.prepend(h("p"));
    const head = /** @type {Element} */ (body.firstElementChild);
    head.prepend(h("span", { class: "cg-ask-mark", "aria-hidden": "true" }, sign), h("strong", {}, word), " ");
    if (this.unread) head.append(this.unread.problem);
    else if (judged && !judged.passed) head.append(rich("span", judged.message));
    fill(this.verdict, body);
  }

  /** @param {Verdict | null} judged */
  #headline(judged) {
    if (this.unread) return ["✎", "Not yet."];
    if (this.model.get("revealed")) return ["→", "The answer."];
    if (!judged) return ["", ""];
    return judged.passed ? ["✓", "Right."] : ["✗", "Not yet."];
  }
}

/** A hyphen in front of a number as the minus sign that the grids have. @param {string} text */
const trueMinus = (text) => text.trim().replace(/^-/, "−");

export default {
  /** @param {{model: Model}} context */
  initialize({ model }) {
    if (!model.get("entry").length) model.set({ entry: blankEntry(questionOf(model)) });
    restore(model);
    model.save_changes();
  },

  /** @param {{model: Model, el: HTMLElement}} context */
  render({ model, el }) {
    const view = new View(model, el);
    const draw = () => view.draw();
    model.on("change", draw);
    return () => model.off("change", draw);
  },
};
