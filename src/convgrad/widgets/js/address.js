// @ts-check
// What differs from the page's own state, as a part of the page's address, and back:
//
//   #cg1&w1.of=3f2a&w1.step=18&w1.stride=2&w1.x=0.0.2.3:-4.5
//
// "cg1" is the version of this spelling, "w1" the widget, "of" a digest of the state that the page
// was made with.  Of a record (the geometry) and of an array only what differs is written; an
// array of another size is the page's, refitted, so a turned knob needs no numbers.

import { refit, ravel, unravel } from "./conv.js";
import { product } from "./limits.js";
import { same } from "./static_page.js";

/** @typedef {{shape: number[], data: number[]}} Tensor */
/** @typedef {Record<string, any>} State */

const VERSION = "cg1";
const MOST_CELLS = 1e5; // of an array in a link: more is nobody's picture

/** A link that cannot be followed; the message says why. */
export class BrokenLink extends Error {}

/** @param {any} value @returns {value is Tensor} */
const isTensor = (value) => Array.isArray(value?.data) && Array.isArray(value?.shape);
/** @param {any} value */
const isRecord = (value) => typeof value === "object" && value !== null && !Array.isArray(value) && !isTensor(value);

// ---- the whole fragment ----------------------------------------------------------------------

/**
 * The parts of a fragment by widget; null where it is none of ours, such as the name of a section.
 * @param {string} fragment  with or without its #
 * @returns {Map<string, Record<string, string>> | null}
 */
export function partsOf(fragment) {
  const [version, ...entries] = fragment.replace(/^#/, "").split("&");
  if (!/^cg\d+$/.test(version)) return null;
  if (version !== VERSION) throw new BrokenLink("it was made by another version of the book");
  /** @type {Map<string, Record<string, string>>} */
  const parts = new Map();
  for (const entry of entries) {
    const [, name, key, text] = /^(\w+)\.(\w+)=(.*)$/.exec(entry) ?? [];
    if (!name) continue; // what mail programs add to an address is no harm
    parts.set(name, { ...parts.get(name), [key]: text });
  }
  return parts;
}

/** @param {Map<string, Record<string, string>>} parts */
export const fragmentOf = (parts) =>
  [...parts].reduce(
    (text, [name, entries]) =>
      text + Object.entries(entries).map(([key, value]) => `&${name}.${key}=${value}`).join(""),
    `#${VERSION}`,
  );

// ---- one widget's part -----------------------------------------------------------------------

/**
 * What differs from the page's own state, in words; null where nothing does.
 * @param {State} base  what the page was made with
 * @param {State} now
 * @param {readonly string[]} kept  the traits that a link keeps
 * @returns {Record<string, string> | null}
 */
export function differences(base, now, kept) {
  /** @type {Record<string, string>} */
  const texts = {};
  for (const name of kept) {
    if (same(base[name], now[name])) continue;
    if (isTensor(now[name])) {
      const text = arrayText(base[name], now[name]);
      if (text) texts[name] = text;
    } else if (isRecord(now[name])) {
      for (const key of Object.keys(base[name])) {
        if (!same(base[name][key], now[name][key])) texts[key] = valueText(now[name][key]);
      }
    } else texts[name] = valueText(now[name]);
  }
  return Object.keys(texts).length ? { of: digest(base, kept), ...texts } : null;
}

/**
 * The state that a part describes; BrokenLink where it describes none.
 * @param {State} base @param {Record<string, string>} part
 * @param {readonly string[]} kept @param {Record<string, readonly unknown[]>} [choices]
 * @returns {State}
 */
export function stateOf(base, { of, ...texts }, kept, choices = {}) {
  if (of !== digest(base, kept)) throw new BrokenLink("it was made for another state of this page");
  /** @type {State} */
  const state = Object.fromEntries(kept.map((name) => [name, base[name]]));
  for (const [key, text] of Object.entries(texts)) {
    const home = kept.find((name) => name === key || (isRecord(base[name]) && Object.hasOwn(base[name], key)));
    if (!home) throw new BrokenLink(`it names ${key}, which is not known here`);
    if (home !== key) state[home] = { ...state[home], [key]: valueOf(key, text, base[home][key]) };
    else if (isTensor(base[key])) state[key] = arrayOf(key, text, base[key]);
    else {
      state[key] = valueOf(key, text, base[key]);
      if (choices[key]?.includes(state[key]) === false) throw unread(key, text);
    }
  }
  return state;
}

/** Four letters that tell one state of a page from another. @param {State} base @param {readonly string[]} kept */
function digest(base, kept) {
  let hash = 0x811c9dc5; // FNV-1a
  for (const letter of JSON.stringify(kept.map((name) => base[name]))) {
    hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193);
  }
  return ((hash ^ (hash >>> 16)) & 0xffff).toString(16).padStart(4, "0");
}

