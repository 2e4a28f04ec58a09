// @ts-check
// The convolution of the book in JavaScript: sizes, the index map, the contributions and their
// sums, and nothing else.  Mirrors convgrad's geometry.py, ledger.py and loops.py, which are the
// oracle: tests/test_js_agrees.py demands the same numbers, order and errors from both.
//
//   y[n,o,p,q] = b[o] + Σ_{c,i,j} w[o,c,i,j] · x[n,c,h,v]      h = stride·p + dilation·i − padding

/** @typedef {[number, number]} Pair */
/** @typedef {"weight" | "input" | "bias"} Target */
/** @typedef {"tap" | "position" | "kernel"} Order */
/** An array as flat data in row-major order. @typedef {{shape: number[], data: ArrayLike<number>}} Tensor */
/**
 * What `ConvGeometry.as_dict()` writes.
 * @typedef {object} Spec
 * @property {number} N
 * @property {number} C
 * @property {number} H
 * @property {number} W
 * @property {number} O
 * @property {number} KH
 * @property {number} KW
 * @property {Pair} stride
 * @property {[Pair, Pair]} padding  ((top, bottom), (left, right))
 * @property {Pair} dilation
 * @property {number} groups
 * @property {string} padding_mode
 */
/**
 * A checked spec with the sizes that follow from it.
 * @typedef {Spec & {CG: number, OG: number, OH: number, OW: number, leftover: Pair}} Geometry
 */
/**
 * One product of one (n, o, p, q, c, i, j); `c` counts within the group.  `cell` is the image cell
 * that is really read, null on zero padding; `target` the gradient cell that receives the
 * product, null when it is lost on padding.  For the bias c, i, j, h, v and cell are null.
 * @typedef {object} Contribution
 * @property {number} n
 * @property {number} o
 * @property {number | null} c
 * @property {number} p
 * @property {number} q
 * @property {number | null} i
 * @property {number | null} j
 * @property {number | null} h
 * @property {number | null} v
 * @property {Pair | null} cell
 * @property {number[] | null} target
 */

export const PADDING_MODES = ["zeros", "reflect", "replicate", "circular"];

/** The numbers describe no convolution; the message says what came, what was needed, the mend. */
export class GeometryError extends Error {}

// ---- geometry --------------------------------------------------------------------------------

const SIZES = /** @type {const} */ ([
  ["N", "batch size"],
  ["C", "input channels"],
  ["H", "input height"],
  ["W", "input width"],
  ["O", "output channels"],
  ["KH", "kernel height"],
  ["KW", "kernel width"],
]);

/**
 * The geometry of a spec, or a GeometryError that says why there is none.  (Sizes that no memory
 * holds are refused in Python; a picture of cells never gets there.)
 * @param {Spec} spec
 * @returns {Geometry}
 */
export function geometryOf(spec) {
  for (const [name, meaning] of SIZES)
    whole(`${meaning} ${name}`, spec[name], name === "N" ? 0 : 1);
  for (const step of spec.stride) whole("stride", step, 1);
  for (const gap of spec.dilation) whole("dilation", gap, 1);
  whole("groups", spec.groups, 1);
  for (const [letter, meaning] of /** @type {const} */ ([
    ["C", "input"],
    ["O", "output"],
  ])) {
    if (spec[letter] % spec.groups) {
      const divisors = commonDivisors(spec.C, spec.O).join(", ");
      throw new GeometryError(
        `${spec[letter]} ${meaning} channels do not divide into ${spec.groups} groups: ` +
          `use groups out of [${divisors}], which divide C and O, or change ${letter}`,
      );
    }
  }
  if (!PADDING_MODES.includes(spec.padding_mode)) {
    const modes = PADDING_MODES.map((mode) => `'${mode}'`).join(", ");
    throw new GeometryError(`padding_mode is '${spec.padding_mode}': use one of ${modes}`);
  }
  spec.padding.forEach((pair, axis) => {
    for (const cells of pair) whole(`padding of the ${axis ? "width" : "height"}`, cells, 0);
  });
  checkBorder(spec);
  checkSpan(spec, spanOf(spec), paddedSize(spec));
  return sized(spec);
}

