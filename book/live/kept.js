// @ts-check
// What a reader has written, kept in the browser until it is put back.
//
// An edit is kept with a mark of the code that it changed: when the book has another code there, the
// old edit is no longer about anything, and is let go.

/** A short mark of a text. @param {string} text */
export function mark(text) {
  let hash = 5381;
  for (const sign of text) hash = (Math.imul(hash, 33) ^ /** @type {number} */ (sign.codePointAt(0))) >>> 0;
  return hash.toString(36);
}

export class Kept {
  #key;
  #storage;

  /** @param {string} page @param {Pick<Storage, "getItem" | "setItem" | "removeItem">} storage */
  constructor(page, storage) {
    this.#key = `cg-live:${page}`;
    this.#storage = storage;
  }

  /** What the reader made of a cell, or null. @param {number} cell @param {string} original */
  get(cell, original) {
    const found = this.#read()[cell];
    return found?.was === mark(original) ? found.code : null;
  }

  /**
   * Keep what the reader made of a cell; the original itself is not kept.
   * @param {number} cell @param {string} original @param {string} code
   * @returns {boolean} whether it could be kept
   */
  set(cell, original, code) {
    const all = this.#read();
    if (code === original) delete all[cell];
    else all[cell] = { was: mark(original), code };
    try {
      if (Object.keys(all).length) this.#storage.setItem(this.#key, JSON.stringify(all));
      else this.#storage.removeItem(this.#key);
      return true;
    } catch {
      return false; // forbidden, or full
    }
  }

  /** @returns {Record<string, {was: string, code: string}>} */
  #read() {
    try {
      return JSON.parse(this.#storage.getItem(this.#key) ?? "{}") ?? {};
    } catch {
      return {};
    }
  }
}
