// @ts-check
// What is on the screen as a program for PyTorch, to be pasted and run: text from numbers.

/** @typedef {import("./conv.js").Spec} Spec */
/** @typedef {import("./conv.js").Tensor} Tensor */
/** What can be printed at the end. @typedef {"y" | "grad_input" | "grad_weight" | "grad_bias"} Shown */

/** Where PyTorch keeps each of them. @type {Record<Shown, string>} */
const KEPT_IN = {
  y: "y.detach()",
  grad_input: "x.grad",
  grad_weight: "weight.grad",
  grad_bias: "bias.grad",
};
const SUMMARY = 1000; // elements: beyond them PyTorch prints dots

/** @param {readonly unknown[]} values */
export const tuple = (values) => `(${values.join(", ")})`;

/**
 * An array as nested lists, set like NumPy sets them.
 * @param {Tensor} tensor @param {number} indent  columns that stand before the first bracket
 */
export function literal({ shape, data }, indent) {
  let at = 0;
  /** @param {number} axis @returns {string} */
  const list = (axis) => {
    const last = axis === shape.length - 1;
    const items = Array.from({ length: shape[axis] }, () => (last ? `${data[at++]}` : list(axis + 1)));
    return `[${items.join(last ? ", " : `,\n${" ".repeat(indent + axis + 1)}`)}]`;
  };
  return list(0);
}

/** `name = torch.tensor(…)`. @param {string} name @param {Tensor} array @param {boolean} [needsGrad] */
export function tensor(name, array, needsGrad = false) {
  const head = `${name} = torch.tensor(`;
  const tail = needsGrad ? ", requires_grad=True" : "";
  return `${head}${literal(array, head.length)}, dtype=torch.float64${tail})`;
}

/**
 * How the windows lie: the array that they are laid over, the line that pads it where conv2d has
 * no such padding, and the arguments.
 * @param {Spec} spec
 */
export function windows({ stride, padding, dilation, padding_mode }) {
  const [[top, bottom], [left, right]] = padding;
  const some = top + bottom + left + right > 0;
  const apart = some && (padding_mode !== "zeros" || top !== bottom || left !== right);
  const mode = padding_mode === "zeros" ? "" : `, mode="${padding_mode}"`;
  const words = [
    stride.some((k) => k !== 1) && `stride=${tuple(stride)}`,
    some && !apart && `padding=${tuple([top, left])}`,
    dilation.some((k) => k !== 1) && `dilation=${tuple(dilation)}`,
  ].filter((word) => word !== false);
  const pad = `padded = F.pad(x, ${tuple([left, right, top, bottom])}${mode})  # left, right, top, bottom`;
  return { source: apart ? "padded" : "x", lines: apart ? [pad] : [], words };
}

/**
 * The lines that convolve: F.conv2d alone, or after F.pad.
 * @param {Spec} spec @param {boolean} [bias]
 */
export function convolve(spec, bias = false) {
  const { source, lines, words } = windows(spec);
  const groups = spec.groups > 1 ? [`groups=${spec.groups}`] : [];
  const operands = [source, "weight", ...(bias ? ["bias"] : [])];
  return [...lines, `y = F.conv2d(${[...operands, ...words, ...groups].join(", ")})`];
}

/**
 * How a program begins: what it imports, and how PyTorch prints arrays such as these whole.
 * @param {Tensor[]} arrays
 */
function beginning(arrays) {
  const broken = arrays.some(({ data }) => Array.from(data).some((k) => !Number.isInteger(k)));
  const options = [
    broken && "precision=6",
    arrays.some(({ data }) => data.length > SUMMARY) && "threshold=100_000",
  ].filter(Boolean);
  return [
    "import torch",
    "import torch.nn.functional as F",
    ...(options.length ? ["", `torch.set_printoptions(${options.join(", ")})`] : []),
    "",
  ];
}