/** A spec that has been checked, with the sizes that follow from it. @param {Spec} spec @returns {Geometry} */
export function sized(spec) {
  const [span, padded] = [spanOf(spec), paddedSize(spec)];
  /** @type {(axis: 0 | 1) => number} */
  const room = (axis) => padded[axis] - span[axis];
  return {
    ...spec,
    CG: spec.C / spec.groups,
    OG: spec.O / spec.groups,
    OH: Math.floor(room(0) / spec.stride[0]) + 1,
    OW: Math.floor(room(1) / spec.stride[1]) + 1,
    leftover: [room(0) % spec.stride[0], room(1) % spec.stride[1]],
  };
}

/** @param {string} name @param {number} value @param {number} least */
function whole(name, value, least) {
  if (!Number.isInteger(value)) {
    throw new GeometryError(`${name} is ${value}: needed is a whole number of at least ${least}`);
  }
  if (value < least) {
    const crop = least === 0 && name.startsWith("padding");
    const hint = crop ? "; to crop instead, slice x, for example x[..., 1:-1, 1:-1]" : "";
    throw new GeometryError(`${name} is ${value}: needed is at least ${least}${hint}`);
  }
}

/** @param {number} a @param {number} b */
function commonDivisors(a, b) {
  return indices(Math.min(a, b) + 1).filter((d) => a % d === 0 && b % d === 0); // x % 0 is no 0
}

/** The widest border of each axis: reflection needs cells to reflect. @param {Spec} spec */
function widestBorder({ padding_mode, H, W }) {
  const spare = { reflect: 1, circular: 0 }[padding_mode] ?? -Infinity;
  return [H - spare, W - spare];
}

/** @param {Spec} spec */
function checkBorder(spec) {
  const widest = widestBorder(spec);
  spec.padding.forEach((pair, axis) => {
    const border = Math.max(...pair);
    if (border <= widest[axis]) return;
    throw new GeometryError(
      `padding ${border} with padding_mode '${spec.padding_mode}' and ` +
        `${axis ? "W" : "H"} = ${axis ? spec.W : spec.H}: at most ${widest[axis]} cells can be ` +
        "copied; pad less or use padding_mode 'replicate' or 'zeros'",
    );
  });
}

/** @param {Spec} spec @param {Pair} span @param {Pair} padded */
function checkSpan(spec, span, padded) {
  const missing = Math.max(span[0] - padded[0], span[1] - padded[1]);
  if (missing <= 0) return;
  const dilated = spec.dilation.some((d) => d !== 1)
    ? ` with dilation ${short(spec.dilation)}`
    : "";
  const more = Math.ceil(missing / 2);
  const widest = widestBorder(spec);
  const copies = spec.padding.every((pair, axis) => Math.max(...pair) + more <= widest[axis]);
  const mode = copies ? "" : " with padding_mode 'zeros'"; // this mode has no cells left to copy
  const other = spec.KH <= padded[0] && spec.KW <= padded[1] ? "dilation 1" : "a smaller kernel";
  throw new GeometryError(
    `kernel ${spec.KH}×${spec.KW}${dilated} spans ${span[0]}×${span[1]}, ` +
      `the padded input is ${padded[0]}×${padded[1]}: ` +
      `pad by ${more} more on each side${mode} or use ${other}`,
  );
}

/** Rows and columns that one window covers. @param {Spec} spec @returns {Pair} */
export const spanOf = ({ dilation, KH, KW }) => [
  dilation[0] * (KH - 1) + 1,
  dilation[1] * (KW - 1) + 1,
];

/** Height and width of the padded input. @param {Spec} spec @returns {Pair} */
export const paddedSize = ({ H, W, padding: [[top, bottom], [left, right]] }) => [
  H + top + bottom,
  W + left + right,
];

/**
 * The padding that keeps the size, an odd cell at the end: what `padding="same"` means in Python.
 * @param {Spec} spec @returns {[Pair, Pair]}
 */
