// @ts-check
// One convolution on several devices, as shards.py has it: who holds what, what is sent, the ring.

import { forward, geometryOf, imageIndex, indices, products, spanOf } from "./conv.js";
import { product } from "./limits.js";
import { clamp } from "./player.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Operands} Operands */
/** @typedef {{shape: number[], data: ArrayLike<number>}} Tensor */
/** From the first to before the last. @typedef {[number, number]} Run */
/**
 * What one device has, of images (axis 0) or of rows (axis 2): the outputs that it makes, the
 * inputs that it holds, and for each that its convolution reads the one of x behind it; NOTHING on
 * zero padding and where no tap falls.
 * @typedef {{device: number, axis: 0 | 2, outputs: Run, owned: Run, block: number[], geometry: Geometry}} Shard
 */
/** @typedef {{phase: "reduce" | "gather", sender: number, receiver: number, chunk: number}} Send */
/** @typedef {{sender: number, receiver: number, rows: number[]}} Message */
/** @typedef {{grad_input: Float64Array, grad_weight: Float64Array, grad_bias: Float64Array}} Part */

export const NOTHING = -1;

// ---- who gets what ---------------------------------------------------------------------------

/** As equal shares as can be, the first as large as any. @param {number} count @param {number} devices */
export const evenly = (count, devices) => {
  const pieces = Math.max(1, Math.min(count, devices));
  return indices(devices).map((k) => {
    const [start, stop] = [k, k + 1].map((end) => Math.ceil((count * Math.min(end, pieces)) / pieces));
    return stop - start;
  });
};

/** The pieces of these sizes, one after another. @param {number[]} sizes @returns {Run[]} */
export function runs(sizes) {
  let start = 0;
  return sizes.map((size) => [start, (start += size)]);
}

/** @param {Run} run */
export const within = ([start, stop]) => indices(stop - start).map((k) => start + k);

/** @param {Geometry} g @param {number[]} sizes  images of each device @returns {Shard[]} */
export const imageShards = (g, sizes) =>
  runs(sizes).map((images, device) => {
    const block = within(images);
    return { device, axis: 0, outputs: images, owned: images, block, geometry: geometryOf({ ...g, N: block.length }) };
  });

/** The image row at which the owner changes where output rows are cut before row p: in the middle of what the windows on both sides share. @param {Geometry} g @param {number} p */
export function rowCut(g, p) {
  const overlap = spanOf(g)[0] - g.stride[0];
  return clamp(g.stride[0] * p - g.padding[0][0] + Math.floor((overlap + 1) / 2), 0, g.H);
}

/** @param {Geometry} g @param {number[]} sizes  output rows of each device @returns {Shard[]} */
export function rowShards(g, sizes) {
  const outputs = runs(sizes);
  const cuts = [0, ...outputs.slice(1).map(([p]) => rowCut(g, p)), g.H];
  return outputs.map((rows, device) => {
    const read = new Set(within(rows).flatMap((p) => indices(g.KH).map((i) => g.stride[0] * p + g.dilation[0] * i)));
    const [least, most] = [Math.min(...read), Math.max(...read)];
    const block = indices(most - least + 1).map((k) =>
      read.has(least + k) ? imageIndex(least + k - g.padding[0][0], g.H, g.padding_mode) : NOTHING,
    );
    const geometry = geometryOf({ ...g, H: block.length, padding: [[0, 0], g.padding[1]] });
    return { device, axis: 2, outputs: rows, owned: [cuts[device], cuts[device + 1]], block, geometry };
  });
}

/** @param {Run} run @param {number} k */
export const holds = ([start, stop], k) => k >= start && k < stop;

/** The image rows that a device's windows read, each once. @param {Shard} shard */
export const reads = ({ block }) => [...new Set(block)].filter((h) => h !== NOTHING).sort((a, b) => a - b);

/** Those of them that another device holds. @param {Shard} shard */
export const halo = (shard) => reads(shard).filter((h) => !holds(shard.owned, h));

/** Who sends which rows of the image to whom: by receiver, then by sender. @param {Shard[]} shards @returns {Message[]} */
export const haloMessages = (shards) =>
  shards
    .flatMap((receiver) =>
      shards.map((sender) => ({
        sender: sender.device,
        receiver: receiver.device,
        rows: halo(receiver).filter((h) => holds(sender.owned, h)),
      })),
    )
    .filter(({ rows }) => rows.length);

// ---- what a device computes ------------------------------------------------------------------

/**
 * Slices of an array along an axis, number by number: the place in the array, -1 in a slice of
 * NOTHING, and the place among the slices.
 * @param {number[]} shape @param {0 | 2} axis @param {number[]} which
 * @param {(from: number, to: number) => void} visit
 */
