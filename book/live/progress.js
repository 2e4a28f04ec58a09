// @ts-check
// How much of what Python needs has come, in bytes of the total that the build has written down.

/** @typedef {{loaded: number, total: number}} Progress */

/**
 * A `fetch` that counts.  Files that are not in `sizes` are not counted; those in `first` are part of
 * the total from the beginning; those in `early` are asked for at once, before anybody waits for them.
 * @param {typeof fetch} ask
 * @param {Record<string, number>} sizes bytes, by name
 * @param {string[]} first names
 * @param {string[]} early addresses
 * @param {(progress: Progress) => void} tell
 * @returns {typeof fetch}
 */
export function countedFetch(ask, sizes, first, early, tell) {
  /** @type {Map<string, number>} */
  const come = new Map(first.map((name) => [name, 0]));
  const total = () => [...come.keys()].reduce((sum, name) => sum + sizes[name], 0);
  const loaded = () => [...come].reduce((sum, [name, n]) => sum + Math.min(n, sizes[name]), 0);

  /** @param {Response} answer @param {string} name */
  const counted = (answer, name) => {
    if (!answer.ok || !answer.body || !(name in sizes)) return answer;
    come.set(name, 0);
    const body = answer.body.pipeThrough(
      new TransformStream({
        transform(chunk, controller) {
          come.set(name, (come.get(name) ?? 0) + chunk.byteLength);
          tell({ loaded: loaded(), total: total() });
          controller.enqueue(chunk);
        },
      }),
    );
    return new Response(body, { status: answer.status, headers: answer.headers });
  };
  const named = (/** @type {string} */ address) => address.split("/").at(-1) ?? "";
  const waiting = new Map(
    early.map((address) => [
      address,
      ask(address).then((answer) => counted(answer, named(address))),
    ]),
  );
  for (const each of waiting.values()) each.catch(() => {}); // whoever asks for it will hear
  return async (what, how) => {
    const address = String(what instanceof Request ? what.url : what);
    const begun = waiting.get(address);
    waiting.delete(address);
    return begun ?? counted(await ask(what, how), named(address));
  };
}

/** Bytes as people say them, `3.2 of 16.8 MB`. @param {Progress} progress */
export const inMegabytes = ({ loaded, total }) =>
  `${(loaded / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`;