export function samePadding(spec) {
  const [rows, cols] = spanOf(spec).map((extent) => /** @type {Pair} */ ([
    Math.floor((extent - 1) / 2),
    Math.ceil((extent - 1) / 2),
  ]));
  if (spec.stride.some((step) => step !== 1)) {
    throw new GeometryError(
      `padding='same' with stride ${short(spec.stride)}: 'same' needs stride 1, here and in ` +
        "PyTorch; use stride 1, or give the padding in numbers, for example " +
        `((${rows.join(", ")}), (${cols.join(", ")}))`,
    );
  }
  return [rows, cols];
}

/** @param {Geometry} g */
export const shapes = (g) => ({
  x: [g.N, g.C, g.H, g.W],
  weight: [g.O, g.CG, g.KH, g.KW],
  grad_output: [g.N, g.O, g.OH, g.OW],
});

/** The shape of the gradient being filled. @param {Geometry} g @param {Target} target */
export const targetShape = (g, target) =>
  target === "bias" ? [g.O] : shapes(g)[target === "weight" ? "weight" : "x"];

/**
 * Input coordinates (h, v) that tap (i, j) reads for output cell (p, q): the only index map.
 * @param {Geometry} g @param {number} p @param {number} q @param {number} i @param {number} j
 * @returns {Pair}
 */
export const source = ({ stride, dilation, padding: [[top], [left]] }, p, q, i, j) => [
  stride[0] * p + dilation[0] * i - top,
  stride[1] * q + dilation[1] * j - left,
];

/**
 * Which cell of an axis of `size` cells stands at `index`; −1 for the number zero.
 * @param {number} index @param {number} size @param {string} mode
 */
export function imageIndex(index, size, mode) {
  if (index >= 0 && index < size) return index;
  if (mode === "circular") return ((index % size) + size) % size;
  if (mode === "replicate") return index < 0 ? 0 : size - 1;
  // the border cell itself is not repeated: −1 → 1, size → size − 2
  if (mode === "reflect") return index < 0 ? -index : 2 * (size - 1) - index;
  return -1;
}

/**
 * The image cell whose value stands at (h, v); null where the padding is the number zero.
 * @param {Geometry} g @param {number} h @param {number} v
 * @returns {Pair | null}
 */
export function cellAt(g, h, v) {
  const row = imageIndex(h, g.H, g.padding_mode);
  const col = imageIndex(v, g.W, g.padding_mode);
  return row < 0 || col < 0 ? null : [row, col];
}

/**
 * Image row behind every output row and kernel row, `rows[p][i]`, and columns likewise; −1 on zero
 * padding.  What `rows` and `cols` of ConvGeometry are.
 * @param {Geometry} g
 */
export function readMaps(g) {
  /** @param {number} outputs @param {number} taps @param {number} size @param {0 | 1} axis */
  const map = (outputs, taps, size, axis) =>
    indices(outputs).map((a) =>
      indices(taps).map((b) => imageIndex(source(g, a, a, b, b)[axis], size, g.padding_mode)),
    );
  return { rows: map(g.OH, g.KH, g.H, 0), cols: map(g.OW, g.KW, g.W, 1) };
}

/** @param {Geometry} g @param {number} o */
export const groupOf = (g, o) => Math.floor(o / g.OG);

/** The channel of x behind channel `c` of kernel `o`. @param {Geometry} g @param {number} o @param {number} c */
export const channelOf = (g, o, c) => groupOf(g, o) * g.CG + c;

// ---- contributions ---------------------------------------------------------------------------

/** Loop orders, outermost first. @type {Record<Order, string>} */
const LOOPS = { tap: "ocijnpq", position: "npqocij", kernel: "onpqcij" };

/**
 * All contributions to one gradient in one order, precomputed so that any step can be had at once.
 * `x`, `w`, `g` and `t` hold flat offsets of the factors and of the receiving cell; −1 where there
 * is none (zero padding, a lost product, or an operand that takes no part).
 * @typedef {object} Ledger
 * @property {Geometry} geometry
 * @property {Target} target
 * @property {Order} order
 * @property {number} length
 * @property {Int32Array} x
 * @property {Int32Array} w
 * @property {Int32Array} g
 * @property {Int32Array} t
 * @property {(k: number) => Contribution} at  the k-th contribution, from 0
 */

