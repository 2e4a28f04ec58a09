// @ts-check
// Filters above the list of exhibits.  What can be chosen is read from the table itself, and the
// choice is kept in the page's address, ?gradient=weight&kind=precision, behind which the widgets
// keep their own after the #.  Without this file the table is there, whole.

(() => {
  /** @typedef {{key: string, select: HTMLSelectElement, values: string[][]}} Filter */

  /** A box of the page with some text or elements in it.
   * @template {keyof HTMLElementTagNameMap} Tag
   * @param {Tag} tag @param {Record<string, string>} attributes @param {...(Node | string)} inside */
  function made(tag, attributes, ...inside) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...inside);
    return element;
  }

  /** @param {Element} museum */
  function equip(museum) {
    const table = museum.querySelector("table");
    if (!table) return;
    speakAsTable(table);
    const rows = [...table.tBodies[0].rows];
    const heads = [...(table.tHead?.rows[0].cells ?? [])];
    const filtered = heads.filter((head) => head.classList.contains("cg-filter"));
    const filters = filtered.map((head) => filterOf(head, rows));
    const count = made("p", { role: "status", class: "cg-museum-count" });
    const all = made("button", { type: "button" }, "Show all");
    const fields = filters.map(({ key, select }, k) => {
      select.id = `cg-museum-${key}`;
      return made("div", {}, made("label", { for: select.id }, filtered[k].textContent ?? ""), select);
    });
    const form = made("div", { role: "group", "aria-label": "Filter the list", class: "cg-museum-filters" });
    form.append(...fields, all);

    /** Whether a row passes the filters, one of them left out. @param {number} k @param {Filter} [without] */
    const passes = (k, without) =>
      filters.every((each) => each === without || !each.select.value || each.values[k].includes(each.select.value));

    const show = () => {
      rows.forEach((row, k) => (row.hidden = !passes(k)));
      for (const filter of filters) {
        for (const option of filter.select.options) {
          if (!option.value) continue;
          const found = rows.filter((_, k) => passes(k, filter) && filter.values[k].includes(option.value)).length;
          option.textContent = `${option.value} (${found})`;
          option.disabled = !found && !option.selected; // nothing to see behind it
        }
      }
      const shown = rows.filter((row) => !row.hidden).length;
      count.textContent = shown === rows.length ? `${shown} exhibits` : `${shown} of ${rows.length} exhibits`;
      all.disabled = filters.every(({ select }) => !select.value);
    };
    const changed = () => {
      show();
      remember(filters);
    };
    recall(filters);
    for (const { select } of filters) select.addEventListener("change", changed);
    all.addEventListener("click", () => {
      for (const { select } of filters) select.value = "";
      filters[0].select.focus(); // the button is off now, and would take the focus with it
      changed();
    });
    museum.prepend(form, count);
    show();
  }

  /** The choices of one column. @param {HTMLTableCellElement} head @param {HTMLTableRowElement[]} rows @returns {Filter} */
  function filterOf(head, rows) {
    const values = rows.map((row) => (row.cells[head.cellIndex].textContent ?? "").trim().split(", "));
    const select = made("select", {}, made("option", { value: "" }, "all"));
    for (const value of new Set(values.flat())) select.append(made("option", { value }, value));
    return { key: (head.textContent ?? "").trim().toLowerCase().replaceAll(" ", "-"), select, values };
  }

  /** @param {Filter[]} filters */
  function recall(filters) {
    const asked = new URLSearchParams(location.search);
    for (const { key, select } of filters) {
      const value = asked.get(key) ?? "";
      if ([...select.options].some((option) => option.value === value)) select.value = value;
    }
  }

  /** @param {Filter[]} filters */
  function remember(filters) {
    const address = new URL(location.href);
    for (const { key, select } of filters) {
      if (select.value) address.searchParams.set(key, select.value);
      else address.searchParams.delete(key);
    }
    try {
      history.replaceState(history.state, "", address);
    } catch {
      // a page opened from a folder may not change its address
    }
  }

  /** On a phone the rows are no longer set as a table; they go on being read as one. @param {HTMLTableElement} table */
  function speakAsTable(table) {
    table.setAttribute("role", "table");
    for (const part of table.querySelectorAll("thead, tbody")) part.setAttribute("role", "rowgroup");
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      for (const cell of row.cells) cell.setAttribute("role", cell.tagName === "TH" ? "columnheader" : "cell");
    }
  }

  const start = () => document.querySelectorAll(".cg-museum").forEach(equip);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
