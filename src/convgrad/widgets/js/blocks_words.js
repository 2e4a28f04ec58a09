// @ts-check
// GroupBlocks in words and as code.  A part in the colour of what it names is written {key text}.

import { channelOf, groupOf, indices, short } from "./conv.js";
import { groupAt, standsAt, surplus } from "./grouped.js";
import { groupLetter, subscript } from "./words.js";

/** @typedef {import("./conv.js").Geometry} Geometry */
/** @typedef {import("./grouped.js").Move} Move */
/** @typedef {import("./grouped.js").Options} Options */

/** Whether a map stands where it belongs. @param {Geometry} g @param {number} c @param {number} m */
export const isRight = (g, c, m) => `${standsAt(g, false, c, m)}` === `${standsAt(g, true, c, m)}`;

/** How many maps of x stand elsewhere without the transpose. @param {Geometry} g */
export const misplaced = (g) =>
  indices(g.CG).flatMap((c) => indices(g.N * g.groups).filter((m) => !isRight(g, c, m))).length;

/** Image and group of the convolution's group m. @param {Geometry} g @param {number} m */
export const groupName = (g, m) =>
  `image ${Math.floor(m / g.groups)}${g.groups > 1 ? `, group ${groupLetter(m % g.groups)}` : ""}`;

/** @param {number} count @param {string} one */
const counted = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;

/**
 * What a step has done.
 * @param {Geometry} g @param {Options} options @param {{move: Move, m: number}} step
 * @param {string} mistake  how far the gradient is off, where the transpose is left out
 */
export function moveWords(g, { per_image }, { move, m }, mistake) {
  const { N, C, O, CG, OG, groups: G } = g;
  const wrong = misplaced(g);
  const [more, wider] = surplus(g);
  const end = per_image ? "{result N, O, C/G, KH, KW}: every image has a gradient of its own" : "{result O, C/G, KH, KW}, the shape of the weight";
  return {
    start: `{x x} has a map for each of ${counted(N, "image")} and ${counted(C, "channel")}, {grad_output g} for each image and ${counted(O, "kernel")}${G > 1 ? "; letters and borders tell the groups apart" : ""}`,
    split: `reshape: the channels of every image fall apart into ${counted(G, "group")} of ${CG}; image and group become one axis`,
    turn: `transpose: image and group are now the ${N * G} channels of a convolution, and the ${CG} channels of a group are its images`,
    deal: `reshape alone gives the same shape, but ${wrong ? `${wrong} of ${N * C} maps stand in a wrong place` : `here every map stands right by luck: ${CG < 2 ? "a group has one channel" : "there is one image and one group"}`}`,
    list: `reshape: each of the ${N * O} maps of g becomes a kernel of its own, with one channel`,
    meet: `${groupName(g, m)}: ${counted(CG, "map")} of {x x} searched with ${counted(OG, "map")} of {grad_output g}; stride and dilation have changed places`,
    crop: `crop: the leftover makes ${[more && counted(more, "row"), wider && counted(wider, "column")].filter(Boolean).join(" and ")} of taps that do not exist; they fall away`,
    sum: `sum: the shares of ${counted(N, "image")} are added up${mistake}`,
    weight: `transpose: ${end}${mistake}`,
    dense: `as a weight without groups, {result O, C, KH, KW}: ${O * CG} of ${O * C} blocks exist, on the diagonal; a hatched block is no weight, so 0${mistake}`,
  }[move];
}

/** What a map is called; `key` says of which array. @param {Geometry} g @param {string} key @param {number[]} index */
export function mapName(g, key, index) {
  if (key === "x") return `{x ${subscript("x", index)}} is image ${index[0]}, channel ${index[1]}${inGroup(g, Math.floor(index[1] / g.CG))}`;
  if (key === "g") return `{grad_output ${subscript("g", index)}} is image ${index[0]}, kernel ${index[1]}${inGroup(g, groupOf(g, index[1]))}`;
  return "";
}

/** @param {Geometry} g @param {number} k */
const inGroup = (g, k) => (g.groups > 1 ? `, group ${groupLetter(k)}` : "");

/** What meets in one map of the result. @param {Geometry} g @param {boolean} transpose @param {number[]} index  c, n, o */
export function meetWords(g, transpose, [c, n, o]) {
  const m = groupAt(g, n, o);
  const from = subscript("x", standsAt(g, transpose, c, m));
  const should = subscript("x", standsAt(g, true, c, m));
  const block = subscript("grad_weight", [o, c]);
  const wrong = from === should ? "" : `. It should be {x ${should}}: here is a map of another group or image`;
  return `{x ${from}} searched with {grad_output ${subscript("g", [n, o])}} is the share of image ${n} in {result ${block}}${wrong}`;
}

/** A block that no weight stands in. @param {Geometry} g @param {number} o @param {number} channel */
export const zeroWords = (g, o, channel) =>
  `kernel ${o}${inGroup(g, groupOf(g, o))}, never reads channel ${channel}${inGroup(g, Math.floor(channel / g.CG))}: there is no such weight, so this block is 0. Without groups there would be one, and this its gradient`;

/** A finished block. @param {Geometry} g @param {number} c @param {number} o */
export const blockWords = (g, c, o) =>
  `{result ${subscript("grad_weight", [o, c])}}, kernel ${o} and channel ${channelOf(g, o, c)}: ${g.N > 1 ? `the shares of ${g.N} images added up` : "the share of the one image"}`;

/**
 * The whole calculation in PyTorch, and the moves that each line makes.
 * @param {Geometry} g @param {Options} options
 * @returns {{text: string, moves: Move[]}[]}
 */
export function codeOf(g, { transpose, per_image }) {
  const { N, O, CG, groups: G } = g;
  const [[top, bottom], [left, right]] = g.padding;
  const plain = g.padding_mode === "zeros" && top === bottom && left === right;
  const [H, W] = plain ? [g.H, g.W] : [g.H + top + bottom, g.W + left + right];
  const mode = g.padding_mode === "zeros" ? "constant" : g.padding_mode;
  const pair = (/** @type {readonly number[]} */ each) => short(each);
  const [more, wider] = surplus(g);
  const xi = transpose ? `x.reshape(${N * G}, ${CG}, ${H}, ${W}).transpose(0, 1)` : `x.reshape(${CG}, ${N * G}, ${H}, ${W})  # wrong: no transpose`;
  const options = [`stride=${pair(g.dilation)}`, `padding=${plain ? pair([top, left]) : 0}`, `dilation=${pair(g.stride)}`, `groups=${N * G}`];
  const shares = `t.reshape(${CG}, ${N}, ${O}, ${g.KH}, ${g.KW})`;
  /** @type {[string, Move[], boolean?][]} */
  const lines = [
    [`x = F.pad(x, (${left}, ${right}, ${top}, ${bottom}), mode="${mode}")`, [], !plain],
    [`xi = ${xi}`, ["split", "turn", "deal"]],
    [`wi = g.reshape(${N * O}, 1, ${g.OH}, ${g.OW})`, ["list"]],
    [`t = F.conv2d(xi, wi, ${options.join(", ")})`, ["meet"]],
    [`t = t[:, :, :${g.KH}, :${g.KW}]`, ["crop"], more + wider > 0],
    per_image
      ? [`grad_weights = ${shares}.permute(1, 2, 0, 3, 4)`, ["weight"]]
      : [`grad_weight = ${shares}.sum(1).transpose(0, 1)`, ["sum", "weight"]],
  ];
  return lines.filter(([, , needed]) => needed !== false).map(([text, moves]) => ({ text, moves }));
}
