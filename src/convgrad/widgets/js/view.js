// @ts-check
// What the views of all widgets do alike: hear of changes, complain in place, run a clock, go away.

import { h, say } from "./dom.js";
import { GeometryError } from "./conv.js";
import { equip } from "./equip.js";
import { advance, press } from "./player.js";

/** @typedef {import("./player.js").Head} Head */
/**
 * What anywidget and the static page's loader hand over.
 * @typedef {object} Model
 * @property {(name: string) => any} get
 * @property {(name: string, value: any) => void} set
 * @property {(event: string, callback: () => void) => void} on
 * @property {(event: string, callback: () => void) => void} off
 * @property {() => void} save_changes
 * @property {() => boolean} [isOurs]  whether this view has just saved a change
 */

/**
 * The model as one view uses it: it knows whether a change that the view hears of was made here, by
 * hand, or elsewhere, by a kernel.
 * @param {Model} model @returns {Model}
 */
export function owned(model) {
  let ours = false;
  return {
    get: (name) => model.get(name),
    set: (name, value) => model.set(name, value),
    on: (event, callback) => model.on(event, callback),
    off: (event, callback) => model.off(event, callback),
    save_changes() {
      ours = true;
      model.save_changes();
      queueMicrotask(() => (ours = false)); // views hear of it in an earlier one
    },
    isOurs: () => ours,
  };
}

/** The arrays of an update that has not arrived as a whole yet. */
export class Unfinished extends Error {}

export class View {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    /** @type {(() => void)[]} what undoes everything on the way out */
    this.undo = [];
    this.message = h("p", { class: "cg-message", role: "alert", hidden: true });
    /** Where undo, links and PyTorch code come, of the widgets that have them. */
    this.tools = h("div", { class: "cg-tools" });
  }

  /** What else comes with the tools, such as the form of knobs. @param {typeof import("./tools.js")} _tools */
  furnish(_tools) {}

  destroy() {
    for (const undo of this.undo.splice(0)) undo();
  }

  /**
   * A broken step says so in the widget and breaks nothing else.
   * @template {any[]} Args
   * @param {(...args: Args) => void} action
   * @returns {(...args: Args) => void}
   */
  guard(action) {
    return (...args) => {
      try {
        action(...args);
      } catch (error) {
        this.halt();
        const known = error instanceof GeometryError;
        this.complain(known ? error.message : `This step went wrong: ${error}`);
        if (!known) console.warn(error);
      }
    };
  }

  /** What stops when something went wrong. */
  halt() {}

  /** @param {string} sentence */
  complain(sentence) {
    say(this.message, sentence);
    this.message.hidden = !sentence;
  }

  /** Takes over what the model holds. */
  follow() {}

  /** What somebody has done here. @param {Record<string, any>} changes */
  send(changes) {
    this.complain("");
    if (this.model.get("complaint")) this.model.set("complaint", "");
    for (const [name, value] of Object.entries(changes)) this.model.set(name, value);
    this.model.save_changes();
    this.follow();
  }

  /**
   * Writes what follows from a change that was made here.  What follows from a kernel's the kernel
   * writes itself: ours would come after its program's next line, and undo what that has set.
   * @param {Record<string, any>} values
   */
  settle(values) {
    if (!this.model.isOurs?.()) return;
    const other = Object.entries(values).filter(([name, value]) => this.model.get(name) !== value);
    for (const [name, value] of other) this.model.set(name, value);
    if (other.length) this.model.save_changes();
  }

  /**
   * Puts the widget into the page and follows these traits.  One update of several traits fires
   * one event for each: `follow` is called once, when all have arrived.
   * @param {HTMLElement} el @param {HTMLElement} root @param {string[]} traits
   */
  mount(el, root, traits) {
    el.append(root);
    this.undo.push(() => root.remove());
    let scheduled = false;
    const schedule = () => {
      if (scheduled) return;
      scheduled = true;
      queueMicrotask(
        this.guard(() => {
          scheduled = false;
          try {
            this.follow();
          } catch (error) {
            if (!(error instanceof Unfinished)) throw error; // the rest is on its way
          }
        }),
      );
    };
    for (const name of traits) {
      this.model.on(`change:${name}`, schedule);
      this.undo.push(() => this.model.off(`change:${name}`, schedule));
    }
  }
}

/** A view that goes step by step; a subclass draws, and says what a step is in words. */
export class PlayedView extends View {
  #frame = 0;
  #clock = 0;
  #saved = 0;
  #spoken = 0;

  /** @param {Model} model @param {Head} head */
  constructor(model, head) {
    super(model);
    this.head = head;
    this.undo.push(() => cancelAnimationFrame(this.#frame));
  }

  halt() {
    this.head = { ...this.head, playing: false };
  }

  draw() {}
  /** Before another step is drawn. */
  leave() {}
  /** After it was. @param {boolean} _next  whether it is the next one, and slow enough to watch */
  arrived(_next) {}
  /** The step is read aloud. */
  speak() {}

  /** @param {Head} head */
  move(head) {
    const stepped = head.step !== this.head.step;
    const started = head.playing && !this.head.playing;
    const stopped = !head.playing && this.head.playing;
    const next = head.step === this.head.step + 1 && !(head.playing && head.speed > 4);
    this.head = head;
    if (stepped) {
      this.leave();
      this.model.set("step", head.step);
    }
    const now = performance.now();
    if (!head.playing || now - this.#saved > 250) {
      this.#saved = now;
      if (stepped || stopped) this.model.save_changes();
    }
    this.draw();
    this.arrived(next);
    if (started) {
      this.#clock = now;
      this.#await();
    }
    // at once when stepping by hand, every other second while playing
    if (!head.playing || now - this.#spoken >= 2000) {
      this.#spoken = now;
      this.speak();
    }
  }

  #await() {
    this.#frame = requestAnimationFrame(this.guard((time) => this.#tick(time)));
  }

  /** @param {number} time */
  #tick(time) {
    if (!this.head.playing) return;
    const passed = Math.min(Math.max(time - this.#clock, 0), 1000); // a hidden page has no frames
    this.#clock = time;
    const head = advance(this.head, passed);
    if (head.step !== this.head.step || !head.playing) this.move(head);
    else this.head = head;
    if (this.head.playing) this.#await();
  }

  /** A key that plays or steps. @param {KeyboardEvent} event */
  playKey(event) {
    const at = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (at.closest("input, select, textarea, summary")) return;
    if (event.key === " " && at.closest("button")) return; // space presses the button
    const head = press(this.head, event.key);
    if (!head) return;
    event.preventDefault();
    event.stopPropagation(); // in a notebook the same keys move between cells
    this.move(head);
  }
}

/**
 * What a module exports: draws the widget into `el`; what comes back takes it away again.
 * @param {string} name  as in “The player could not start”
 * @param {(model: Model, el: HTMLElement) => View} start
 * @param {import("./equip.js").Abilities} [abilities]  for undo, links and PyTorch code
 */
export const widget = (name, start, abilities) => ({
  abilities,
  /** @param {import("./equip.js").Context & {model: Model, el: HTMLElement}} context */
  render(context) {
    const { el } = context;
    try {
      const model = owned(context.model);
      const view = start(model, el);
      if (abilities) {
        const furnish = view.guard((tools) => view.furnish(tools));
        view.undo.push(equip({ ...context, model }, view.tools, abilities, furnish));
      }
      return () => view.destroy();
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      el.append(
        h("p", { class: "cg cg-message", role: "alert" }, `The ${name} could not start: ${words}`),
      );
      return () => el.replaceChildren();
    }
  },
});