/**
 * A program of arrays and lines that are known already.
 * @param {Record<string, Tensor>} arrays @param {string[]} lines
 */
export const script = (arrays, lines) =>
  [
    ...beginning(Object.values(arrays)),
    ...Object.entries(arrays).map(([name, array]) => tensor(name, array)),
    "",
    ...lines,
    "",
  ].join("\n");

/** The program that writes out the columns of a widget's model. @param {(name: string) => any} get */
export function columnsCode(get) {
  const { KH, KW } = get("geometry");
  const { source, lines, words } = windows(get("geometry"));
  const unfold = `columns = F.unfold(${[source, tuple([KH, KW]), ...words].join(", ")})`;
  return script({ x: get("x") }, [...lines, unfold, "print(columns)"]);
}

/**
 * The weight gradient from the parts of several devices, in one process.
 * @param {Spec} g @param {Tensor} x @param {Tensor} upstream
 * @param {{view: string, loss: string, combine: string}} options @param {number[]} sizes  of the devices
 */
export function shardsCode(g, x, upstream, { view, loss, combine }, sizes) {
  const shape = tuple([g.O, g.C / g.groups, g.KH, g.KW]);
  const groups = g.groups > 1 ? [`groups=${g.groups}`] : [];
  const images = view === "images";
  const { source, lines, words } = windows(images ? g : { ...g, padding: [[0, 0], [0, 0]] });
  const total = images && combine === "average" ? `sum(parts) / ${sizes.length}` : "sum(parts)";
  const [[top, bottom], [left, right]] = g.padding;
  const mode = g.padding_mode === "zeros" ? "" : `, mode="${g.padding_mode}"`;
  let stop = 0;
  const rows = sizes.map((size) => {
    const first = stop;
    stop += size;
    return tuple([first, stop, g.stride[0] * first, g.stride[0] * (stop - 1) + g.dilation[0] * (g.KH - 1) + 1]);
  });
  const call = (/** @type {string} */ input, /** @type {string} */ grad) => `    torch.nn.grad.conv2d_weight(${[input, shape, grad, ...words, ...groups].join(", ")})`;
  const parts = images
    ? [call("xs", loss === "mean" ? "gs / len(gs)" : "gs"), `    for xs, gs in zip(${source}.split([${sizes}]), g.split([${sizes}]))`]
    : [call("padded[:, :, top:bottom]", "g[:, :, first:last]"), `    for first, last, top, bottom in [${rows.join(", ")}]`];
  return script({ x, g: upstream }, [
    ...(images ? lines : [`padded = F.pad(x, ${tuple([left, right, top, bottom])}${mode})`]),
    `parts = [  # of ${sizes.length} devices`,
    ...parts,
    "]",
    `grad_weight = ${total}  # what an all-reduce leaves on every device`,
    "print(grad_weight)",
  ]);
}

/**
 * A program that computes the same numbers.
 * @param {object} what
 * @param {Spec} what.geometry
 * @param {Tensor} what.x
 * @param {Tensor} what.weight
 * @param {Tensor} [what.grad_output]  needed for the gradients
 * @param {Tensor} [what.bias]  left out, it is added where its gradient is shown, as zeros
 * @param {Shown[]} what.show
 * @param {string} [what.note]  a comment at the end
 */
