// @ts-check
// A cell's code in an editor that looks like the code of the page.
//
// Tab is left to the browser: it leads out of the editor, as out of any field.  The tokens have the
// classes of the page's own highlighting, so that light and dark are the same as before.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import {
  LRLanguage,
  bracketMatching,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, drawSelection, keymap } from "@codemirror/view";
import { tagHighlighter, tags } from "@lezer/highlight";
import { parser } from "@lezer/python";

import { indentAfter } from "./indent.js";

// Pygments' classes, in which the page's stylesheet speaks of code.
const classes = tagHighlighter([
  { tag: tags.controlKeyword, class: "k" },
  { tag: tags.definitionKeyword, class: "k" },
  { tag: tags.moduleKeyword, class: "kn" },
  { tag: [tags.operatorKeyword], class: "ow" },
  { tag: tags.keyword, class: "k" },
  { tag: [tags.bool, tags.null], class: "kc" },
  { tag: tags.number, class: "mi" },
  { tag: [tags.string, tags.special(tags.string)], class: "s2" },
  { tag: tags.comment, class: "c1" },
  { tag: [tags.function(tags.definition(tags.variableName))], class: "nf" },
  { tag: tags.definition(tags.className), class: "nc" },
  { tag: [tags.operator, tags.derefOperator], class: "o" },
  { tag: tags.meta, class: "nd" },
  { tag: [tags.paren, tags.squareBracket, tags.brace, tags.punctuation, tags.separator], class: "p" },
]);

const python = LRLanguage.define({ name: "python", parser });

/** @type {import("@codemirror/state").StateEffectType<number>} */
const point = StateEffect.define();
const pointed = Decoration.line({ class: "cg-run-wrong" });

/** The line that an error points to, until the code is changed or run again. */
const wrongLine = StateField.define({
  create: () => Decoration.none,
  update(lines, change) {
    for (const effect of change.effects) {
      if (!effect.is(point)) continue;
      const { doc } = change.state;
      if (effect.value < 1 || effect.value > doc.lines) return Decoration.none;
      return Decoration.set([pointed.range(doc.line(effect.value).from)]);
    }
    return change.docChanged ? Decoration.none : lines;
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** @param {EditorView} view */
function newLine(view) {
  view.dispatch(
    view.state.changeByRange((range) => {
      const line = view.state.doc.lineAt(range.from);
      const text = `\n${indentAfter(line.text.slice(0, range.from - line.from))}`;
      const at = range.from + text.length;
      return {
        changes: { from: range.from, to: range.to, insert: text },
        range: /** @type {any} */ (range).constructor.fromJSON({ anchor: at, head: at }),
      };
    }),
    { scrollIntoView: true, userEvent: "input" },
  );
  return true;
}

/**
 * @typedef {object} Editor
 * @property {HTMLElement} element
 * @property {() => string} text
 * @property {(text: string) => void} replace
 * @property {(line: number) => void} point shows which line an error is in; 0 for none
 * @property {() => void} focus
 * @property {() => void} remove
 */

/**
 * @param {string} text
 * @param {{label: string, run: () => void, change: (text: string) => void}} how
 * @returns {Editor}
 */
export function editor(text, { label, run, change }) {
  const go = () => {
    run();
    return true;
  };
  const view = new EditorView({
    state: EditorState.create({
      doc: text,
      extensions: [
        history(),
        drawSelection(),
        indentUnit.of("    "),
        EditorState.tabSize.of(4),
        bracketMatching(),
        python,
        syntaxHighlighting(/** @type {any} */ (classes)),
        wrongLine,
        keymap.of([
          { key: "Shift-Enter", run: go },
          { key: "Mod-Enter", run: go },
          { key: "Ctrl-Enter", run: go },
          { key: "Enter", run: newLine },
          ...historyKeymap,
          ...defaultKeymap,
        ]),
        EditorView.contentAttributes.of({
          "aria-label": label,
          autocapitalize: "off",
          autocorrect: "off",
          spellcheck: "false",
        }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) change(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    element: view.dom,
    text: () => view.state.doc.toString(),
    replace: (code) =>
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: code } }),
    point: (line) => view.dispatch({ effects: point.of(line) }),
    focus: () => view.focus(),
    remove: () => view.destroy(),
  };
}
