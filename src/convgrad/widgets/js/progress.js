// @ts-check
// How far the reader has come, kept in the browser where it allows that.

const PREFIX = "convgrad:predict:";
const KEPT = ["entry", "answer", "correct", "attempts", "hints_shown", "revealed"];

/** @typedef {{get: (name: string) => any, set: (values: Record<string, unknown>) => void}} Model */

/** Private windows and strict settings throw at the mere name. @returns {Storage | null} */
function drawer() {
  try {
    return globalThis.localStorage ?? null;
  } catch {
    return null;
  }
}

/** @param {Model} model */
export function store(model) {
  const state = Object.fromEntries(KEPT.map((name) => [name, model.get(name)]));
  try {
    drawer()?.setItem(PREFIX + model.get("key"), JSON.stringify(state));
  } catch {
    // full or forbidden: the page works without
  }
}

/** Bring back what was stored, unless the model already holds an answer. @param {Model} model */
export function restore(model) {
  if (model.get("attempts") > 0) return;
  try {
    const kept = JSON.parse(drawer()?.getItem(PREFIX + model.get("key")) ?? "null");
    if (isProgress(kept, model.get("entry").length)) model.set(kept);
  } catch {
    // not ours, or not allowed
  }
}

/** @param {any} kept @param {number} fields */
const isProgress = (kept, fields) =>
  kept !== null &&
  KEPT.every((name) => name in kept) &&
  Object.keys(kept).length === KEPT.length &&
  Array.isArray(kept.entry) &&
  kept.entry.length === fields;
