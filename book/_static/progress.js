// @ts-check
// The page "Your progress": says beside each exercise how far the reader has come, and exports,
// imports and clears it.  The questions themselves keep it, one by one, in the browser's storage
// (widgets/js/progress.js); the file is that of convgrad.exercises.progress.

(() => {
  const QUESTION = "convgrad:predict:"; // what a question in a page keeps
  const OTHER = "convgrad:progress:"; // what a file said of an exercise that no page asks
  const FORMAT = "convgrad-progress";
  const VERSION = 1;
  const LARGEST = 4_000_000;
  const STATES = ["tried", "shown", "right"]; // from the least to the most

  /** @typedef {{state: string, attempts?: number, hints?: number, score?: number, seed?: string,
   *   page?: {entry: string[], answer: unknown}}} Entry */
  /** What a question keeps.
   * @typedef {{entry: string[], answer: unknown, correct: boolean, attempts: number,
   *   hints_shown: number, revealed: boolean}} Kept */
  /** @typedef {{get: (key: string) => string | null, set: (key: string, value: string) => void,
   *   remove: (key: string) => void, keys: () => string[], lasting: boolean}} Store */

  /** The browser's storage, or one that lasts as long as the page. @returns {Store} */
  function openStore() {
    try {
      const { localStorage } = globalThis;
      localStorage.setItem(`${OTHER}?`, "");
      localStorage.removeItem(`${OTHER}?`);
      return {
        get: (key) => localStorage.getItem(key),
        set: (key, value) => localStorage.setItem(key, value),
        remove: (key) => localStorage.removeItem(key),
        keys: () => Object.keys(localStorage),
        lasting: true,
      };
    } catch {
      /** @type {Map<string, string>} */
      const kept = new Map();
      return {
        get: (key) => kept.get(key) ?? null,
        set: (key, value) => void kept.set(key, value),
        remove: (key) => void kept.delete(key),
        keys: () => [...kept.keys()],
        lasting: false,
      };
    }
  }

  // ---- from storage to entries and back -----------------------------------------------------

  /** @param {Store} store @param {string} key @returns {any} */
  function parsed(store, key) {
    try {
      return JSON.parse(store.get(key) ?? "null");
    } catch {
      return null;
    }
  }

  /** What a question keeps as an entry of the file; null while there is nothing to say.
   * @param {any} kept @returns {Entry | null} */
  function entryOf(kept) {
    if (kept === null || typeof kept !== "object" || !Array.isArray(kept.entry)) return null;
    const attempts = whole(kept.attempts);
    const hints = whole(kept.hints_shown);
    const state = kept.correct === true ? "right" : kept.revealed === true ? "shown" : attempts || hints ? "tried" : "";
    if (!state) return null;
    /** @type {Entry} */
    const entry = { state, page: { entry: kept.entry.map(String), answer: kept.answer ?? null } };
    if (attempts) entry.attempts = attempts;
    if (hints) entry.hints = hints;
    return entry;
  }

  /** @param {unknown} count */
  const whole = (count) => (Number.isSafeInteger(count) && Number(count) >= 0 ? Number(count) : 0);

  /** Of two entries the one that came further; of two alike, the one with more attempts.
   * @param {Entry | null} one @param {Entry | null} other */
  function further(one, other) {
    if (!one || !other) return one ?? other;
    const gap = STATES.indexOf(other.state) - STATES.indexOf(one.state);
    return gap > 0 || (!gap && (other.attempts ?? 0) > (one.attempts ?? 0)) ? other : one;
  }

  /** Everything that is known, by the keys of the exercises. @param {Store} store */
  function all(store) {
    /** @type {Map<string, Entry>} */
    const entries = new Map();
    for (const key of store.keys().sort()) {
      const prefix = [QUESTION, OTHER].find((each) => key.startsWith(each));
      if (!prefix) continue;
      const [name, seed] = key.slice(prefix.length).split("~"); // numbers of a learner's own
      const found = parsed(store, key);
      const entry = prefix === QUESTION ? entryOf(found) : isEntry(found) ? found : null;
      if (entry && seed !== undefined) entry.seed = seed;
      const best = further(entries.get(name) ?? null, entry);
      if (best) entries.set(name, best);
    }
    return entries;
  }

  /** @param {any} given @returns {given is Entry} */
  function isEntry(given) {
    if (given === null || typeof given !== "object" || !STATES.includes(given.state)) return false;
    const counted = [given.attempts ?? 0, given.hints ?? 0].every((count) => Number.isSafeInteger(count) && count >= 0);
    const { page } = given;
    return counted && (page === undefined || (page !== null && typeof page === "object" && !Array.isArray(page)));
  }

  /** Keep an entry where its question looks for it. @param {Store} store @param {string} key @param {Entry} entry */
  function keep(store, key, entry) {
    const { page } = entry;
    if (!page || !Array.isArray(page.entry) || entry.seed !== undefined) {
      store.set(OTHER + key, JSON.stringify(entry));
      return;
    }
    /** @type {Kept} */
    const kept = {
      entry: page.entry.map(String),
      answer: page.answer ?? null,
      correct: entry.state === "right",
      attempts: entry.attempts ?? 0,
      hints_shown: entry.hints ?? 0,
      revealed: entry.state === "shown",
    };
    store.set(QUESTION + key, JSON.stringify(kept));
  }

  /** A file's text as entries, or a sentence about what is wrong with it.
   * @param {string} text @returns {{entries?: [string, Entry][], problem?: string}} */
  function readFile(text) {
    let content;
    try {
      content = JSON.parse(text);
    } catch {
      return { problem: "This is no JSON file. Choose one that was exported here or written by convgrad." };
    }
    if (content?.format !== FORMAT) return { problem: `This is no progress file: it should say "format": "${FORMAT}".` };
    if (content.version !== VERSION) {
      return { problem: `The file has version ${String(content.version)}, and this page reads ${VERSION}.` };
    }
    const entries = Object.entries(content.exercises ?? {});
    const wrong = entries.find(([, entry]) => !isEntry(entry));
    if (wrong) return { problem: `What the file says of “${wrong[0].slice(0, 60)}” cannot be read.` };
    return { entries: /** @type {[string, Entry][]} */ (entries) };
  }

  // ---- what there is to see -----------------------------------------------------------------

  /** @template {keyof HTMLElementTagNameMap} Tag
   * @param {Tag} tag @param {Record<string, string>} attributes @param {...(Node | string)} inside */
  function made(tag, attributes, ...inside) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...inside);
    return element;
  }

  /** @typedef {{key: string, cell: HTMLTableCellElement, row: HTMLTableRowElement}} Row */

  /** The rows of the lists. @returns {Row[]} */
  function rowsOfPage() {
    return [...document.querySelectorAll(".cg-progress tbody tr")].flatMap((each) => {
      const row = /** @type {HTMLTableRowElement} */ (each);
      const name = [...row.classList].find((word) => word.startsWith("cg-key-"));
      const cell = row.cells[row.cells.length - 1];
      return name ? [{ key: name.slice("cg-key-".length), cell, row }] : [];
    });
  }

  /** @param {string} state @param {Entry | undefined} entry */
  function words(state, entry) {
    if (state === "right") return "✓ right";
    if (state === "shown") return "→ shown";
    if (state !== "tried") return "open";
    return entry?.score ? `… ${Math.round(100 * entry.score)} %` : "… tried";
  }

  /** @param {HTMLElement} place */
  function equip(place) {
    const store = openStore();
    const rows = rowsOfPage();
    const status = made("p", { role: "status", class: "cg-progress-said" });
    const bar = made("progress", { max: String(rows.length), value: "0", "aria-label": "Exercises that are right" });
    const count = made("p", { class: "cg-museum-count" });
    const file = made("input", { type: "file", accept: "application/json,.json", hidden: "", "aria-label": "A progress file" });
    const save = made("button", { type: "button" }, "Export");
    const open = made("button", { type: "button" }, "Import");
    const clear = made("button", { type: "button" }, "Clear");
    const really = made("button", { type: "button", hidden: "" }, "Yes, clear all of it");
    const group = made("div", { role: "group", "aria-label": "Your progress", class: "cg-museum-filters" });
    group.append(save, open, clear, really, file);

    const draw = () => {
      const entries = all(store);
      let right = 0;
      let begun = 0;
      for (const { key, cell, row } of rows) {
        const entry = entries.get(key);
        const state = entry?.state ?? "open";
        right += Number(state === "right");
        begun += Number(state === "tried" || state === "shown");
        cell.textContent = words(state, entry);
        row.dataset.state = state;
      }
      bar.value = right;
      count.textContent = `${right} of ${rows.length} exercises are right` + (begun ? `, ${begun} more are begun` : "");
      save.disabled = clear.disabled = entries.size === 0;
      really.hidden = true;
    };

    save.addEventListener("click", () => {
      const exercises = Object.fromEntries(all(store));
      const text = JSON.stringify({ format: FORMAT, version: VERSION, exercises }, null, 2);
      const address = URL.createObjectURL(new Blob([`${text}\n`], { type: "application/json" }));
      const link = made("a", { href: address, download: "convgrad-progress.json", hidden: "" });
      place.append(link);
      link.click();
      link.remove();
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
      status.textContent = `Exported: ${Object.keys(exercises).length} exercises, as convgrad-progress.json.`;
    });

    open.addEventListener("click", () => file.click());
    file.addEventListener("change", async () => {
      const [chosen] = file.files ?? [];
      if (!chosen) return;
      status.textContent =
        chosen.size > LARGEST ? "This file is larger than a progress file can be." : imported(await chosen.text());
      file.value = ""; // so that the same file may be chosen again
      draw();
    });

    /** @param {string} text @returns {string} what to say */
    const imported = (text) => {
      const { entries, problem } = readFile(text);
      if (!entries) return problem ?? "";
      const before = all(store);
      let changed = 0;
      try {
        for (const [key, entry] of entries) {
          if (further(before.get(key) ?? null, entry) !== entry) continue;
          keep(store, key, entry);
          changed += 1;
        }
      } catch {
        return "The browser's storage is full: not all of the file was kept.";
      }
      const kept = entries.length - changed;
      return `Imported: ${changed} exercises` + (kept ? `; of ${kept} you had come as far already.` : ".");
    };

    clear.addEventListener("click", () => {
      really.hidden = false;
      status.textContent = "Your answers and what you have reached would be gone from this browser. Export them first?";
      really.focus();
    });
    really.addEventListener("click", () => {
      for (const key of store.keys()) if (key.startsWith(QUESTION) || key.startsWith(OTHER)) store.remove(key);
      status.textContent = "Cleared.";
      open.focus();
      draw();
    });

    place.replaceChildren(count, bar, group, status);
    if (!store.lasting) {
      status.textContent =
        "This browser keeps nothing here (a private window does so). You can look at a file: import it; it is gone with the page.";
    }
    // another tab may go on
    addEventListener("storage", draw);
    addEventListener("pageshow", draw);
    draw();
  }

  const start = () => document.querySelectorAll(".cg-progress-place").forEach((place) => equip(/** @type {HTMLElement} */ (place)));
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
