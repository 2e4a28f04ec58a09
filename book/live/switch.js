// @ts-check
// On every page with cells: a button in the head that makes them live.  All else comes when it is
// pressed, so that a reader who only reads loads nothing more.

/** @typedef {{code: string, place?: true, shown?: true, folded?: true, needs?: string}} Cell as tools/live.py describes it */
/** @typedef {import("./engine.js").Settings & {live: string, style: string, worker: string, tools: string, sizes: Record<string, number>, first: string[]}} Start what start.json names */

const script = /** @type {HTMLScriptElement} */ (document.currentScript);
const base = new URL("./", script.src);

/** @param {string} name */
const read = async (name) => {
  const answer = await fetch(new URL(name, base), { cache: "no-cache" });
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return answer.json();
};

/** Gives the page back as it was, while it is live. @type {(() => void) | undefined} */
let leave;

/** @param {HTMLButtonElement} button */
async function turn(button) {
  if (leave) {
    leave();
    leave = undefined;
    return;
  }
  button.disabled = true;
  say(button, "Starting …");
  try {
    /** @type {[Start, Cell[]]} */
    const [start, cells] = await Promise.all([
      read("start.json"),
      read(String(script.dataset.cells)),
    ]);
    /** @type {typeof import("./live.js")} */
    const { live } = await import(new URL(start.live, base).href);
    leave = await live({ base: base.href, start, cells, button, page: String(script.dataset.cells) });
  } catch (error) {
    console.error(error);
    say(button, "Try again");
    button.title = "What the cells need could not be loaded: is the connection up?";
  }
  button.disabled = false;
}

/** @param {HTMLElement} element @param {string} words */
function say(element, words) {
  element.textContent = words;
}

// browsers load no modules and start no workers from a file
if (location.protocol.startsWith("http") && "Worker" in window && "WebAssembly" in window) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm cg-run-switch";
  button.title = "Edit and run the code cells, here in the page";
  say(button, "Run live");
  // the styles come with the editors; until then it looks like what is beside it
  button.style.cssText = "font:600 .875rem/1 var(--cg-sans);color:inherit;white-space:nowrap";
  button.addEventListener("click", () => turn(button));
  document.querySelector(".article-header-buttons")?.prepend(button);
}

export {};