// ---- values ----------------------------------------------------------------------------------

/** @param {string} key @param {string} text */
const unread = (key, text) => new BrokenLink(`${key} is “${text.slice(0, 40)}” in it`);

/** Lists as their numbers, one number where all are alike. @param {any} value */
function valueText(value) {
  if (!Array.isArray(value)) return encodeURIComponent(value);
  const leaves = value.flat(Infinity);
  return `${new Set(leaves).size === 1 ? leaves[0] : leaves}`;
}

/** A value of the same kind as `like`. @param {string} key @param {string} text @param {any} like @returns {any} */
function valueOf(key, text, like) {
  if (typeof like === "string") {
    try {
      return decodeURIComponent(text);
    } catch {
      throw unread(key, text);
    }
  }
  if (typeof like === "boolean") {
    if (text !== "true" && text !== "false") throw unread(key, text);
    return text === "true";
  }
  if (typeof like === "number") return numberOf(key, text, Number.isInteger(like));
  if (!Array.isArray(like)) throw unread(key, text);
  const count = like.flat(Infinity).length;
  const given = text.split(",").map((each) => numberOf(key, each, true));
  if (given.length !== 1 && given.length !== count) throw unread(key, text);
  const leaves = given.length === 1 ? Array(count).fill(given[0]) : given;
  /** @param {any} shape @returns {any} */
  const fill = (shape) => (Array.isArray(shape) ? shape.map(fill) : leaves.shift());
  return fill(like);
}

/** @param {string} key @param {string} text @param {boolean} [whole] */
function numberOf(key, text, whole = false) {
  const value = Number(text);
  const written = /^-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/.test(text);
  if (!written || !Number.isFinite(value) || (whole && !Number.isInteger(value))) throw unread(key, text);
  return value;
}

// ---- arrays ----------------------------------------------------------------------------------

/** The shape where it is another one, then the cells that differ or, where that is shorter, all. @param {Tensor} base @param {Tensor} now */
function arrayText(base, now) {
  const resized = `${base.shape}` !== `${now.shape}`;
  const before = refit(base, now.shape).data;
  const cells = now.data.flatMap((value, k) =>
    value === before[k] ? [] : [`${unravel(k, now.shape).join(".")}:${value}`],
  );
  const some = cells.join(",");
  const all = now.data.join(",");
  return (resized ? `${now.shape.join("x")};` : "") + (cells.length && all.length < some.length ? all : some);
}

/** @param {string} key @param {string} text @param {Tensor} base @returns {Tensor} */
function arrayOf(key, text, base) {
  const [numbers, sizes] = text.split(";").reverse();
  const shape = sizes ? sizes.split("x").map((size) => numberOf(key, size, true)) : base.shape;
  const odd = shape.length !== base.shape.length || shape.some((size) => size < 1);
  if (odd || product(shape) > MOST_CELLS) throw unread(key, text);
  const array = refit(base, shape);
  if (!numbers) return array;
  if (!numbers.includes(":")) {
    const data = numbers.split(",").map((each) => numberOf(key, each));
    if (data.length !== product(shape)) throw unread(key, text);
    return { shape, data };
  }
  for (const cell of numbers.split(",")) {
    const [place, value] = cell.split(":");
    const index = place.split(".").map((each) => numberOf(key, each, true));
    const inside = index.length === shape.length && index.every((k, axis) => k >= 0 && k < shape[axis]);
    if (!inside || value === undefined) throw unread(key, text);
    array.data[ravel(index, shape)] = numberOf(key, value);
  }
  return array;
}
