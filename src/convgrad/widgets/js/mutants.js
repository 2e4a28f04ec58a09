// @ts-check
// The mistakes that BreakTheGradient plays: wrong gradients, each one idea away from the right one.
// Mirrors a part of convgrad's mutants.py, under the same names, which is the oracle:
// tests/test_js_mutants.py demands the same numbers and shapes from both.  What each one does in
// words comes from there too.

import {
  channelOf,
  geometryOf,
  imageIndex,
  paddedSize,
  ravel,
  source,
  unravel,
} from "./conv.js";
import { product } from "./limits.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Operands} Operands */
/** @typedef {import("./conv.js").Target} Target */
/** @typedef {import("./conv.js").Tensor} Tensor */
/** A wrong gradient. @typedef {(g: Geometry, a: Operands) => Tensor} Mistake */

/** The function stops with an error instead of returning something. */
export class Stops extends Error {}

/**
 * The right gradient, by sums that a mistake can get wrong: a test holds them to conv.js.
 * @param {Target} target @param {Geometry} g @param {Operands} a
 * @returns {Tensor}
 */
export function right(target, g, a) {
  if (target === "bias") return biasBy(a.grad_output, 1);
  return target === "weight" ? taps(g, a) : scattered(g, a);
}

/**
 * What a mistake makes of the gradient; null where it stops with an error.
 * @param {string} name @param {Geometry} g @param {Operands} operands
 * @returns {Tensor | null}
 */
export function wrong(name, g, operands) {
  try {
    return MUTANTS[name](g, operands);
  } catch (error) {
    if (error instanceof Error) return null; // of geometryOf, or one of ours
    throw error;
  }
}

// ---- pieces of arrays ------------------------------------------------------------------------

/**
 * An array of this shape whose cell at `index` is the array's at `from(index)`.
 * @param {Tensor} array @param {number[]} shape @param {(index: number[]) => number[]} from
 * @returns {Tensor}
 */
function pick(array, shape, from) {
  const data = Array.from({ length: product(shape) }, (_, k) =>
    Number(array.data[ravel(from(unravel(k, shape)), array.shape)]),
  );
  return { shape, data };
}

/** Turned by 180°. @param {Tensor} array */
const turned = (array) =>
  pick(array, array.shape, ([a, b, row, col]) => [
    a,
    b,
    array.shape[2] - 1 - row,
    array.shape[3] - 1 - col,
  ]);

/** Two axes exchanged. @param {Tensor} array @param {number} a @param {number} b */
function swapped(array, a, b) {
  const swap = (/** @type {number[]} */ index) =>
    index.map((k, axis) => (axis === a ? index[b] : axis === b ? index[a] : k));
  return pick(array, swap(array.shape), swap);
}

/** The first rows and columns. @param {Tensor} array @param {number} rows @param {number} cols */
const cut = (array, rows, cols) =>
  pick(array, [array.shape[0], array.shape[1], Math.max(rows, 0), Math.max(cols, 0)], (at) => at);

/** Divided by a number. @param {Tensor} array @param {number} by @returns {Tensor} */
const divided = ({ shape, data }, by) => ({ shape, data: Array.from(data, (value) => value / by) });

/** Only where it holds, else zero. @param {Tensor} array @param {(index: number[]) => boolean} holds @returns {Tensor} */
const only = ({ shape, data }, holds) => ({
  shape,
  data: Array.from(data, (value, k) => (holds(unravel(k, shape)) ? value : 0)),
});

// ---- pieces of gradients ---------------------------------------------------------------------

/** @param {Geometry} g @param {Operands} a */
const gradWeight = (g, a) => right("weight", g, a);
/** @param {Geometry} g @param {Operands} a */
const gradInput = (g, a) => right("input", g, a);
/** @param {Operands} a @param {Tensor} grad_output */
const withG = (a, grad_output) => ({ ...a, grad_output });

/**
 * Σ g·x for each tap, where the index map may be off: `g` need not be a convolution that fits.
 * @param {Geometry} g @param {Operands} a
 * @param {{KH?: number, KW?: number, channel?: typeof channelOf}} [off]
 * @returns {Tensor}
 */