/**
 * @param {Geometry} g
 * @param {Target} target
 * @param {Order} order
 * @param {boolean} includePadding  false leaves out products with zero padding and lost products
 * @returns {Ledger}
 */
export function ledger(g, target, order, includePadding) {
  const bias = target === "bias";
  /** @type {Record<string, number>} */
  const sizes = { n: g.N, o: g.O, c: g.CG, i: g.KH, j: g.KW, p: g.OH, q: g.OW };
  const letters = [...LOOPS[order]].filter((letter) => !bias || "nopq".includes(letter));
  const radix = letters.map((letter) => sizes[letter]);
  const most = radix.reduce((product, size) => product * size, 1);
  const columns = ["x", "w", "g", "t", "code"].map(() => new Int32Array(most));
  const [x, w, gradient, t, code] = columns;
  /** @type {Record<string, number>} */
  const at = { n: 0, o: 0, c: 0, i: 0, j: 0, p: 0, q: 0 };
  let length = 0;
  for (let k = 0; k < most; k++) {
    decode(k, letters, radix, at);
    const { n, o, c, i, j, p, q } = at;
    const onG = ((n * g.O + o) * g.OH + p) * g.OW + q;
    let onX = -1;
    let onW = -1;
    if (!bias) {
      const [h, v] = source(g, p, q, i, j);
      const cell = cellAt(g, h, v);
      if (cell) onX = ((n * g.C + channelOf(g, o, c)) * g.H + cell[0]) * g.W + cell[1];
      else if (!includePadding) continue;
      onW = ((o * g.CG + c) * g.KH + i) * g.KW + j;
    }
    x[length] = onX;
    w[length] = onW;
    gradient[length] = onG;
    t[length] = bias ? o : target === "weight" ? onW : onX;
    code[length++] = k;
  }
  return {
    geometry: g,
    target,
    order,
    length,
    x: x.subarray(0, length),
    w: w.subarray(0, length),
    g: gradient.subarray(0, length),
    t: t.subarray(0, length),
    at: (k) => contribution(g, target, decode(code[k], letters, radix, { ...at })),
  };
}

/**
 * The mixed-radix digits of `k`: one number for each loop letter.
 * @param {number} k @param {string[]} letters @param {number[]} radix
 * @param {Record<string, number>} at  written to and returned
 */
function decode(k, letters, radix, at) {
  for (let axis = letters.length - 1; axis >= 0; axis--) {
    at[letters[axis]] = k % radix[axis];
    k = Math.floor(k / radix[axis]);
  }
  return at;
}

/**
 * @param {Geometry} g @param {Target} target @param {Record<string, number>} at
 * @returns {Contribution}
 */
function contribution(g, target, { n, o, c, p, q, i, j }) {
  if (target === "bias") {
    return { n, o, c: null, p, q, i: null, j: null, h: null, v: null, cell: null, target: [o] };
  }
  const [h, v] = source(g, p, q, i, j);
  const cell = cellAt(g, h, v);
  const onX = cell && [n, channelOf(g, o, c), ...cell];
  return { n, o, c, p, q, i, j, h, v, cell, target: target === "weight" ? [o, c, i, j] : onX };
}

/** @typedef {{x: Tensor, weight: Tensor, grad_output: Tensor}} Operands */

/**
 * The two factors of the k-th contribution; the bias has g alone, so its first factor is 1.
 * @param {Ledger} list @param {number} k @param {Operands} operands
 * @returns {Pair}
 */
export function factors(list, k, { x, weight, grad_output }) {
  const g = grad_output.data[list.g[k]];
  if (list.target === "bias") return [1, g];
  if (list.target === "input") return [weight.data[list.w[k]], g];
  return [list.x[k] < 0 ? 0 : x.data[list.x[k]], g];
}

/**
 * The gradient after the contributions `from` … `to − 1`, flat.
 * @param {Ledger} list @param {Operands} operands @param {number} [to] @param {number} [from]
 */
