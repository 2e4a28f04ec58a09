// @ts-check
// The stage of ShardSum where images are dealt out: devices below one another, the chunks of each
// beside one another, and between them the arrows of the ring.

import { at, indices } from "./conv.js";
import { plus, watch } from "./bench.js";
import { attribute, fill, h, say } from "./dom.js";
import { alone, ARROWS } from "./grid.js";
import { contributors, ringSteps } from "./shards.js";
import { imageStepWords, verdictOf, whoWords } from "./shards_words.js";
import { fitNumber, subscript } from "./words.js";

/** @typedef {import("./bench.js").Handlers} Handlers */
/** @typedef {import("./bench.js").Piece} Piece */
/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./shards_scene.js").ImageScene} ImageScene */
/** @typedef {import("./shards_words.js").Move} Move */
/** @typedef {import("./shards_words.js").Options} Options */
/** An image, a chunk of a device, a number of the bucket, a row of the image. @typedef {{kind: "image" | "chunk" | "entry" | "row", index: number[]}} Spot */
/** @typedef {{g: Geometry, arrays: import("./conv.js").Operands, options: Options, sizes: number[], moves: Move[], step: number, spot: Spot | null, inWords?: typeof import("./shards_spots.js").spotWords, pick: import("./dealing.js").Pick, edit: (array: "x" | "grad_output", index: number[], value: number) => void}} Now */

const MOST = { numbers: 48, maps: 2, images: 4 }; // on the bench: more is nobody's picture
const LINE = 6; // numbers of a chunk in a line

/** @param {string} [text]  such as "1,2" */
const numbers = (text = "") => text.split(",").map(Number);

/** @param {Pick<Handlers, "guard"> & {look: NonNullable<Handlers["look"]>}} on */
export function imagesStage({ guard, look }) {
  const title = h("div", { class: "cg-title" }, h("b", { class: "cg-ink-result" }, "grad_weight, grad_bias"), h("span", { class: "cg-words" }, "of each device, from its images, in chunks"));
  const field = h("div", { class: "cg-field-of cg-ring-of", role: "listbox", "aria-orientation": "horizontal", "aria-label": "images and chunks of each device" });
  const el = h("div", { class: "cg-panel cg-of-result cg-maps-of" }, title, field);
  /** @type {Map<string, HTMLElement>} by kind and index */
  const tiles = new Map();
  let laid = "";

  watch(
    field,
    (target, way) => {
      const tile = target.closest("[data-kind]");
      if (tile instanceof HTMLElement) look({ kind: tile.dataset.kind, index: numbers(tile.dataset.index) }, way);
    },
    guard,
  );
  field.addEventListener(
    "keydown",
    guard((event) => {
      const by = ARROWS[event.key];
      if (!by || !alone(event)) return;
      const tile = /** @type {HTMLElement} */ (event.target);
      const all = [...tiles.values()];
      const [row, col] = numbers(tile.dataset.at);
      const next = by[1] ? all[all.indexOf(tile) + by[1]] : all.find(({ dataset }) => dataset.at === `${[row + by[0], col]}`);
      next?.focus();
      event.preventDefault();
      event.stopPropagation();
    }),
  );

  /** @param {Spot["kind"]} kind @param {number[]} index @param {[number, number]} place @param {string} text */
  function tileOf(kind, index, place, text) {
    const tile = h("div", { class: `cg-tile cg-is-${kind}`, role: "option", "data-kind": kind, "data-index": index, "data-at": place, tabindex: -1 }, text);
    tiles.set(`${kind} ${index}`, tile);
    return tile;
  }

  /** Devices, chunks and the ways between them, where they are not laid out yet. @param {ImageScene} scene */
  function lay({ shards, chunks }) {
    const P = shards.length;
    const wanted = JSON.stringify(shards.map(({ owned }) => owned));
    if (laid === wanted) return;
    laid = wanted;
    tiles.clear();
    const widest = Math.max(...shards.map(({ block }) => block.length));
    const hidden = { "aria-hidden": "true" };
    field.style.setProperty("--chunks", `${P}`);
    fill(
      field,
      h("span", hidden),
      ...chunks.map((_, c) => h("span", { ...hidden, class: "cg-heads" }, `${P < 6 ? "chunk " : ""}${c}`)),
      ...shards.flatMap(({ device, block }) => [
        h(
          "div",
          { class: "cg-holder", role: "group", "aria-label": `images of device ${device}` },
          h("span", { ...hidden, class: "cg-device" }, `device ${device}`),
          ...block.map((n, k) => tileOf("image", [n], [device, k], `image ${n}`)),
        ),
        ...chunks.map((_, c) => tileOf("chunk", [device, c], [device, widest + c], "")),
      ]),
    );
  }

  /** @param {ImageScene} scene @param {Now} now @returns {{words: string, pieces: (Piece | string)[]}} */
  function draw(scene, now) {
    const { g, options, sizes, moves, step, spot } = now;
    const { chunks, own, ring, shards } = scene;
    const P = sizes.length;
    const move = moves[step];
    const sends = moves.slice(0, step + 1).filter((each) => each === "ring").length;
    const averaged = options.combine === "average" && step >= 2 * P;
    const state = move === "deal" ? null : averaged ? scene.agreed : ring[sends];
    const sending = move === "ring" ? ringSteps(P)[sends - 1] : [];
    lay(scene);
    const first = sending[0];
    /** What is on the bench. @type {Spot} */
    const shown =
      spot && spot.kind !== "entry" && (state || spot.kind === "image")
        ? spot
        : state
          ? { kind: "chunk", index: first ? [first.receiver, first.chunk] : [0, 0] }
          : { kind: "image", index: [0] };
    for (const [key, tile] of tiles) {
      const chosen = key === `${shown.kind} ${shown.index}`;
      attribute(tile, "aria-selected", `${chosen}`);
      tile.tabIndex = chosen ? 0 : -1;
      if (tile.dataset.kind !== "chunk") continue;
      const [device, c] = numbers(tile.dataset.index);
      const who = whoWords(contributors(P, sends, device, c), P);
      const [start, stop] = chunks[c];
      const value = state && stop > start ? fitNumber(state[device][start]) : "";
      say(tile, state ? `${who}\n${value}` : "");
      tile.classList.toggle("cg-complete", Boolean(state) && who === "all");
      // the arrows of the ring are drawn by the stylesheet: into the receiver, and out of the last device
      const send = sending.find(({ chunk }) => chunk === c);
      tile.dataset.way = send?.receiver !== device ? "" : send.phase === "reduce" ? "+" : "=";
      tile.classList.toggle("cg-meets", send?.receiver === device || send?.sender === device);
      attribute(tile, "aria-label", `device ${device}, chunk ${c}: ${state ? `parts and first number: ${who} ${value}` : "not computed yet"}`);
    }
    // ---- in words, and on the bench
    const told = spot && now.inWords?.(spot, g, scene, state && sends);
    const words = told ?? imageStepWords(g, options, sizes, { move, sends }, verdictOf(options, sizes, scene.equal));
    if (shown.kind === "image") return { words, pieces: maps(now, shown.index[0]) };
    const [device, c] = shown.index;
    const piece = chunkPiece(chunks[c]);
    const mine = (/** @type {string} */ name, /** @type {ArrayLike<number>[]} */ buckets) => piece(name, buckets[device]);
    const held = mine(`device ${device}`, state ?? own);
    const send = sending.find((each) => each.chunk === c && each.receiver === device);
    /** @type {(Piece | string)[]} */
    let pieces = [held];
    if (move === "part") {
      const images = shards[device].block;
      const many = images.length > MOST.images ? ["+ …"] : [];
      const divided = options.loss === "mean" ? [`÷ ${images.length}`] : [];
      if (images.length > 1) pieces = [...plus(images.slice(0, MOST.images).map((n) => piece(`image ${n}`, scene.one[n]))), ...many, ...divided, "=", held];
    } else if (send) {
      const before = ring[sends - 1];
      const [sign, then] = send.phase === "reduce" ? ["+", "="] : ["←", "="];
      pieces = [mine(`device ${device} had`, before), sign, piece(`from device ${send.sender}`, before[send.sender]), then, { ...held, name: "now" }];
    } else if (move === "average") pieces = [mine("the sum", scene.summed), `÷ ${P} =`, held];
    else if (move === "compare") pieces = [held, scene.equal ? "=" : "≠", piece("one device", scene.single)];
    return { words, pieces };
  }
  return { el, draw };
}

