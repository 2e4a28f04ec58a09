// Formulas for the book: one process a build, JSON lines in, JSON lines out.
//
//   first line in   {"macros": {"\\colx": "\\htmlClass{cg-col-x}{#1}", …}}
//   every other     {"tex": "w_{o,c,i,j}", "display": true}
//   lines out       {"version": "0.19.1"}, then {"html": "…"} or {"error": "…"} in the same order

import { createInterface } from "node:readline";
import katex from "katex";

/**
 * The colours of the book are HTML classes; nothing else that reaches out of a formula is let in.
 * KaTeX alone would print what is refused in red, which nobody sees in a build.
 *
 * @param {{command: string}} context
 */
function trust({ command }) {
  if (command !== "\\htmlClass") throw new Error(`KaTeX: ${command} is not for formulas of the book`);
  return true;
}

/**
 * KaTeX lets some doubtful TeX pass with a word on the console; here it is an error,
 * except the one liberty that the colours need.
 *
 * @param {string} code
 */
const strict = (code) => (code === "htmlExtension" ? "ignore" : "error");

/** @type {Record<string, string> | undefined} */
let macros;

/** @param {{tex: string, display: boolean}} formula */
function render({ tex, display }) {
  try {
    const options = { displayMode: display, output: "htmlAndMathml", throwOnError: true };
    // a copy of the macros: \gdef in one formula must not reach the next
    const html = katex.renderToString(tex, { ...options, macros: { ...macros }, strict, trust });
    // the TeX source inside the MathML is read by nobody, and found by the page search
    return { html: html.replace(/<annotation[^>]*>.*?<\/annotation>/s, "") };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  let answer;
  if (macros === undefined) {
    macros = message.macros;
    answer = { version: katex.version };
  } else {
    answer = render(message);
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
