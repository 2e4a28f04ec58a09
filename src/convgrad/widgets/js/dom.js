// @ts-check
// A few lines that make elements; no framework.

const FOCUSABLE = new Set(["button", "input", "select", "summary"]);

/**
 * An element with attributes, listeners (`onclick`) and children.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [attributes]  `undefined`, `null` and `false` are left out
 * @param {...(Node | string | null | undefined | false)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  if (tag === "button") element.setAttribute("type", "button"); // the default submits
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  // JupyterLab's one-letter commands look at what has the focus: they are not meant for these
  if (FOCUSABLE.has(tag) || "tabindex" in attributes) element.dataset.lmSuppressShortcuts = "true";
  element.append(
    ...children.filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** A picture of one path. @param {string} viewBox */
export function drawing(viewBox) {
  const [svg, path] = ["svg", "path"].map((tag) =>
    document.createElementNS("http://www.w3.org/2000/svg", tag),
  );
  svg.setAttribute("viewBox", viewBox);
  svg.append(path);
  return { svg, path };
}

/** @param {Element} element @param {...(Node | string)} children */
export const fill = (element, ...children) => element.replaceChildren(...children);

/** Sets an attribute only where it differs. @param {Element} element @param {string} name @param {string} value */
export function attribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Sets text only where it differs, which spares layout. @param {Element} element @param {string} text */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Pieces of text, each in the colour of what it names.
 * @param {import("./words.js").Piece[]} pieces
 */
export const tinted = (pieces) =>
  pieces.map(({ text, key }) => (key ? h("span", { class: `cg-ink-${key}` }, text) : text));

/**
 * Names a widget as no other on the page: the second player from the top is number 2, whichever of
 * them was started first.
 * @param {HTMLElement} root
 * @param {string} stem
 */
export function named(root, stem) {
  root.dataset.stem = root.ariaLabel = stem;
  queueMicrotask(() => {
    // by now it is in the page
    document.querySelectorAll(`[data-stem="${stem}"]`).forEach((each, k) => {
      each.ariaLabel = k ? `${stem} ${k + 1}` : stem;
    });
  });
}

let serial = 0;
/** An id that no other element of the page has. @param {string} stem */
export const freshId = (stem) => `cg-${stem}-${++serial}-${Math.random().toString(36).slice(2, 7)}`;
