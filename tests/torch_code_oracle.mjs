// @ts-check
// The programs that "copy as PyTorch code" writes, for the cases of test_torch_code.py.

import { readFileSync } from "node:fs";

import { torchCode } from "../src/convgrad/widgets/js/torch_code.js";

const cases = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(cases.map(torchCode)));