/** How one chunk of a bucket is drawn. @param {[number, number]} chunk */
function chunkPiece([start, stop]) {
  const shown = Math.min(stop - start, MOST.numbers);
  const cols = Math.max(1, Math.min(LINE, shown));
  const some = shown < stop - start ? `, the first ${shown}` : "";
  /** @param {string} name @param {ArrayLike<number>} bucket @returns {Piece} */
  return (name, bucket) => ({
    key: "result",
    name: name + some,
    rows: Math.max(1, Math.ceil(shown / cols)),
    cols,
    at: (row, col) => (row * cols + col < shown ? bucket[start + row * cols + col] : null),
    look: (row, col) => (row * cols + col < shown ? { kind: "entry", index: [start + row * cols + col] } : null),
  });
}

/** The first maps of an image; their numbers can be edited. @param {Now} now @param {number} n @returns {(Piece | string)[]} */
function maps({ g, arrays, edit }, n) {
  return /** @type {const} */ ([["x", "x", g.C], ["grad_output", "g", g.O]]).flatMap(([array, letter, count]) => {
    const [, , rows, cols] = arrays[array].shape;
    return [
      ...indices(Math.min(count, MOST.maps)).map((k) => ({
        key: array,
        name: subscript(letter, [n, k]),
        rows,
        cols,
        at: (/** @type {number} */ row, /** @type {number} */ col) => at(arrays[array], n, k, row, col),
        edit: (/** @type {number} */ row, /** @type {number} */ col, /** @type {number} */ value) => edit(array, [n, k, row, col], value),
      })),
      ...(count > MOST.maps ? [`… ${count}`] : []),
    ];
  });
}