function taps(g, { x, grad_output }, { KH = g.KH, KW = g.KW, channel = channelOf } = {}) {
  if (KH < 1 || KW < 1) throw new Stops("no window fits");
  const [N, O, OH, OW] = grad_output.shape;
  const shape = [O, g.CG, KH, KW];
  const data = new Float64Array(product(shape));
  const rows = reads(OH, KH, (p, i) => imageIndex(source(g, p, 0, i, 0)[0], g.H, g.padding_mode));
  const cols = reads(OW, KW, (q, j) => imageIndex(source(g, 0, q, 0, j)[1], g.W, g.padding_mode));
  for (let k = 0, o = 0; o < O; o++)
    for (let c = 0; c < g.CG; c++)
      for (let i = 0; i < KH; i++)
        for (let j = 0; j < KW; j++, k++)
          for (let n = 0; n < N; n++)
            for (let p = 0; p < OH; p++) {
              const row = rows[p * KH + i];
              if (row < 0) continue; // the number zero
              const line = ((n * g.C + channel(g, o, c)) * g.H + row) * g.W;
              const above = ((n * O + o) * OH + p) * OW;
              for (let q = 0; q < OW; q++) {
                const col = cols[q * KW + j];
                if (col >= 0) data[k] += grad_output.data[above + q] * x.data[line + col];
              }
            }
  return { shape, data };
}

/** A table of where each position's tap reads, one axis alone. @param {number} positions @param {number} size @param {(position: number, tap: number) => number} at */
const reads = (positions, size, at) =>
  Int32Array.from({ length: positions * size }, (_, k) => at(Math.floor(k / size), k % size));

/** How many taps fit when g, spread by the stride, slides in steps of the dilation. @param {Geometry} g @param {0 | 1} axis @param {number} extent @param {number} spread @param {number} step */
function fit(g, axis, extent, spread, step) {
  const span = spread * ((axis ? g.OW : g.OH) - 1) + 1;
  return Math.floor((extent - span) / step) + 1;
}

/** @param {Geometry} g @param {[number, number]} extents @param {[number, number]} spread @param {[number, number]} step @param {boolean} [all]  those beyond the kernel too */
function fits(g, extents, spread, step, all = false) {
  const [KH, KW] = /** @type {(0 | 1)[]} */ ([0, 1]).map((axis) =>
    fit(g, axis, extents[axis], spread[axis], step[axis]),
  );
  return all ? { KH, KW } : { KH: Math.min(KH, g.KH), KW: Math.min(KW, g.KW) };
}

/** Without its border. @param {Geometry} g @returns {Geometry} */
const unpadded = (g) => ({ ...g, padding: [[0, 0], [0, 0]], padding_mode: "zeros" });

/**
 * Every product w·g put where its tap reads in the padded input, border still on.
 * @param {Geometry} g @param {Operands} a
 * @param {(sums: Float64Array, at: number, product: number) => void} [put]
 * @returns {Tensor}
 */
function spread(g, { weight, grad_output }, put = (sums, at, value) => void (sums[at] += value)) {
  const [PH, PW] = paddedSize(g);
  const [[top], [left]] = g.padding;
  const shape = [g.N, g.C, PH, PW];
  const data = new Float64Array(product(shape));
  const rows = reads(g.OH, g.KH, (p, i) => source(g, p, 0, i, 0)[0] + top);
  const cols = reads(g.OW, g.KW, (q, j) => source(g, 0, q, 0, j)[1] + left);
  // taps outermost: within one of them no two products meet
  for (let i = 0; i < g.KH; i++)
    for (let j = 0; j < g.KW; j++)
      for (let n = 0; n < g.N; n++)
        for (let channel = 0; channel < g.C; channel++) {
          const c = channel % g.CG;
          const first = Math.floor(channel / g.CG) * g.OG;
          for (let p = 0; p < g.OH; p++)
            for (let q = 0; q < g.OW; q++) {
              let sum = 0; // over the kernels of the group
              for (let o = first; o < first + g.OG; o++) {
                const w = weight.data[((o * g.CG + c) * g.KH + i) * g.KW + j];
                sum += w * grad_output.data[((n * g.O + o) * g.OH + p) * g.OW + q];
              }
              const row = (n * g.C + channel) * PH + rows[p * g.KH + i];
              put(data, row * PW + cols[q * g.KW + j], sum);
            }
        }
  return { shape, data };
}