function slices(shape, axis, which, visit) {
  const inner = product(shape.slice(axis + 1));
  let to = 0;
  for (let outer = 0; outer < product(shape.slice(0, axis)); outer++)
    for (const k of which)
      for (let rest = 0; rest < inner; rest++) visit(k === NOTHING ? -1 : (outer * shape[axis] + k) * inner + rest, to++);
}

/** @param {Tensor} tensor @param {0 | 2} axis @param {number[]} which @returns {Tensor} */
function taken({ shape, data }, axis, which) {
  /** @type {number[]} */
  const numbers = [];
  slices(shape, axis, which, (from) => numbers.push(from < 0 ? 0 : data[from]));
  return { shape: shape.map((size, k) => (k === axis ? which.length : size)), data: numbers };
}

/** What a device sees of the three operands. @param {Shard} shard @param {Operands} arrays @returns {Operands} */
const own = ({ axis, block, outputs }, { x, weight, grad_output }) => ({
  x: taken(x, axis, block),
  weight,
  grad_output: taken(grad_output, axis, within(outputs)),
});

/** The part of the output that a device makes. @param {Shard} shard @param {Operands} arrays */
export const outputOf = (shard, arrays) => forward(shard.geometry, own(shard, arrays));

/** The three gradients of one device that has everything. @param {Geometry} g @param {Operands} arrays @returns {Part} */
export function whole(g, { x, weight, grad_output }) {
  const [grad_input, grad_weight, grad_bias] = [x.data, weight.data, { length: g.O }].map(({ length }) => new Float64Array(length));
  products(g, (at, w, y) => {
    if (at < 0) return;
    grad_input[at] += weight.data[w] * grad_output.data[y];
    grad_weight[w] += x.data[at] * grad_output.data[y];
  });
  Array.from(grad_output.data).forEach((value, y) => (grad_bias[Math.floor(y / (g.OH * g.OW)) % g.O] += value));
  return { grad_input, grad_weight, grad_bias };
}

/** What a device computes in the backward pass, before anything is sent. @param {Shard} shard @param {Operands} arrays @returns {Part} */
export function partOf(shard, arrays) {
  const part = whole(shard.geometry, own(shard, arrays));
  const grad_input = new Float64Array(arrays.x.data.length);
  slices(arrays.x.shape, shard.axis, shard.block, (to, from) => {
    if (to >= 0) grad_input[to] += part.grad_input[from]; // +=: padding may have copied a row
  });
  return { ...part, grad_input };
}

// ---- the ring --------------------------------------------------------------------------------

/** What is sent in each step, at the same time. @param {number} P @returns {Send[][]} */
export function ringSteps(P) {
  /** @param {Send["phase"]} phase @param {number} first */
  const round = (phase, first) =>
    indices(P - 1).map((s) =>
      indices(P).map((r) => ({ phase, sender: r, receiver: (r + 1) % P, chunk: (r + first - s + P) % P })),
    );
  return [...round("reduce", 0), ...round("gather", 1)];
}

/**
 * What every device holds before the ring and after each of its steps: `states[s][r]`.
 * @param {ArrayLike<number>[]} arrays
 */
export function ringStates(arrays) {
  const P = arrays.length;
  const chunks = runs(evenly(arrays[0].length, P));
  let state = arrays.map((array) => Float64Array.from(array));
  const states = [state];
  for (const step of ringSteps(P)) {
    const before = state;
    state = state.map((array) => array.slice());
    for (const { phase, sender, receiver, chunk } of step) {
      for (const k of within(chunks[chunk])) {
        // all at once: each sends what it had before the step
        state[receiver][k] = before[sender][k] + (phase === "reduce" ? before[receiver][k] : 0);
      }
    }
    states.push(state);
  }
  return states;
}

/**
 * Whose parts are in a chunk of a device after some steps of the ring: from which device on, and of
 * how many.
 * @param {number} P @param {number} steps @param {number} device @param {number} chunk @returns {[number, number]}
 */
export function contributors(P, steps, device, chunk) {
  const [behind, came] = [(device - chunk + P) % P, (device - chunk - 1 + P) % P];
  if (behind < steps - (P - 1)) return [0, P]; // it came round complete
  // it was added up from device `chunk` on, which began; that one has its own alone
  return came < Math.min(steps, P - 1) ? [chunk, came + 2] : [device, 1];
}

/** How many numbers each device has sent after some steps of the ring. @param {number} size @param {number} P @param {number} [steps] */
export function numbersSent(size, P, steps = 2 * (P - 1)) {
  const chunks = evenly(size, P);
  const sent = indices(P).map(() => 0);
  for (const step of ringSteps(P).slice(0, steps)) for (const { sender, chunk } of step) sent[sender] += chunks[chunk];
  return sent;
}
