// @ts-check
// What every widget can, in one place: undo and redo, a link to what is shown, PyTorch code, the
// same as tables.
// All of it works on the model, or on what is drawn, so it fits any widget; equip.js says how one
// gets it.  The form of knobs is here too: most widgets have it, and nobody needs it at once.

import { BrokenLink, differences, fragmentOf, partsOf, stateOf } from "./address.js";
import { GeometryError, geometryOf, refit, shapes } from "./conv.js";
import { dealing, picking } from "./dealing.js";
import { attribute, drawing, h, say } from "./dom.js";
import { History } from "./history.js";
import { KnobForm, copySpec } from "./knobs.js";
import { small } from "./limits.js";
import { spotWords } from "./shards_spots.js";
import { asTables } from "./tables.js";
import * as torch from "./torch_code.js";

export { KnobForm, dealing, picking, spotWords };

/** @typedef {import("./equip.js").Abilities} Abilities */
/** @typedef {import("./equip.js").Context} Context */
/** @typedef {NonNullable<Context["page"]>} PagePart */
/** @typedef {Record<string, any>} State */

const SETTLED = 300; // milliseconds without a change, then the address follows

// ---- links -----------------------------------------------------------------------------------

/**
 * Sets the model to what the page's address says of it.
 * @param {Context["model"]} model @param {PagePart} page @param {Pick<Abilities, "kept" | "choices" | "fits">} abilities
 * @returns {string}  why a link was not followed, "" where there is nothing to say
 */
export function restore(model, { name, base }, { kept, choices, fits }) {
  try {
    const part = partsOf(location.hash)?.get(name);
    if (!part) return "";
    const state = stateOf(base, part, kept, choices);
    check(state, model.get("limits"), fits);
    for (const [trait, value] of Object.entries(state)) model.set(trait, value);
    model.save_changes();
    return "";
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return `The link could not be followed (${why}): this is shown as the page has it.`;
  }
}

/** Throws where a state is no convolution, or none that can be drawn. @param {State} state @param {any} limits @param {Abilities["fits"]} [fits] */
function check(state, limits, fits = (g) => small(g, limits, "widget")) {
  if (!state.geometry) return;
  const g = geometryOf(state.geometry);
  fits(g, limits);
  for (const [name, shape] of Object.entries({ ...shapes(g), bias: [g.O] })) {
    if (name in state && `${state[name].shape}` !== `${shape}`) {
      throw new BrokenLink(`${name} has another size in it than its convolution`);
    }
  }
}

/** The page's address with one widget's part brought up to date. @param {PagePart} page @param {Record<string, string> | null} part */
function addressWith({ name }, part) {
  let parts;
  try {
    parts = partsOf(location.hash);
  } catch {
    // of another version: ours takes its place
  }
  parts ??= new Map();
  parts.delete(name);
  if (part) parts.set(name, part);
  const { origin, pathname, search, protocol } = location;
  const page = (protocol === "file:" ? "file://" : origin) + pathname + search;
  return page + (parts.size ? fragmentOf(parts) : "");
}