/** The border's gradient given to the cells that were copied there: rows first, then columns. @param {Geometry} g @param {Tensor} padded @returns {Tensor} */
function folded(g, padded) {
  const [N, C, PH, PW] = padded.shape;
  const [[top], [left]] = g.padding;
  const byRows = new Float64Array(N * C * g.H * PW);
  const data = new Float64Array(N * C * g.H * g.W);
  for (let slice = 0; slice < N * C; slice++) {
    for (let h = 0; h < PH; h++) {
      const row = imageIndex(h - top, g.H, g.padding_mode);
      if (row < 0) continue; // lost
      for (let v = 0; v < PW; v++)
        byRows[(slice * g.H + row) * PW + v] += padded.data[(slice * PH + h) * PW + v];
    }
    for (let v = 0; v < PW; v++) {
      const col = imageIndex(v - left, g.W, g.padding_mode);
      if (col < 0) continue;
      for (let row = slice * g.H; row < (slice + 1) * g.H; row++)
        data[row * g.W + col] += byRows[row * PW + v];
    }
  }
  return { shape: [N, C, g.H, g.W], data };
}

/** grad_input of a convolution that is not the widget's. @param {Geometry} g @param {Operands} a */
const scattered = (g, a) => folded(g, spread(g, a));

/** How many taps read each cell of the padded input, (1, 1, rows, columns). @param {Geometry} g */
function uses(g) {
  const one = { ...g, N: 1, C: 1, O: 1, CG: 1, OG: 1 };
  const ones = (/** @type {number[]} */ shape) => ({ shape, data: Array(product(shape)).fill(1) });
  return spread(one, {
    x: ones([]),
    weight: ones([1, 1, g.KH, g.KW]),
    grad_output: ones([1, 1, g.OH, g.OW]),
  });
}

/** g added up for each image, divided, then added up over the images. @param {Tensor} grad_output @param {number} over @returns {Tensor} */
function biasBy({ shape: [N, O, OH, OW], data }, over) {
  const sums = new Float64Array(O);
  for (let n = 0; n < N; n++)
    for (let o = 0; o < O; o++) {
      let sum = 0;
      for (let k = 0; k < OH * OW; k++) sum += data[(n * O + o) * OH * OW + k];
      sums[o] += sum / over;
    }
  return { shape: [O], data: sums };
}

// ---- the mistakes ----------------------------------------------------------------------------

