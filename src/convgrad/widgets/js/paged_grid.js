// @ts-check
// A matrix or a map with names on its rows and columns, whose cells can be looked at.  Of a large
// one a part is drawn, which moves with the arrow keys at its edge and with a slider.

import { h, say } from "./dom.js";
import { lookedGrid } from "./looked_grid.js";

/** @typedef {import("./grid.js").Border} Border */
/** @typedef {import("./looked_grid.js").Way} Way */
/** @typedef {import("./unfold_steps.js").Span} Span */
/**
 * @typedef {object} SheetHandlers
 * @property {(row: number, col: number, value: number) => void} edit
 * @property {(sentence: string) => void} refuse
 * @property {(place: [number, number] | null, way: Way) => void} look  null when nobody looks any more
 * @property {(axis: number, start: number) => void} turn  another part is wanted
 */

const LINES = ["rows", "columns"];

/** An axis that is drawn from end to end. @param {number} size @returns {Span} */
export const whole = (size) => ({ start: 0, shown: size, size });

/** @typedef {ReturnType<typeof sheetOf>} Sheet */

/** @param {SheetHandlers} on */
export function sheetOf({ edit, refuse, look, turn }) {
  let spans = [whole(0), whole(0)];
  /** @param {number} row @param {number} col @returns {[number, number]} */
  const absolute = (row, col) => [row + spans[0].start, col + spans[1].start];
  /** @param {number} axis @param {number} by */
  const beyond = (axis, by) => {
    const to = spans[axis].start + by;
    const there = to >= 0 && to + spans[axis].shown <= spans[axis].size;
    if (there) turn(axis, to);
    return there;
  };
  const looked = lookedGrid({ edit, refuse, look, beyond, absolute });
  const { grid } = looked;
  // names are for the eyes: what is looked at is said in full in the line of words
  const heads = ["rows", "cols"].map((way) =>
    h("div", { class: `cg-heads cg-heads-${way}`, "aria-hidden": "true" }),
  );
  const sliders = [0, 1].map((axis) => {
    const slider = h("input", { type: "range", class: "cg-scrub", oninput: () => turn(axis, slider.valueAsNumber) });
    return slider;
  });
  const drawn = sliders.map((slider) => h("label", { class: "cg-note" }, document.createTextNode(""), slider));
  const named = h("div", { class: "cg-named" }, h("span"), heads[1], heads[0]);
  grid.el.replaceWith(named);
  named.append(grid.el);
  named.after(...drawn);

  /**
   * @param {Span} rows @param {Span} cols @param {Border} border
   * @param {(row: number, col: number) => number | null} at
   */
  function write(rows, cols, border, at) {
    spans = [rows, cols];
    grid.shape(rows.shown, cols.shown, border);
    grid.write((row, col) => at(...absolute(row, col)));
    spans.forEach(({ start, shown, size }, axis) => {
      const slider = sliders[axis];
      drawn[axis].hidden = shown === size;
      slider.max = `${size - shown}`;
      slider.value = `${start}`;
      const text = /** @type {Text} */ (drawn[axis].firstChild);
      text.data = `${LINES[axis]} ${start} to ${start + shown - 1} of ${size}`;
    });
  }

  /**
   * What stands out and what is in its company, by the answers 2 and 1; names in use are bold.
   * @param {(row: number, col: number) => number} ask @param {readonly number[] | null} spot
   * @param {((k: number) => string)[]} [names]  of rows, of columns
   */
  function paint(ask, spot, names) {
    const here = spot && spot.map((k, axis) => k - spans[axis].start);
    const partners = looked.paint(ask, here);
    names?.forEach((name, axis) => {
      const head = heads[axis];
      const { start, shown } = spans[axis];
      while (head.children.length > shown) head.lastChild?.remove();
      while (head.children.length < shown) head.append(h("span"));
      const used = new Set([...partners, ...(here ? [here] : [])].map((place) => place[axis]));
      [...head.children].forEach((each, k) => {
        say(each, name(start + k));
        each.classList.toggle("cg-in-use", used.has(k));
      });
    });
  }
  return { ...looked, absolute, write, paint };
}
