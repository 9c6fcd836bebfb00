"use strict";
// Sorting and searching the table of rows. All rows are in the page; this only orders and hides them.
(() => {
  const table = document.getElementById("candidates");
  const body = table.tBodies[0];
  const atFirst = Number(table.dataset.atFirst);
  const step = 25;
  const rows = Array.from(body.rows, (row) => {
    const cells = Object.fromEntries(Array.from(row.cells, (cell) => [cell.dataset.key, cell]));
    return { row, cells, text: row.textContent.toLowerCase() };
  });
  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  const more = document.getElementById("more");
  const all = document.getElementById("all");
  let limit = atFirst;

  const refresh = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const { row, text } of rows) {
      const fits = words.every((word) => text.includes(word));
      found += fits;
      row.hidden = !fits || found > limit;
    }
    shown.textContent = `${Math.min(found, limit)} of ${found} ${words.length ? "matching " : ""}rows shown`;
    more.hidden = all.hidden = found <= limit;
  };

  const valueOf = (cells, key, kind) => {
    const cell = cells[key];
    if (kind === "text") return cell.textContent.trim();
    return cell.dataset.value === "" ? NaN : Number(cell.dataset.value);
  };
  const compare = (a, b) => {
    if (typeof a === "string") return a.localeCompare(b, undefined, { numeric: true });
    return Number.isNaN(a) - Number.isNaN(b) || a - b;
  };
  const sortBy = (button) => {
    const header = button.closest("th");
    const { sort: key, kind } = button.dataset;
    // scores start with the highest, all other columns with the lowest
    const first = key === "score" ? "descending" : "ascending";
    const second = first === "ascending" ? "descending" : "ascending";
    const order = header.getAttribute("aria-sort") === first ? second : first;
    for (const other of table.tHead.rows[0].cells) {
      if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    }
    header.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    rows.sort((a, b) => sign * compare(valueOf(a.cells, key, kind), valueOf(b.cells, key, kind)));
    body.append(...rows.map(({ row }) => row));
    refresh();
  };

  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-sort]");
    if (button) sortBy(button);
  });
  search.addEventListener("input", () => { limit = atFirst; refresh(); });
  more.addEventListener("click", () => { limit += step; refresh(); });
  all.addEventListener("click", () => { limit = rows.length; refresh(); });
  refresh();
})();
