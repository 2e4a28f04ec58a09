// @ts-check
// The stage of ShardSum where rows are dealt out: a strip for each device, one below the other like
// the rows that they hold, with the halo hatched.

import { at, channelOf } from "./conv.js";
import { benchOf, plus } from "./bench.js";
import { fill, h, say } from "./dom.js";
import { NOTHING, holds } from "./shards.js";
import { rowStepWords, runWords } from "./shards_words.js";
import { subscript } from "./words.js";

/** @typedef {import("./bench.js").Piece} Piece */
/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./shards.js").Shard} Shard */
/** @typedef {import("./shards_images.js").Now} Now */
/** @typedef {import("./shards_scene.js").RowScene} RowScene */

/** @param {import("./bench.js").Handlers} on */
export function rowsStage(on) {
  const el = h("div", { class: "cg-strips" });
  /** @type {ReturnType<typeof stripOf>[]} */
  const strips = [];

  /** @param {number} device */
  function stripOf(device) {
    const title = h("div", { class: "cg-device" });
    const bench = benchOf(`device ${device}`, on, `, device ${device}`);
    return { title, bench, el: h("div", { class: "cg-strip" }, title, bench.el) };
  }

  /** @param {RowScene} scene @param {Now} now @returns {{words: string, pieces: (Piece | string)[]}} */
  function draw(scene, now) {
    const { g, moves, step, spot } = now;
    const { shards, messages } = scene;
    const lit = spot?.kind === "row" ? spot.index[0] : NOTHING;
    shards.forEach((shard, device) => {
      strips[device] ??= stripOf(device);
      say(strips[device].title, `device ${device} makes output ${runWords("row", shard.outputs)} and holds ${runWords("row", shard.owned)} of x`);
      strips[device].bench.draw(stripPieces(scene, now, shard, lit));
    });
    if (el.childElementCount !== shards.length) fill(el, ...strips.slice(0, shards.length).map((strip) => strip.el));
    const move = moves[step];
    return {
      words: (spot?.kind === "row" && now.inWords?.(spot, g, scene, null)) || rowStepWords(g, shards, messages, move, scene.equal),
      pieces: sumPieces(scene, now, lit),
    };
  }
  return { el, draw };
}

/**
 * What a device has at a step: its block of x and its output; then g and what falls on the block.
 * @param {RowScene} scene @param {Now} now @param {Shard} shard @param {number} lit
 * @returns {Piece[]}
 */
