// @ts-check
// Explorables that a cell has made: drawn by the loader's own pieces, and tied to Python.

import { Model, mount, same, widgetOf } from "../../src/convgrad/widgets/js/static_page.js";

/** @typedef {{model: string, state: Record<string, unknown>, module: string, stylesheet: string | null}} Shown */

/**
 * @param {string} folder where the modules of the explorables lie
 * @param {string} tools the module that they share
 * @param {(model: string, values: Record<string, unknown>) => void} tell Python
 */
export function widgets(folder, tools, tell) {
  /** @type {Map<string, {model: Model, started: Promise<any>}>} */
  const models = new Map();
  /** What Python has just said, and need not be told. @type {Record<string, unknown> | null} */
  let said = null;

  /** @param {Shown} shown */
  function modelOf({ model: name, state, module }) {
    const known = models.get(name);
    if (known) return known;
    const model = new Model(state);
    const face = model.face(models);
    /** @type {Record<string, unknown>} */
    let changed = {};
    for (const key of Object.keys(state)) {
      face.on(`change:${key}`, (_, value) => {
        if (said && same(said[key], value)) return;
        if (!Object.keys(changed).length) {
          // all that one gesture changes, in one message
          setTimeout(() => {
            tell(name, changed);
            changed = {};
          });
        }
        changed[key] = value;
      });
    }
    const started = widgetOf(import(folder + module), model);
    const both = { model, started };
    models.set(name, both);
    return both;
  }

  return {
    /** @param {HTMLElement} place @param {Shown} shown */
    draw(place, shown) {
      if (shown.stylesheet && !document.querySelector(`link[href$="${shown.stylesheet}"]`)) {
        const link = document.createElement("link");
        link.rel = "stylesheet";
        link.href = folder + shown.stylesheet;
        document.head.append(link);
      }
      const { model, started } = modelOf(shown);
      mount(place, started, model, { tools: () => import(folder + tools) });
    },
    /** Python has changed something. @param {string} name @param {Record<string, unknown>} values */
    hear(name, values) {
      said = values;
      models.get(name)?.model.face(models).set(values);
      said = null;
    },
    /** Python is gone: what is drawn stays, and is told to nobody. */
    forget: () => models.clear(),
  };
}
