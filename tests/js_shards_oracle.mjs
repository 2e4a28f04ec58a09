// @ts-check
// What ShardSum computes for the cases of test_js_shards_agree.py: JSON from stdin, JSON to stdout.

import { readFileSync } from "node:fs";

import { geometryOf, indices } from "../src/convgrad/widgets/js/conv.js";
import { contributors, evenly, halo, numbersSent, reads, ringSteps, rowCut } from "../src/convgrad/widgets/js/shards.js";
import { imageScene, movesIn, rowScene, sizesOf } from "../src/convgrad/widgets/js/shards_scene.js";
import { rowWords } from "../src/convgrad/widgets/js/shards_spots.js";
import { imageStepWords, rowFormula, rowStepWords, verdictOf } from "../src/convgrad/widgets/js/shards_words.js";

/** @typedef {import("../src/convgrad/widgets/js/conv.js").Operands} Operands */
/** @typedef {Operands & {geometry: import("../src/convgrad/widgets/js/conv.js").Spec, options: any, most: number}} Case */

/** @param {import("../src/convgrad/widgets/js/shards.js").Part} part */
const plain = (part) => Object.fromEntries(Object.entries(part).map(([name, data]) => [name, [...data]]));

/** @param {Case} each */
function caseOf({ geometry: spec, options, most, ...arrays }) {
  const g = geometryOf(spec);
  const sizes = sizesOf(g, options, most);
  const moves = movesIn(g, options, most);
  if (options.view === "images") {
    const scene = imageScene(g, arrays, options, sizes);
    const verdict = verdictOf(options, sizes, scene.equal);
    let sends = 0;
    return {
      sizes,
      moves,
      ring: scene.ring.map((state) => state.map((held) => [...held])),
      agreed: scene.agreed.map((held) => [...held]),
      single: scene.single,
      equal: scene.equal,
      one: scene.one,
      chunks: scene.chunks,
      words: moves.map((move) => imageStepWords(g, options, sizes, { move, sends: move === "ring" ? ++sends : sends }, verdict)),
    };
  }
  const scene = rowScene(g, arrays, sizes);
  return {
    sizes,
    moves,
    equal: scene.equal,
    messages: scene.messages.map(({ sender, receiver, rows }) => [sender, receiver, rows]),
    shards: scene.shards.map((shard) => ({ ...shard, reads: reads(shard), halo: halo(shard), geometry: [shard.geometry.H, shard.geometry.OH] })),
    parts: scene.parts.map(plain),
    outputs: scene.outputs.map((rows) => [...rows]),
    cuts: indices(g.OH).map((p) => rowCut(g, p)),
    words: [...moves.map((move) => rowStepWords(g, scene.shards, scene.messages, move, scene.equal)), ...scene.shards.map((shard) => rowFormula(g, shard)), ...indices(g.H).map((h) => rowWords(scene.shards, h))],
  };
}

/** The ring of each number of devices. @param {number} P */
function ringOf(P) {
  const all = indices(P);
  return {
    steps: ringSteps(P).map((step) => step.map(({ phase, sender, receiver, chunk }) => [phase, sender, receiver, chunk])),
    sent: indices(30).map((size) => numbersSent(size, P)),
    dealt: indices(30).map((count) => evenly(count, P)),
    held: indices(2 * P - 1).map((steps) => all.map((device) => all.map((chunk) => contributors(P, steps, device, chunk)))),
  };
}

const { cases, devices } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify({ cases: cases.map(caseOf), rings: devices.map(ringOf) }));
