// @ts-check
// Which checks notice that a gradient is broken, each with the numbers by which it does.
// Mirrors noticing.py; tests/test_js_mutants.py demands the same from both, word for word.

import { forward, shapes } from "./conv.js";
import { product } from "./limits.js";
import { right, wrong } from "./mutants.js";
import { formatNumber } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./conv.js").Operands} Operands */
/** @typedef {import("./conv.js").Target} Target */
/** @typedef {import("./conv.js").Tensor} Tensor */
/** @typedef {{check: string, noticed: boolean, evidence: string}} Finding */

/** A check that is not run: there is nothing to put into it. */
const STOPS = "it stops with an error";
const OTHER_SHAPE = "the shapes do not fit";
const ROUNDING = 1e-9; // of the larger number: fractions are rounded, whole numbers are not

/** Whether two numbers are different by more than rounding. @param {number} a @param {number} b */
export const differ = (a, b) => Math.abs(a - b) > ROUNDING * Math.max(1, Math.abs(a), Math.abs(b));

/** The k-th of a row of whole numbers from −4 to 4 that follow no pattern. @param {number} k @param {number} seed */
export function scattered(k, seed) {
  let bits = Math.imul(k + 1, 0x9e3779b1) ^ Math.imul(seed, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 15), 0x2c1b3c6d);
  return ((bits ^ (bits >>> 12)) >>> 0) % 9 - 4;
}

/** @param {number[]} shape @param {number} seed @returns {Tensor} */
const random = (shape, seed) => ({
  shape,
  data: Array.from({ length: product(shape) }, (_, k) => scattered(k, seed)),
});

/** @param {Tensor} a @param {Tensor} b */
export const sameShape = (a, b) => `${a.shape}` === `${b.shape}`;

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
function inner(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

/** How many cells of two arrays of one shape differ. @param {Tensor} a @param {Tensor} b */
function wrongCells(a, b) {
  let count = 0;
  for (let k = 0; k < a.data.length; k++) if (differ(a.data[k], b.data[k])) count++;
  return count;
}

/**
 * What every check says of a mistake.
 * @param {string} name @param {Target} target @param {Geometry} g @param {Operands} a
 * @returns {Finding[]}
 */
export function findings(name, target, g, a) {
  const made = wrong(name, g, a);
  /** @param {Tensor} grad_output */
  const compared = (grad_output) => comparison(name, target, g, { ...a, grad_output });
  const shape = shapes(g).grad_output;
  return [
    { check: "ones", ...compared({ shape, data: Array(product(shape)).fill(1) }) },
    { check: "random", ...compared(random(shape, 1)) },
    { check: "shape", ...shapeCheck(made, right(target, g, a)) },
    ...slopes(made, target, g, a),
  ];
}

/** The right gradient and the wrong one, cell by cell. @param {string} name @param {Target} target @param {Geometry} g @param {Operands} a */
function comparison(name, target, g, a) {
  const [should, made] = [right(target, g, a), wrong(name, g, a)];
  if (!made) return { noticed: true, evidence: STOPS };
  if (!sameShape(made, should)) return { noticed: true, evidence: OTHER_SHAPE };
  const count = wrongCells(made, should);
  return { noticed: count > 0, evidence: `${count} of ${should.data.length} cells differ` };
}

/** @param {Tensor | null} made @param {Tensor} should */
function shapeCheck(made, should) {
  if (!made) return { noticed: true, evidence: STOPS };
  const [has, needs] = [made, should].map(({ shape }) => shape.join("×"));
  return has === needs
    ? { noticed: false, evidence: `${has}, as it should be` }
    : { noticed: true, evidence: `${has}, needed is ${needs}` };
}

/**
 * The two checks that need no right gradient to compare with: the adjoint identity, and a step in
 * some direction, which changes the loss ⟨g, y⟩ by exactly what the gradient promises.
 * @param {Tensor | null} made @param {Target} target @param {Geometry} g @param {Operands} a
 * @returns {Finding[]}
 */
function slopes(made, target, g, a) {
  const shape = target === "bias" ? [g.O] : shapes(g)[target === "weight" ? "weight" : "x"];
  if (!made || `${made.shape}` !== `${shape}`) {
    const evidence = made ? OTHER_SHAPE : STOPS;
    return ["adjoint", "differences"].map((check) => ({ check, noticed: true, evidence }));
  }
  /** ⟨g, y⟩ as a function of the one operand; of the bias alone where that is asked for. @param {ArrayLike<number>} data */
  const loss = (data) => {
    if (target === "bias") return inner(a.grad_output.data, spreadBias(g, data));
    const operands = { x: a.x, weight: a.weight };
    return inner(a.grad_output.data, forward(g, { ...operands, [nameOf(target)]: { shape, data } }));
  };
  const here = target === "bias" ? random(shape, 3) : a[nameOf(target)];
  const direction = random(shape, 2).data;
  const moved = Array.from(here.data, (value, k) => value + Number(direction[k]));
  const at = loss(here.data);
  const [ahead, behind] = [at, inner(made.data, here.data)];
  const [change, promise] = [loss(moved) - at, inner(made.data, direction)];
  const [p, q, r, s] = [ahead, behind, change, promise].map((value) => formatNumber(value));
  const letter = { weight: "w", input: "x", bias: "b" }[target];
  return [
    {
      check: "adjoint",
      noticed: differ(ahead, behind),
      evidence: `⟨g, y⟩ = ${p}, ⟨gradient, ${letter}⟩ = ${q}`,
    },
    {
      check: "differences",
      noticed: differ(change, promise),
      evidence: `⟨g, y⟩ changes by ${r}, the gradient says ${s}`,
    },
  ];
}

/** @param {Target} target */
const nameOf = (target) => (target === "weight" ? "weight" : "x");

/** What the bias adds to the output. @param {Geometry} g @param {ArrayLike<number>} bias */
const spreadBias = (g, bias) =>
  Array.from({ length: g.N * g.O * g.OH * g.OW }, (_, k) => bias[Math.floor(k / (g.OH * g.OW)) % g.O]);