export function torchCode({ geometry, x, weight, grad_output, bias, show, note }) {
  const backward = show.some((name) => name !== "y");
  const noBias = `bias = torch.zeros(${geometry.O}, dtype=torch.float64, requires_grad=True)`;
  const biasLines = bias ? [tensor("bias", bias, backward)] : show.includes("grad_bias") ? [noBias] : [];
  const arrays = [x, weight, grad_output, bias].filter((array) => array !== undefined);
  return [
    ...beginning(arrays),
    tensor("x", x, backward),
    tensor("weight", weight, backward),
    ...biasLines,
    ...(backward && grad_output ? [tensor("grad_output", grad_output)] : []),
    "",
    ...convolve(geometry, biasLines.length > 0),
    ...(backward ? ["y.backward(grad_output)"] : []),
    ...show.map((name) => `print(${KEPT_IN[name]})${name === "y" ? "" : `  # ${name}`}`),
    ...(note ? [`# ${note}`] : []),
    "",
  ].join("\n");
}

/**
 * The program for what a widget's model holds.
 * @param {(name: string) => any} get @param {...string} show
 */
export const program = (get, ...show) =>
  torchCode({
    geometry: get("geometry"),
    x: get("x"),
    weight: get("weight"),
    grad_output: get("grad_output"),
    bias: get("bias"),
    show: /** @type {Shown[]} */ (show),
  });

// ---- GradientViews -----------------------------------------------------------------------------

/** The program for the view that is shown. @param {(name: string) => any} get */
export function viewsCode(get) {
  const view = get("view");
  const { geometry: spec, x, weight, grad_output } = Object.fromEntries(["geometry", "x", "weight", "grad_output"].map((name) => [name, get(name)]));
  if (view === "convolution") return searchCode(spec, { x, g: grad_output }, get);
  if (view === "scatter-gather") return shareCode(spec, { x, weight, grad_output }, get);
  const kernels = view === "kernels";
  const [what, count, slice] = kernels ? ["kernel", spec.O, "[:, k]"] : ["image", spec.N, "[k]"];
  const [leaf, grad] = kernels ? ["x", "grad_input"] : ["weight", "grad_weight"];
  return [
    ...beginning([x, weight, grad_output]),
    tensor("x", x, kernels),
    tensor("weight", weight, !kernels),
    tensor("grad_output", grad_output),
    "",
    ...convolve(spec),
    "shares = []",
    `for k in range(${count}):  # each ${what} alone`,
    "    alone = torch.zeros_like(grad_output)",
    `    alone${slice} = grad_output${slice}`,
    `    shares += torch.autograd.grad(y, ${leaf}, alone, retain_graph=True)`,
    "for k, share in enumerate(shares):",
    `    print("${what}", k, share)`,
    `print("${grad}", sum(shares))`,
    "",
  ].join("\n");
}

/** Image, kernel, channel in the group and channel of x that are shown. @param {Spec} spec @param {(name: string) => any} get */
function shownOf({ C, O, N, groups }, get) {
  const most = { image: N, kernel: O, channel: C / groups };
  const [n, o, c] = Object.entries(most).map(([name, count]) => Math.max(0, Math.min(get(name), count - 1)));
  return { n, o, c, channel: Math.floor((o * groups) / O) * most.channel + c };
}

/** One kernel's share of grad_input, and the whole. @param {Spec} spec @param {{x: Tensor, weight: Tensor, grad_output: Tensor}} arrays @param {(name: string) => any} get */
function shareCode(spec, { x, weight, grad_output }, get) {
  const { n, o, channel } = shownOf(spec, get);
  return [
    ...beginning([x, weight, grad_output]),
    tensor("x", x, true),
    tensor("weight", weight),
    tensor("grad_output", grad_output),
    "",
    ...convolve(spec),
    `alone = torch.zeros_like(grad_output)  # all but kernel ${o}'s`,
    `alone[:, ${o}] = grad_output[:, ${o}]`,
    "(share,) = torch.autograd.grad(y, x, alone, retain_graph=True)",
    `print(share[${n}, ${channel}])  # kernel ${o}'s share of grad_input[${n}, ${channel}]`,
    "y.backward(grad_output)",
    "print(x.grad)  # grad_input",
    "",
  ].join("\n");
}

/** One map of x searched with one of g. @param {Spec} spec @param {Record<string, Tensor>} arrays @param {(name: string) => any} get */
function searchCode(spec, arrays, get) {
  const { KH, KW } = spec;
  const { n, o, c, channel } = shownOf(spec, get);
  const { source, lines, words } = windows({ ...spec, stride: spec.dilation, dilation: spec.stride });
  const operands = [`${source}[${n}:${n + 1}, ${channel}:${channel + 1}]`, `g[${n}:${n + 1}, ${o}:${o + 1}]`, ...words];
  return script(arrays, [
    ...lines,
    "# stride and dilation have changed places",
    `taps = F.conv2d(${operands.join(", ")})`,
    `share = taps[:, :, :${KH}, :${KW}]  # the crop`,
    `print(share)  # image ${n}'s share of grad_weight[${o}, ${c}]`,
  ]);
}

/** A program of random numbers for a convolution too large to be written out. @param {Spec} spec @param {Shown} shown */
export function randomCode(spec, shown) {
  const { N, C, H, W, O, KH, KW, groups } = spec;
  const random = (/** @type {number[]} */ shape) => `torch.randn(${shape.join(", ")}, requires_grad=True)`;
  const last = shown === "y" ? [] : ["y.backward(torch.randn_like(y))"];
  return script({}, [
    `x = ${random([N, C, H, W])}`,
    `weight = ${random([O, C / groups, KH, KW])}`,
    "",
    ...convolve(spec),
    ...last,
    `print(${KEPT_IN[shown]}.shape)`,
  ]);
}

// ---- a layer, for its sizes alone ------------------------------------------------------------

/**
 * A layer of ones over an image of ones, or back over an output of ones: its sizes, and how often
 * each cell of x is used.
 * @param {import("./conv.js").Geometry} g  one image, one channel, one kernel
 * @param {boolean} transposed
 */
export function layerCode(g, transposed) {
  const copied = g.padding_mode !== "zeros" && g.padding.flat().some(Boolean);
  const lines = transposed && !copied ? transposedLayer(g) : layer(g, transposed);
  return ["import torch", ...lines, ""].join("\n");
}

/** @param {string} kind @param {Spec} spec @param {string[]} words */
const layerOfOnes = (kind, { KH, KW }, words) => [
  `layer = nn.${kind}(${[1, 1, tuple([KH, KW]), ...words, "bias=False"].join(", ")})`,
  "nn.init.ones_(layer.weight)",
];

/** @param {import("./conv.js").Geometry} g @param {boolean} transposed */
function layer(g, transposed) {
  const { source, lines, words } = windows(g);
  const why = transposed ? "nn.ConvTranspose2d has no such border: this is the gradient" : "how often each cell is used";
  return [
    ...(lines.length ? ["import torch.nn.functional as F"] : []),
    "from torch import nn",
    "",
    `x = torch.ones${tuple([1, 1, g.H, g.W])}.requires_grad_()`,
    ...layerOfOnes("Conv2d", g, words),
    "",
    ...lines,
    `y = layer(${source})`,
    "y.sum().backward()",
    `print(tuple(y.shape))  # ${tuple([1, 1, g.OH, g.OW])}`,
    `print(x.grad)  # ${why}`,
  ];
}

/** @param {import("./conv.js").Geometry} g */
function transposedLayer(g) {
  const [[top, bottom], [left, right]] = g.padding;
  const even = top === bottom && left === right;
  const words = windows(even ? g : { ...g, padding: [[0, 0], [0, 0]] }).words;
  if (g.leftover.some(Boolean)) words.push(`output_padding=${tuple(g.leftover)}`);
  // the layer crops as much on either side; another border is cropped by hand
  const crop = even ? "" : `[:, :, ${top}:${top + g.H}, ${left}:${left + g.W}]`;
  return [
    "from torch import nn",
    "",
    `y = torch.ones${tuple([1, 1, g.OH, g.OW])}`,
    ...layerOfOnes("ConvTranspose2d", g, words),
    "",
    `x = layer(y).detach()${crop}`,
    `print(tuple(x.shape))  # ${tuple([1, 1, g.H, g.W])}`,
    "print(x)  # how many products meet in each cell",
  ];
}
