// @ts-check
// GroupBlocks in the page: maps on their way through one grouped convolution, and the blocks of the
// weight gradient that exist.

import { at, geometryOf, groupOf, indices } from "./conv.js";
import { benchOf } from "./bench.js";
import { blockWords, codeOf, isRight, mapName, meetWords, misplaced, moveWords, zeroWords } from "./blocks_words.js";
import { attribute, fill, h, say, tinted } from "./dom.js";
import { EDITED, KEPT, OperandsView } from "./operands_view.js";
import { ARROWS } from "./grid.js";
import { blockOf, groupAt, meet, movesOf, share, standsAt, tablesOf } from "./grouped.js";
import { inked } from "./inked.js";
import { widget } from "./view.js";
import { formatNumber, groupLetter, subscript } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./operands_view.js").State} State */
/** @typedef {import("./grouped.js").Options} Options */
/** @typedef {import("./grouped.js").Place} Place */
/** @typedef {import("./grouped.js").Table} Table */
/** Of which array a map is; zeros are the blocks that do not exist. @typedef {"x" | "g" | "result" | "zero"} Kind */
/** @typedef {{kind: Kind, index: number[]}} Spot */
/** @typedef {import("./bench.js").Piece} Piece */

const KEYS = { x: "x", g: "grad_output", result: "result" };

class BlocksView extends OperandsView {
  /** @type {Partial<Record<"hover" | "focus", Spot | null>>} */
  #looks = {};
  /** @type {Map<string, HTMLElement>} */
  #tiles = new Map();
  /** @type {Record<string, {el: HTMLElement, title: HTMLElement, field: HTMLElement}>} */
  #tables = {};
  #bench = benchOf("numbers of the map that is looked at", { refuse: (sentence) => this.complain(sentence), guard: (edit) => this.guard(edit) });
  #code = h("pre", { class: "cg-code", tabindex: 0, role: "group", "aria-label": "the same in PyTorch" });
  #transpose = this.#tick("transpose", "with the transpose");
  #each = this.#tick("per_image", "leave the sum out: a gradient for each image");
  #width = 0;

