// @ts-check
// How far a new line of Python is indented.

/**
 * The spaces that a new line begins with after this one.
 * @param {string} line up to where it is broken
 */
export function indentAfter(line) {
  const indent = /^ */.exec(line)?.[0] ?? "";
  const code = line.replace(/#.*$/, "").trimEnd();
  if (/[:([{]$/.test(code)) return `${indent}    `;
  const ends = /^ *(return|pass|break|continue|raise)\b/.test(code) && !/[([{,\\]$/.test(code);
  return ends ? indent.slice(4) : indent;
}
