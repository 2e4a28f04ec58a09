// @ts-check
// The convolution that tests begin with and then change: example B's, one 5×5 image, one 3×3 kernel.

/**
 * @param {Partial<import("../../src/convgrad/widgets/js/conv.js").Spec>} [differences]
 * @returns {import("../../src/convgrad/widgets/js/conv.js").Spec}
 */
export const spec = (differences) => ({
  N: 1,
  C: 1,
  H: 5,
  W: 5,
  O: 1,
  KH: 3,
  KW: 3,
  stride: [1, 1],
  padding: [
    [0, 0],
    [0, 0],
  ],
  dilation: [1, 1],
  groups: 1,
  padding_mode: "zeros",
  ...differences,
});
