// @ts-check
// What a cell shows: text, figures, HTML, explorables and errors, in the page's own look.

import { h } from "../../src/convgrad/widgets/js/dom.js";

/** @typedef {Record<string, any>} Bundle a value by kinds of content */

/** The class of an output that is not this run's. */
export const OLD = "cg-run-old";

/** Where a cell's output goes; what was there before stays until something new comes. */
export class Output {
  /** @type {HTMLPreElement | null} */
  #stream = null;
  #streamName = "";
  #fresh = true;
  #place;
  #drawWidget;
  #label;

  /**
   * @param {HTMLElement} place @param {string} label whose output it is
   * @param {(place: HTMLElement, widget: any) => void} drawWidget
   */
  constructor(place, label, drawWidget) {
    this.#place = place;
    this.#label = label;
    this.#drawWidget = drawWidget;
  }

  /** @param {any} message of the worker */
  hear(message) {
    if (message.kind === "stream") this.#write(message.name, message.text);
    else if (message.kind === "display") this.#add(this.#drawn(message.bundle));
  }

  /** The cell is done: if it showed nothing, nothing is to be seen. */
  finish() {
    if (this.#fresh) this.#clear();
  }

  /** @param {import("./engine.js").Trouble} trouble @param {...Node} more */
  trouble({ name, text, line }, ...more) {
    const where = line ? ` in line ${line}` : "";
    const pre = h("pre", {}, text.trimEnd());
    this.#add(
      h(
        "div",
        { class: "output cg-run-trouble", role: "group", "aria-label": "What went wrong" },
        h("p", { class: "cg-run-head" }, `${name}${where}`),
        h("div", { class: "highlight" }, scrolls(pre, "The way to the error")),
        ...more,
      ),
    );
  }

  #clear() {
    this.#fresh = false;
    this.#stream = null;
    this.#place.classList.remove(OLD);
    this.#place.replaceChildren();
  }

  /** @param {Node} node */
  #add(node) {
    if (this.#fresh) this.#clear();
    this.#stream = null;
    this.#place.append(node);
  }

  /** @param {string} name @param {string} text */
  #write(name, text) {
    if (this.#fresh) this.#clear();
    if (!this.#stream || this.#streamName !== name) {
      const pre = h("pre", {});
      this.#add(boxed("stream", pre));
      this.#stream = pre;
      this.#streamName = name;
    }
    this.#stream.append(text);
  }

  /** @param {Bundle} bundle */
  #drawn(bundle) {
    if (bundle.widget) {
      const place = h("div", { class: "cg-widget" });
      this.#drawWidget(place, bundle.widget);
      return place;
    }
    if (bundle["text/html"]) {
      const place = h("div", { class: "output text_html" });
      place.innerHTML = bundle["text/html"]; // a script in it does not run: the page's policy
      return place;
    }
    if (bundle["image/svg+xml"]) return figure(bundle["image/svg+xml"], `Figure of ${this.#label}`);
    if (bundle["image/png"]) {
      const { data, width } = bundle["image/png"];
      return h("img", {
        class: "cg-run-image",
        src: `data:image/png;base64,${data}`,
        alt: `Figure of ${this.#label}`,
        width: width || undefined,
      });
    }
    if (bundle["text/markdown"]) return boxed("text_plain", h("pre", {}, bundle["text/markdown"]));
    return boxed("text_plain", h("pre", {}, bundle["text/plain"]));
  }
}

/** Text as the pages show it. @param {string} kind @param {HTMLElement} pre */
const boxed = (kind, pre) =>
  h("div", { class: `output ${kind}` }, h("div", { class: "highlight" }, scrolls(pre, "Output")));

/** What may be wider than the page can be reached by the keyboard. @param {HTMLElement} pre @param {string} label */
function scrolls(pre, label) {
  pre.tabIndex = 0;
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", label);
  return pre;
}

let figures = 0;

/**
 * An SVG in the page itself, so that it follows light and dark, with ids of its own.
 * @param {string} text @param {string} label
 */
export function figure(text, label) {
  figures += 1;
  const own = text
    .replace(/<style class="cg-theme">.*?<\/style>/s, "")
    .replace(/<g id="cg-paper">.*?<\/g>/s, "")
    .replace(/\b(id="|url\(#|href="#)/g, `$1live${figures}-`);
  const place = h("span", { class: "cg-picture", tabindex: "0", role: "group" });
  place.setAttribute("aria-label", "Figure, scrolls sideways");
  place.innerHTML = own.slice(Math.max(0, own.indexOf("<svg")));
  const svg = place.querySelector("svg");
  svg?.setAttribute("role", "img");
  svg?.setAttribute("aria-label", label);
  place.style.setProperty("--cg-width", `${Number.parseFloat(svg?.getAttribute("width") ?? "640")}px`);
  return place;
}