function stripPieces({ shards, messages, parts, sums, outputs: made }, { g, arrays, moves, step, edit, pick: { n, o, c: inGroup } }, shard, lit) {
  const { device, outputs, owned, block } = shard;
  const done = moves.slice(0, step + 1);
  const c = channelOf(g, o, inGroup);
  const rows = outputs[1] - outputs[0];
  const backward = done.includes("spread");
  const sent = done.includes("send") || !messages.length;
  const isHalo = (/** @type {number} */ k) => block[k] !== NOTHING && !holds(owned, block[k]);
  const beyond = (/** @type {number} */ k) => {
    const row = g.stride[0] * outputs[0] + k - g.padding[0][0];
    return row < 0 || row >= g.H;
  };
  /** @param {number} k */
  const names = (k) => {
    if (block[k] === NOTHING) return beyond(k) ? "padding" : "unread";
    const other = shards.find((each) => holds(each.owned, block[k]))?.device;
    return `${beyond(k) ? "copy of " : "row "}${block[k]}${isHalo(k) ? `, ${backward ? "to" : "from"} ${other}` : ""}`;
  };
  const ofBlock = {
    rows: block.length,
    cols: g.W,
    names,
    marks: {
      "cg-halo": isHalo,
      "cg-nothing": (/** @type {number} */ k) => block[k] === NOTHING || beyond(k),
      "cg-with": (/** @type {number} */ k) => lit !== NOTHING && block[k] === lit,
    },
    look: (/** @type {number} */ k) => (block[k] === NOTHING ? null : { kind: "row", index: [block[k]] }),
  };
  const ofOutput = { rows, cols: g.OW, names: (/** @type {number} */ p) => `row ${outputs[0] + p}` };
  /** @type {Piece} */
  const upstream = {
    ...ofOutput,
    key: "grad_output",
    name: subscript("g", [n, o]),
    at: (p, q) => at(arrays.grad_output, n, o, outputs[0] + p, q),
    edit: (p, q, value) => edit("grad_output", [n, o, outputs[0] + p, q], value),
  };
  /** @param {ArrayLike<number>} grad @param {number} row @param {number} col */
  const onInput = (grad, row, col) => grad[((n * g.C + c) * g.H + row) * g.W + col];
  if (backward) {
    /** @type {Piece} */
    const part = { ...ofBlock, key: "result", name: `part of ${subscript("grad_input", [n, c])}`, at: (k, col) => (block[k] === NOTHING ? null : onInput(parts[device].grad_input, block[k], col)) };
    /** @type {Piece} */
    const held = {
      key: "result",
      name: "its rows, added up",
      rows: owned[1] - owned[0],
      cols: g.W,
      names: (k) => `row ${owned[0] + k}`,
      at: (k, col) => onInput(sums.grad_input, owned[0] + k, col),
    };
    const complete = (done.includes("back") || moves[step] === "compare") && held.rows;
    return complete ? [part, held] : [upstream, part];
  }
  /** @type {Piece} */
  const x = {
    ...ofBlock,
    key: "x",
    name: subscript("x", [n, c]),
    at: (k, col) => (block[k] === NOTHING ? 0 : isHalo(k) && !sent ? null : at(arrays.x, n, c, block[k], col)),
    edit: (k, col, value) => block[k] !== NOTHING && edit("x", [n, c, block[k], col], value),
  };
  if (done.includes("part")) {
    const start = (o * g.CG + inGroup) * g.KH * g.KW;
    return [x, upstream, { key: "result", name: `part of ${subscript("grad_weight", [o, inGroup])}`, rows: g.KH, cols: g.KW, at: (i, j) => parts[device].grad_weight[start + i * g.KW + j] }];
  }
  if (!done.includes("forward")) return [x];
  return [x, { ...ofOutput, key: "output", name: subscript("y", [n, o]), at: (p, q) => made[device][((n * g.O + o) * rows + p) * g.OW + q] }];
}

/**
 * What is added up over the devices: parts of the weight gradient, or of one row of grad_input.
 * @param {RowScene} scene @param {Now} now @param {number} lit
 * @returns {(Piece | string)[]}
 */
function sumPieces({ shards, messages, parts, single, sums }, { g, moves, step, pick: { n, o, c } }, lit) {
  /** @param {string} name @param {ArrayLike<number>} data @param {number} start @param {number} rows @param {number} cols @returns {Piece} */
  const piece = (name, data, start, rows, cols) => ({ key: "result", name, rows, cols, at: (row, col) => data[start + row * cols + col] });
  const move = moves[step];
  if (move === "part" || move === "compare") {
    const taps = (/** @type {string} */ name, /** @type {ArrayLike<number>} */ data) => piece(name, data, (o * g.CG + c) * g.KH * g.KW, g.KH, g.KW);
    const terms = plus(parts.map((part, r) => taps(`device ${r}`, part.grad_weight)));
    return move === "part" ? terms : [...terms, "=", taps(subscript("grad_weight", [o, c]), sums.grad_weight), "=", taps("one device", single.grad_weight)];
  }
  if (move !== "back" && move !== "spread") return [];
  const row = lit === NOTHING ? (messages[0]?.rows[0] ?? shards[0].owned[0]) : lit;
  const start = ((n * g.C + channelOf(g, o, c)) * g.H + row) * g.W;
  const givers = shards.filter(({ block }) => block.includes(row));
  const terms = givers.map(({ device, owned }) => piece(`device ${device}${holds(owned, row) ? "" : ", halo"}`, parts[device].grad_input, start, 1, g.W));
  return [...plus(terms), "=", piece(`grad_input, row ${row}`, sums.grad_input, start, 1, g.W)];
}