/** Where a reader came for a section, that stays in the address until a widget has something to say. @param {PagePart} page @param {Record<string, string> | null} part */
function follow(page, part) {
  if (!part && !/^#cg\d/.test(location.hash)) return;
  const address = addressWith(page, part);
  if (address === location.href) return;
  try {
    history.replaceState(history.state, "", address);
  } catch {
    // an embedded page may be forbidden to; the button still makes a link
  }
}

let arrived = false;

/** Who opens a link to a widget is taken there; who comes back or reloads stays where they were. @param {PagePart} page @param {Element} root */
function goTo({ name }, root) {
  const [first] = location.hash.match(/(?<=^#cg\d+&)\w+/) ?? [];
  const [entry] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
  if (first !== name || arrived || scrollY || entry?.type !== "navigate") return;
  arrived = true;
  root.scrollIntoView();
}

// ---- knobs -----------------------------------------------------------------------------------

/**
 * The form of knobs of a widget with three operands: a wish is taken where such a convolution
 * exists and can be drawn, else explained.
 * @param {() => {geometry: import("./conv.js").Geometry, arrays: Record<string, {shape: number[], data: number[]}>, limits: import("./limits.js").Limits, drawer: string}} now  what is shown
 * @param {(changes: State) => void} take
 * @param {(action: (wish: import("./conv.js").Spec) => void) => (wish: import("./conv.js").Spec) => void} guard
 */
export function knobs(now, take, guard) {
  const form = new KnobForm(
    now().geometry,
    guard((wish) => {
      const { geometry, arrays, limits, drawer } = now();
      /** @type {Record<string, number[]>} */
      let needed;
      try {
        needed = shapes(small(geometryOf(wish), limits, drawer));
      } catch (error) {
        if (!(error instanceof GeometryError)) throw error;
        form.refuse(error.message, geometry);
        return;
      }
      const fitted = Object.entries(arrays).map(([name, array]) => [name, refit(array, needed[name])]);
      take({ geometry: copySpec(wish), ...Object.fromEntries(fitted) });
      form.show(wish);
    }),
  );
  return form;
}

// ---- the row of buttons ----------------------------------------------------------------------

const UNDO = "M9 5L4 10l5 5M4 10h10a5 5 0 0 1 0 10h-4"; // on a square of 24
const REDO = "M15 5l5 5-5 5M20 10h-10a5 5 0 0 0 0 10h4";

/** @param {string} line */
function icon(line) {
  const { svg, path } = drawing("0 0 24 24");
  path.setAttribute("d", line);
  return svg;
}

/** @param {string} label @param {() => void} onclick @param {string | Node} [sign] */
const button = (label, onclick, sign = label) =>
  h("button", { class: "cg-tool", "aria-label": label, title: label, onclick }, sign);

/**
 * Fills `place` with the tools; gives back what takes them away.
 * @param {Context} context @param {HTMLElement} place @param {Abilities} abilities
 */
export function toolbar({ model, page }, place, abilities) {
  const { kept, edited, code } = abilities;
  const root = /** @type {HTMLElement} */ (place.closest(".cg") ?? place);
  /** @type {(() => void)[]} */
  const leave = [];
  /** @param {readonly string[]} names @returns {State} */
  const pick = (names) => Object.fromEntries(names.map((name) => [name, model.get(name)]));
  /** @param {readonly string[]} names @param {() => void} then */
  const watch = (names, then) => {
    for (const name of names) {
      model.on(`change:${name}`, then);
      leave.push(() => model.off(`change:${name}`, then));
    }
  };

  const status = h("span", { class: "cg-tools-said", role: "status" });
  const room = h("div", { class: "cg-tools-text", hidden: true });
  let spoken = 0;
  /** @param {string} sentence */
  const tell = (sentence) => {
    say(status, sentence);
    clearTimeout(spoken);
    spoken = window.setTimeout(() => say(status, ""), 4000);
  };
  leave.push(() => clearTimeout(spoken));

  // undo and redo
  const edits = new History(pick(edited));
  /** @param {"undo" | "redo"} way */
  const travel = (way) => {
    const state = edits[way]();
    if (!state) return tell(`nothing to ${way}`);
    for (const [name, value] of Object.entries(state)) model.set(name, value);
    model.save_changes();
    show();
    tell(way === "undo" ? "taken back" : "done again");
  };
  const undo = button("undo", () => travel("undo"), icon(UNDO));
  const redo = button("redo", () => travel("redo"), icon(REDO));
  const show = () => {
    // not `disabled`, which would throw the focus away
    attribute(undo, "aria-disabled", `${!edits.past.length}`);
    attribute(redo, "aria-disabled", `${!edits.future.length}`);
  };
  let waiting = false;
  // several traits change in one edit: look when all have
  watch(edited, () => {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => {
      waiting = false;
      edits.see(pick(edited));
      show();
    });
  });
  const onkey = (/** @type {KeyboardEvent} */ event) => {
    const at = /** @type {HTMLElement} */ (event.target);
    const typing = at.closest("textarea, input:not([type=range], [type=checkbox], [type=radio])");
    if (!(event.ctrlKey || event.metaKey) || event.altKey || typing) return;
    const key = event.key.toLowerCase();
    if (key !== "z" && key !== "y") return;
    event.preventDefault();
    event.stopPropagation(); // a notebook would take back a cell
    travel(key === "y" || event.shiftKey ? "redo" : "undo");
  };
  root.addEventListener("keydown", onkey);
  leave.push(() => root.removeEventListener("keydown", onkey));

  // what can be carried away
  /** @param {string} text @param {string} what */
  const copy = async (text, what) => {
    try {
      await navigator.clipboard.writeText(text);
      room.hidden = true;
      tell(`${what} copied`);
    } catch {
      // no clipboard here (an address without https, a strict frame): by hand then
      const field = h("textarea", { readonly: true, rows: 6, "aria-label": what, spellcheck: "false" });
      field.value = text;
      room.replaceChildren(field);
      room.hidden = false;
      field.focus();
      field.select();
      tell("press Ctrl+C to copy this");
    }
  };
  const tools = [undo, redo];
  if (page) {
    const part = () => differences(page.base, pick(kept), kept);
    let settling = 0;
    watch(kept, () => {
      clearTimeout(settling);
      settling = window.setTimeout(() => follow(page, part()), SETTLED);
    });
    leave.push(() => clearTimeout(settling));
    const arrive = () => {
      const why = restore(model, page, abilities);
      if (why) tell(why);
    };
    goTo(page, root);
    addEventListener("hashchange", arrive); // a link pasted into this very tab
    leave.push(() => removeEventListener("hashchange", arrive));
    const link = () => {
      follow(page, part());
      copy(addressWith(page, part()), "link");
    };
    tools.push(button("copy link", link));
  }
  if (code) {
    const program = () => copy(code(model.get.bind(model), torch), "PyTorch code");
    tools.push(button("copy as PyTorch code", program, "copy as PyTorch"));
  }
  const row = h("span", { class: "cg-tool-row", role: "group", "aria-label": "tools" }, ...tools);
  show();
  place.replaceChildren(row, status, room);
  const tables = asTables(root);
  place.before(tables.el);
  leave.push(() => {
    tables.stop();
    tables.el.remove();
    place.replaceChildren();
  });
  return () => leave.splice(0).forEach((undone) => undone());
}