  /** @param {import("./view.js").Model} model @param {HTMLElement} el */
  constructor(model, el) {
    super(model, "block view", ["transpose", "per_image"]);
    this.#width = el.clientWidth || 700;
    for (const [kind, key] of Object.entries(KEYS)) this.#tables[kind] = this.#table(/** @type {Kind} */ (kind), key);
    this.show(el, {
      name: "Blocks of groups",
      kind: "cg-groups",
      unit: "steps",
      above: [this.#transpose.label, this.#each.label],
      stage: ["maps", h("div", { class: "cg-tables" }, ...Object.values(this.#tables).map((each) => each.el))],
      below: [this.#bench.el, this.#code],
      keys: [
        ["arrows among maps", "from map to map"],
        ["Enter", "on a map: to its numbers; there: edit one of x or g"],
        ["Escape", "leave a number as it was; back to the map"],
      ],
    });
    this.#bench.el.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return; // in a field it has been heard already
      const { kind, index } = this.#looks.focus ?? {};
      this.#tiles.get(`${kind} ${index}`)?.focus();
    });
    const watch = new ResizeObserver(
      this.guard(() => {
        if (!el.clientWidth || el.clientWidth === this.#width) return;
        this.#width = el.clientWidth;
        this.draw();
      }),
    );
    watch.observe(el);
    this.undo.push(() => watch.disconnect());
  }

  /** @param {string} trait @param {string} words */
  #tick(trait, words) {
    const box = h("input", { type: "checkbox", onchange: () => this.guard(() => this.restart({ [trait]: box.checked }))() });
    return { box, label: h("label", { class: "cg-check" }, box, h("span", {}, words)) };
  }

  /** @param {Kind} kind @param {string} key */
  #table(kind, key) {
    const title = h("div", { class: "cg-title" });
    const field = h("div", { class: "cg-field-of", role: "listbox", "aria-orientation": "horizontal" });
    const el = h("div", { class: `cg-panel cg-maps-of cg-of-${key}` }, title, field);
    /** @param {Event} event @returns {Spot | null} */
    const spotOf = ({ target }) => {
      const tile = /** @type {Element} */ (target).closest("[data-kind]");
      return tile instanceof HTMLElement ? { kind: /** @type {Kind} */ (tile.dataset.kind), index: (tile.dataset.index ?? "").split(",").map(Number) } : null;
    };
    field.addEventListener("pointerover", this.guard((event) => event.pointerType !== "touch" && this.#look(spotOf(event), "hover")));
    field.addEventListener("focusin", this.guard((event) => this.#look(spotOf(event), "focus")));
    field.addEventListener("keydown", this.guard((event) => this.#walk(event, kind)));
    return { el, title, field };
  }

  /** @param {State} state */
  count({ geometry, options }) {
    return movesOf(geometry, /** @type {Options} */ (options)).length - 1;
  }

  /** The story begins with the arrays as they come. */
  first() {
    return 0;
  }

  forget() {
    this.#looks = {};
  }

  // ---- looking -------------------------------------------------------------------------------

  /** What stays looked at until the next step, as the numbers below can be edited. @param {Spot | null} spot @param {"hover" | "focus"} way */
  #look(spot, way) {
    if (!spot || this.head.playing || JSON.stringify(this.#looks[way] ?? null) === JSON.stringify(spot)) return;
    this.#looks = way === "focus" ? { focus: spot } : { ...this.#looks, hover: spot };
    this.draw();
    if (way === "focus") this.speak();
  }

  /** From map to map. @param {KeyboardEvent} event @param {Kind} kind */
  #walk(event, kind) {
    const by = ARROWS[event.key];
    const tile = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (by) {
      const [row, col] = (tile.dataset.at ?? "").split(",").map(Number);
      const next = this.#tables[kind].field.querySelector(`[data-at="${row + by[0]},${col + by[1]}"]`);
      if (next instanceof HTMLElement) next.focus();
    } else if (event.key === "Enter") this.#bench.enter();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // ---- drawing -------------------------------------------------------------------------------

  paint() {
    const { geometry: g, arrays } = this.state;
    const options = /** @type {Options} */ (this.state.options);
    const moves = movesOf(g, options);
    const { step } = this.head;
    const now = moves[step];
    const done = moves.slice(0, step + 1).map(({ move }) => move);
    const tables = tablesOf(g, options, done, now.m);
    const summed = done.includes("sum");
    const look = this.head.playing ? null : (this.#looks.hover ?? this.#looks.focus);
    const spot = look ?? this.#example(now, tables);
    const meets = this.#meeting(spot, Boolean(look), now, summed);
    this.#transpose.box.checked = options.transpose;
    this.#each.box.checked = options.per_image;
    const held = document.activeElement; // before a table is hidden
    const seen = new Set();
    for (const [kind, table] of Object.entries(tables)) this.#arrange(/** @type {Kind} */ (kind), table, g, options, summed, done, spot, seen, meets);
    for (const [key, tile] of this.#tiles) {
      // a map that goes away, or under another, hands the focus to what plays on
      if (tile === held && (!seen.has(key) || tile.matches(".cg-below"))) this.ui.stage.focus();
      if (seen.has(key)) continue;
      tile.remove();
      this.#tiles.delete(key);
    }
    const says = look ? this.#spelled(g, options, spot, summed) : moveWords(g, options, now, this.#mistake(g, options, done));
    fill(this.ui.spelled, ...tinted(inked(says)));
    this.#bench.draw(this.#pieces(g, arrays, options, spot, summed, done));
    fill(this.#code, ...codeOf(g, options).map(({ text, moves: of }) => h("span", { class: of.includes(now.move) ? "cg-now" : undefined }, text, "\n")));
  }

  /** What a step shows in numbers while nobody looks at anything. @param {{move: string, m: number}} now @param {ReturnType<typeof tablesOf>} tables @returns {Spot} */
  #example({ move, m }, { x, g: upstream, result }) {
    const { geometry: g } = this.state;
    if (move === "meet") return { kind: "result", index: [0, Math.floor(m / g.groups), (m % g.groups) * g.OG] };
    if (result.maps.length) return { kind: "result", index: result.maps[0].index };
    if (move === "list") return { kind: "g", index: upstream.maps[0].index };
    // without the transpose: the first one that is wrong
    const wrong = move === "deal" && x.maps.find(({ at: [c, k] }) => !isRight(g, c, k));
    return { kind: "x", index: (wrong || x.maps[0]).index };
  }

  /** The maps that meet in a spot, or in a whole group of the convolution, by their keys. @param {Spot} spot @param {boolean} isLook @param {{move: string, m: number}} now @param {boolean} summed */
  #meeting({ kind, index }, isLook, now, summed) {
    const { geometry: g, options } = this.state;
    if (!isLook && now.move !== "meet") return new Set();
    if (!isLook) {
      const [n, k] = [Math.floor(now.m / g.groups), now.m % g.groups];
      return new Set([
        ...indices(g.CG).map((c) => `x ${standsAt(g, options.transpose, c, now.m)}`),
        ...indices(g.OG).map((o) => `g ${[n, k * g.OG + o]}`),
      ]);
    }
    if (kind !== "result") return new Set();
    const [c, n, o] = index;
    const images = summed ? indices(g.N) : [n];
    return new Set(images.flatMap((each) => [`x ${standsAt(g, options.transpose, c, groupAt(g, each, o))}`, `g ${[each, o]}`]));
  }

  /**
   * All maps of one array, each moved to its place.
   * @param {Kind} kind @param {Table} table @param {Geometry} g @param {Options} options
   * @param {boolean} summed @param {string[]} done @param {Spot} spot
   * @param {Set<string>} seen  written to @param {Set<string>} meets
   */
  #arrange(kind, table, g, options, summed, done, spot, seen, meets) {
    const { title, field, el } = this.#tables[kind];
    const name = kind === "result" ? (summed || done.includes("weight") ? gradient(options) : "t") : kind;
    el.hidden = !table.maps.length;
    fill(
      title,
      h("b", { class: `cg-ink-${KEYS[/** @type {"x"} */ (kind)]}` }, name),
      ` [${table.letters}] = [${table.shape.join(", ")}]`,
      h("span", { class: "cg-words" }, `${table.rows && `down: ${table.rows}; `}across: ${table.cols}`),
    );
    attribute(field, "aria-label", `maps of ${name}, shape ${table.shape.join(" by ")}`);
    const side = this.#width < 600 ? 30 : 36;
    const room = Math.floor(this.#width / (side + 3));
    const perLine = table.width <= room ? table.width : Math.max(1, Math.floor(room / table.lap)) * table.lap;
    const many = table.lap < table.width;
    /** @param {Place} place */
    const spotAt = ([row, col]) => {
      const line = Math.floor(col / perLine);
      const left = (col % perLine) * (side + 2) + (many ? 6 * Math.floor((col % perLine) / table.lap) : 0);
      return [left, (line * table.height + row) * (side + 2) + 8 * line];
    };
    const entries = table.maps.map((each) => ({ ...each, kind }));
    if (kind === "result" && done.includes("dense")) {
      for (const o of indices(g.O)) {
        for (const c of indices(g.C)) {
          if (Math.floor(c / g.CG) !== groupOf(g, o)) entries.push({ kind: "zero", index: [o, c], at: [o, c] });
        }
      }
    }
    const places = indices(table.width).map((col) => spotAt([table.height - 1, col]));
    const [wide, tall] = [0, 1].map((axis) => side + Math.max(...places.map((place) => place[axis])));
    const free = new Set();
    for (const { kind: of, index, at: place } of entries) {
      const key = `${of} ${index}`;
      seen.add(key);
      const tile = this.#tile(key, of, index, field);
      const [left, top] = spotAt(place);
      tile.style.transform = `translate(${left}px, ${top}px)`;
      tile.style.width = tile.style.height = `${side}px`;
      // images that were added up lie on each other: one of them is there for all
      const below = free.has(`${place}`);
      free.add(`${place}`);
      tile.classList.toggle("cg-below", below);
      tile.dataset.at = below ? "" : `${place}`;
      attribute(tile, "aria-hidden", `${below}`);
      const group = of === "x" ? Math.floor(index[1] / g.CG) : of === "zero" ? -1 : groupOf(g, index[index.length - 1]);
      const letter = group < 0 || g.groups < 2 ? "" : groupLetter(group);
      tile.dataset.group = letter;
      const shown = of === "result" && summed ? [index[2], index[0]] : of === "result" ? [index[1], index[2]] : index;
      const wrong = !options.transpose && this.#isWrong(g, of, index, place, done, summed);
      tile.classList.toggle("cg-wrong", wrong);
      const text = of === "zero" ? "0" : `${wrong ? "≠ " : ""}${letter}\n${shown}`;
      say(tile, text);
      tile.classList.toggle("cg-meets", meets.has(key));
      const chosen = spot.kind === of && `${spot.index}` === `${index}`;
      attribute(tile, "aria-selected", `${chosen}`);
      const about = of === "zero" ? `no weight at ${shown}` : `map of ${name}`;
      attribute(tile, "aria-label", `${text.replace("\n", " ").trim()}, ${about}${wrong ? ", in the wrong place" : ""}`);
      tile.tabIndex = -1;
    }
    const stop = [...field.children].find((tile) => tile.matches("[aria-selected=true]:not(.cg-below)")) ?? field.querySelector("[data-at='0,0']");
    if (stop instanceof HTMLElement) stop.tabIndex = 0;
    field.style.width = `${wide}px`;
    field.style.height = `${tall}px`;
  }

  /** @param {string} key @param {Kind} kind @param {number[]} index @param {HTMLElement} field */
  #tile(key, kind, index, field) {
    let tile = this.#tiles.get(key);
    if (!tile) {
      tile = h("div", { class: `cg-tile cg-is-${kind}`, role: "option", "data-kind": kind, "data-index": index, tabindex: -1 });
      this.#tiles.set(key, tile);
      field.append(tile);
    }
    return tile;
  }

  /** @param {Geometry} g @param {Kind} kind @param {number[]} index @param {Place} place @param {string[]} done @param {boolean} summed */
  #isWrong(g, kind, index, [row, col], done, summed) {
    if (kind === "x") return done.includes("deal") && !isRight(g, row, col);
    if (kind !== "result") return false;
    const [c, n, o] = index;
    const images = summed ? indices(g.N) : [n];
    return images.some((each) => !isRight(g, c, groupAt(g, each, o)));
  }

  /** How far the gradient is off, once it is there. @param {Geometry} g @param {Options} options @param {string[]} done */
  #mistake(g, { transpose, per_image }, done) {
    if (transpose || !done.includes("weight") || !misplaced(g)) return "";
    const { arrays } = this.state;
    const all = indices(g.O).flatMap((o) =>
      indices(g.CG).flatMap((c) =>
        per_image
          ? indices(g.N).map((n) => ({ o, c, n, pair: [false, true].map((right) => share(g, arrays, right, c, n, o)) }))
          : [{ o, c, n: 0, pair: [false, true].map((right) => blockOf(g, arrays, right, c, o)) }],
      ),
    );
    const off = all.flatMap(({ o, c, n, pair: [got, want] }) =>
      got.flatMap((value, k) => (value === want[k] ? [] : [{ index: [...(per_image ? [n] : []), o, c, Math.floor(k / g.KW), k % g.KW], value, want: want[k] }])),
    );
    const cells = all.length * g.KH * g.KW;
    if (!off.length) return `. By chance all ${cells} numbers are right`;
    const [{ index, value, want }] = off;
    return `. Wrong in ${off.length} of ${cells} numbers: {result ${subscript(gradient({ transpose, per_image }), index)}} is ${formatNumber(value)} and should be ${formatNumber(want)}`;
  }

  /** @param {Geometry} g @param {Options} options @param {Spot} spot @param {boolean} summed */
  #spelled(g, { transpose }, { kind, index }, summed) {
    if (kind === "zero") return zeroWords(g, index[0], index[1]);
    if (kind === "result") return summed ? blockWords(g, index[0], index[2]) : meetWords(g, transpose, index);
    return mapName(g, kind, index);
  }

  // ---- the numbers of one map ----------------------------------------------------------------

  /**
   * The grids of the bench, with the signs between them.
   * @param {Geometry} g @param {import("./operands_view.js").State["arrays"]} arrays @param {Options} options
   * @param {Spot} spot @param {boolean} summed @param {string[]} done
   * @returns {(Piece | string)[]}
   */
  #pieces(g, arrays, { transpose }, { kind, index }, summed, done) {
    /** @param {"x" | "grad_output"} array @param {number[]} slice @returns {Piece} */
    const map = (array, slice) => ({
      key: array,
      name: subscript(array === "x" ? "x" : "g", slice),
      rows: arrays[array].shape[2],
      cols: arrays[array].shape[3],
      at: (row, col) => at(arrays[array], ...slice, row, col),
      edit: (row, col, value) => this.editNumber(array, [...slice, row, col], value),
    });
    /** @param {string} name @param {ArrayLike<number>} data @param {number} [cols] @returns {Piece} */
    const taps = (name, data, cols = g.KW) => ({ key: "result", name, rows: data.length / cols, cols, at: (row, col) => data[row * cols + col] });
    if (kind === "x") return [map("x", index)];
    if (kind === "g") return [map("grad_output", index)];
    if (kind === "zero") {
      const [o, channel] = index;
      const sums = indices(g.N).map((n) => meet(g, arrays, [n, channel], [n, o]));
      const data = indices(g.KH * g.KW).map((k) => sums.reduce((all, each) => all + each.data[Math.floor(k / g.KW) * each.cols + (k % g.KW)], 0));
      return [taps("without groups", data)];
    }
    const [c, n, o] = index;
    const block = subscript("grad_weight", [o, c]);
    if (summed) {
      const shares = indices(g.N).flatMap((each) => [each ? "+" : "", taps(`image ${each}`, share(g, arrays, transpose, c, each, o))]);
      const sum = taps(block, blockOf(g, arrays, transpose, c, o));
      const right = transpose ? [] : [taps("should be", blockOf(g, arrays, true, c, o))];
      return [...(g.N > 1 ? [...shares, "="] : []), sum, ...right];
    }
    const from = standsAt(g, transpose, c, groupAt(g, n, o));
    const cropped = done.includes("crop");
    const { cols, data } = meet(g, arrays, from, [n, o]);
    const made = cropped ? taps(block, share(g, arrays, transpose, c, n, o)) : taps(`share of ${block}`, data, cols);
    return [map("x", from), "⋆", map("grad_output", [n, o]), "=", made];
  }
}

/** What comes out at the end, as the code calls it. @param {Options} options */
const gradient = ({ per_image }) => (per_image ? "grad_weights" : "grad_weight");

/** @type {import("./equip.js").Abilities} */
const abilities = {
  kept: [...KEPT, "transpose", "per_image"],
  edited: EDITED,
  code: (get, torch) => {
    const options = { transpose: get("transpose"), per_image: get("per_image") };
    const lines = codeOf(geometryOf(get("geometry")), options).map(({ text }) => text);
    return torch.script({ x: get("x"), g: get("grad_output") }, [...lines, `print(${gradient(options)})`]);
  },
};

export default widget("block view", (model, el) => new BlocksView(model, el), abilities);
