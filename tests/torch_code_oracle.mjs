// @ts-check
// The programs that "copy as PyTorch code" writes, for the cases of test_torch_code.py: of arrays
// and what to show, or of a widget and what its model holds.

import { readFileSync } from "node:fs";

import * as torch from "../src/convgrad/widgets/js/torch_code.js";

/** @param {any} given */
async function programOf({ widget, state, ...numbers }) {
  if (!widget) return torch.torchCode(/** @type {any} */ (numbers));
  const { default: module } = await import(`../src/convgrad/widgets/js/${widget}.js`);
  return module.abilities.code((/** @type {string} */ name) => state[name], torch);
}

const cases = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(await Promise.all(cases.map(programOf))));
