// @ts-check
// Which cell of the notebook is where in the page.

/**
 * The cells of the page that show code, each with its place and its number in the notebook.
 * @template {{place?: true, shown?: true}} Cell
 * @template Element
 * @param {Cell[]} cells @param {Element[]} elements
 * @returns {Generator<[Element, Cell, number]>}
 */
export function* placed(cells, elements) {
  const places = elements.values();
  for (const [index, cell] of cells.entries()) {
    if (!cell.place) continue;
    const { value, done } = places.next();
    if (!done && cell.shown) yield [value, cell, index];
  }
}