/** @type {Record<string, Mistake>} */
export const MUTANTS = {
  // grad_weight
  wgrad_reversed: (g, a) => turned(gradWeight(g, a)),
  wgrad_g_turned: (g, a) => gradWeight(g, withG(a, turned(a.grad_output))),
  wgrad_g_transposed: (g, a) => {
    const { data } = swapped(a.grad_output, 2, 3);
    return gradWeight(g, withG(a, { shape: a.grad_output.shape, data }));
  },
  wgrad_images_mixed: (g, a) => {
    const { shape } = a.grad_output;
    return gradWeight(g, withG(a, pick(a.grad_output, shape, ([n, ...at]) => [g.N - 1 - n, ...at])));
  },
  wgrad_transposed: (g, a) => swapped(gradWeight(g, a), 2, 3),
  wgrad_no_transpose: (g, a) => swapped(gradWeight(g, a), 0, 1),
  wgrad_no_crop: (g, a) => taps(g, a, fits(g, paddedSize(g), g.stride, g.dilation, true)),
  wgrad_ignores_padding: (g, a) => taps(unpadded(g), a, fits(g, [g.H, g.W], g.stride, g.dilation)),
  swap_stride_dilation: (g, a) =>
    taps(
      { ...g, stride: g.dilation, dilation: g.stride },
      a,
      fits(g, paddedSize(g), g.dilation, g.stride),
    ),
  wgrad_ignore_dilation: (g, a) =>
    taps({ ...g, dilation: [1, 1] }, a, fits(g, paddedSize(g), g.stride, [1, 1])),
  wgrad_shifted: (g, a) => taps(unpadded(g), a),
  wgrad_zero_border: (g, a) => taps({ ...g, padding_mode: "zeros" }, a),
  wgrad_last_image: (g, a) => gradWeight(g, withG(a, only(a.grad_output, ([n]) => n === g.N - 1))),
  wgrad_batch_mean: (g, a) => divided(gradWeight(g, a), g.N),
  wgrad_position_mean: (g, a) => divided(gradWeight(g, a), g.OH * g.OW),
  group_interleaved: (g, a) =>
    taps(g, a, {
      channel: (_, o, c) => {
        const channel = channelOf(g, o, c);
        return (channel % g.CG) * g.groups + Math.floor(channel / g.CG);
      },
    }),
  depthwise_mod: (g, a) => taps(g, a, { channel: (_, o, c) => (o % g.groups) * g.CG + c }),
  // grad_input
  dgrad_no_flip: (g, a) => gradInput(g, { ...a, weight: turned(a.weight) }),
  dgrad_g_turned: (g, a) => gradInput(g, withG(a, turned(a.grad_output))),
  dgrad_no_leftover: (g, a) => cut(gradInput(g, a), g.H - g.leftover[0], g.W - g.leftover[1]),
  dgrad_shifted: (g, a) =>
    g.padding_mode === "zeros" ? cut(spread(g, a), g.H, g.W) : gradInput(g, a),
  dgrad_border_lost: (g, a) => folded({ ...g, padding_mode: "zeros" }, spread(g, a)),
  same_pad_left: (g, a) => {
    const [[top, bottom], [left, right]] = g.padding;
    return scattered(geometryOf({ ...g, padding: [[bottom, top], [right, left]] }), a);
  },
  group_transpose_flat: (g, a) =>
    gradInput(g, {
      ...a,
      weight: pick(a.weight, a.weight.shape, ([o, c, i, j]) => {
        const flat = (Math.floor(o / g.OG) * g.CG + c) * g.OG + (o % g.OG);
        return [flat % g.O, Math.floor(flat / g.O), i, j];
      }),
    }),
  ignore_dilation: (g, a) => {
    const H = g.H - (g.dilation[0] - 1) * (g.KH - 1);
    const W = g.W - (g.dilation[1] - 1) * (g.KW - 1);
    return scattered(geometryOf({ ...g, H, W, dilation: [1, 1] }), a);
  },
  buffer_prefilled: (g, a) => {
    const read = folded(g, uses(g)).data;
    const { shape, data } = gradInput(g, a);
    const stale = 5; // stands for whatever the memory held before
    return { shape, data: Array.from(data, (value, k) => (read[k % (g.H * g.W)] ? value : stale)) };
  },
  col2im_assign: (g, a) => folded(g, spread(g, a, (sums, at, value) => void (sums[at] = value))),
  avg_fold: (g, a) => {
    const count = uses(g).data;
    const { shape, data } = spread(g, a);
    const averaged = Array.from(data, (value, k) => value / Math.max(count[k % count.length], 1));
    return folded(g, { shape, data: averaged });
  },
  dgrad_last_kernel: (g, a) =>
    gradInput(g, withG(a, only(a.grad_output, ([, o]) => o % g.OG === g.OG - 1))),
  // grad_bias
  bias_axes_012: (_, { grad_output: { shape, data } }) => {
    const sums = new Float64Array(shape[3]);
    for (let k = 0; k < data.length; k++) sums[k % shape[3]] += data[k];
    return { shape: [shape[3]], data: sums };
  },
  bias_batch_mean: (g, a) => divided(right("bias", g, a), g.N),
  bias_position_mean: (g, a) => biasBy(a.grad_output, g.OH * g.OW),
};
