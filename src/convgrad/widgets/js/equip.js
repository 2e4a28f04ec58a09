// @ts-check
// How a widget gets what all widgets can: undo, a link to what is shown, PyTorch code, knobs.
// That is a module of its own (tools.js), which a page loads once for all its widgets; in a
// notebook its text comes with the model.

/**
 * What a widget says of itself for that.
 * @typedef {object} Abilities
 * @property {readonly string[]} kept  the traits that a link keeps
 * @property {Record<string, readonly unknown[]>} [choices]  the values that some of them may have
 * @property {readonly string[]} edited  the traits that undo brings back
 * @property {(geometry: import("./conv.js").Geometry, limits: any) => void} [fits]  throws where it cannot be drawn, if that is another question than for the players
 * @property {(get: (name: string) => any, torch: typeof import("./torch_code.js")) => string} [code]
 */
/**
 * What anywidget hands over, and what the static page adds: its way to tools.js, and the widget's
 * name and first state.
 * @typedef {object} Context
 * @property {any} model
 * @property {() => Promise<typeof import("./tools.js")>} [tools]
 * @property {{name: string, base: Record<string, unknown>}} [page]
 */

/**
 * Puts the tools into an empty element of the widget; gives back what takes them away.
 * @param {Context} context @param {HTMLElement} place @param {Abilities} abilities
 * @param {(tools: typeof import("./tools.js")) => void} [arrived]  for the other shared pieces
 */
export function equip(context, place, abilities, arrived) {
  let gone = false;
  let leave = () => {};
  const { tools = () => unpack(context.model.get("_tools")) } = context;
  tools()
    .then((module) => {
      if (gone) return;
      leave = module.toolbar(context, place, abilities);
      arrived?.(module);
    })
    .catch((error) => console.warn("The widget works, but without its tools:", error));
  return () => {
    gone = true;
    leave();
  };
}

/** @param {string} text  of a module */
const unpack = (text) => import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