export function accumulate(list, operands, to = list.length, from = 0) {
  const size = targetShape(list.geometry, list.target).reduce((product, s) => product * s, 1);
  const sums = new Float64Array(size);
  for (let k = from; k < to; k++) {
    if (list.t[k] < 0) continue; // lost on padding
    const [a, b] = factors(list, k, operands);
    sums[list.t[k]] += a * b; // += and not =: contributions meet in one cell
  }
  return sums;
}

/**
 * Every product of the convolution by the places of its three numbers, flat, output by output: `x`
 * (−1 on zero padding), `w`, and `y`, where g stands too.
 * @param {Geometry} g @param {(x: number, w: number, y: number) => void} visit
 */
export function products(g, visit) {
  const { rows, cols } = readMaps(g);
  let y = 0;
  for (let n = 0; n < g.N; n++)
    for (let o = 0; o < g.O; o++)
      for (let p = 0; p < g.OH; p++)
        for (let q = 0; q < g.OW; q++, y++) {
          let w = o * g.CG * g.KH * g.KW;
          for (let c = 0; c < g.CG; c++) {
            const plane = (n * g.C + channelOf(g, o, c)) * g.H;
            for (const row of rows[p])
              for (const col of cols[q]) visit(row < 0 || col < 0 ? -1 : (plane + row) * g.W + col, w++, y);
          }
        }
}

/**
 * The output of the convolution, flat in the shape (N, O, OH, OW).
 * @param {Geometry} g @param {Pick<Operands, "x" | "weight">} operands @param {ArrayLike<number>} [bias]
 */
export function forward(g, { x, weight }, bias) {
  const plane = g.OH * g.OW;
  const output = new Float64Array(g.N * g.O * plane);
  if (bias) output.forEach((_, k) => (output[k] = bias[Math.floor(k / plane) % g.O]));
  products(g, (at, w, y) => {
    if (at >= 0) output[y] += weight.data[w] * x.data[at];
  });
  return output;
}

/** The three gradients, flat. @param {Geometry} g @param {Operands} operands */
export const gradients = (g, operands) => ({
  grad_input: accumulate(ledger(g, "input", "tap", false), operands),
  grad_weight: accumulate(ledger(g, "weight", "tap", false), operands),
  grad_bias: accumulate(ledger(g, "bias", "tap", false), operands),
});

// ---- small tools -----------------------------------------------------------------------------

/** 0, 1, … up to `size`. @param {number} size */
export const indices = (size) => Array.from({ length: size }, (_, k) => k);

/** A pair as people write it: one value where both are alike. @param {readonly (number | string)[]} pair */
export const short = (pair) => (pair[0] === pair[1] ? `${pair[0]}` : `(${pair[0]}, ${pair[1]})`);

/** The index tuple of a flat offset. @param {number} offset @param {number[]} shape */
export function unravel(offset, shape) {
  const index = shape.map(() => 0);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index[axis] = offset % shape[axis];
    offset = Math.floor(offset / shape[axis]);
  }
  return index;
}

/** The flat offset of an index tuple. @param {number[]} index @param {number[]} shape */
export const ravel = (index, shape) =>
  index.reduce((offset, k, axis) => offset * shape[axis] + k, 0);

/** What stands at an index. @param {Tensor} tensor @param {...number} index */
export const at = ({ data, shape }, ...index) => data[ravel(index, shape)];

/**
 * The small integer that a new cell gets when an array grows; the same in base.py.
 * @param {number[]} index
 */
export const filler = (index) =>
  (index.reduce((sum, k, axis) => sum + [5, 3, 2, 1][axis] * k, 0) % 7) - 3;

/**
 * The array in another shape: cells that exist in both keep their numbers.
 * @param {Tensor} tensor @param {number[]} shape
 * @returns {{shape: number[], data: number[]}}
 */
export function refit(tensor, shape) {
  const size = shape.reduce((product, s) => product * s, 1);
  const data = Array.from({ length: size }, (_, offset) => {
    const index = unravel(offset, shape);
    const kept = index.every((k, axis) => k < tensor.shape[axis]);
    return kept ? tensor.data[ravel(index, tensor.shape)] : filler(index);
  });
  return { shape, data };
}
