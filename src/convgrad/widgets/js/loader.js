// @ts-check
// The static page's loader, a classic asynchronous script in the head of pages with widgets.  It
// stands in the folder of the modules, fetches those that its tag names (of the page's first
// widgets) while the page is still being read, and mounts the widgets as soon as the page has been:
// before deferred scripts run.
// In a page of one file it stands in the page, and so do the modules.

import { mountAll } from "./static_page.js";

const tag = /** @type {HTMLScriptElement} */ (document.currentScript);
const folder = new URL(".", tag.src || location.href);

/** @type {Map<string, Promise<any>>} one import a module, however many widgets use it */
const modules = new Map();

/** @param {string} name a file name in the loader's folder */
function load(name) {
  const there = modules.get(name) ?? inPage(name) ?? (folder.protocol === "file:" ? unpack(name) : fetchModule(name));
  modules.set(name, there);
  return there;
}

/** @param {string} name */
const fetchModule = (name) => import(new URL(name, folder).href);

/** A module whose text is in the page. @param {string} name */
function inPage(name) {
  const text = document.querySelector(`script[data-module="${name}"]`)?.textContent;
  return text ? importText(JSON.parse(text)) : undefined;
}

/** @param {string} text */
const importText = (text) => import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));

/**
 * From file:// browsers import no modules, but they run scripts: beside every module lies one that
 * hands over its text.
 * @param {string} name
 */
async function unpack(name) {
  /** @type {string} */
  const text = await new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(name.replace(/js$/, "packed.js"), folder).href;
    script.onerror = () => reject(new Error(`${name} is not there`));
    // `convgradModule` of the script that runs now: scripts run one after the other
    script.onload = () => resolve(handed);
    document.head.append(script);
  });
  return importText(text);
}

let handed = "";
Object.assign(globalThis, { convgradModule: (/** @type {string} */ text) => (handed = text) });

const shared = tag.dataset.tools;
const mountThem = () => mountAll(document, load, { tools: shared ? () => load(shared) : undefined });
for (const name of tag.dataset.modules?.split(" ") ?? []) load(name).catch(() => {});
if (document.readyState === "loading") {
  // the first change is to "interactive": all is read, deferred scripts have not run yet
  document.addEventListener("readystatechange", mountThem, { once: true });
} else mountThem();
