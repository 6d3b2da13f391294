"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const text = (cell) => cell.dataset.value ?? cell.innerText.trim();

  // Switches: hide what belongs to an experiment or a section that is off. The row "total" belongs to no section.
  const form = document.querySelector(".switches");
  const show = () => {
    for (const key of ["experiment", "section"]) {
      const off = new Set(all(`input[data-key=${key}]:not(:checked)`, form).map((box) => box.value));
      for (const part of all(`[data-${key}]`, document)) part.classList.toggle(`off-${key}`, off.has(part.dataset[key]));
    }
    for (const part of all("[data-experiment], [data-section]"))
      part.classList.toggle("off", part.matches(".off-experiment, .off-section"));
  };
  form.addEventListener("change", show);
  form.addEventListener("reset", () => setTimeout(show));
  form.hidden = false;

  // Tables: a click on a heading sorts by it; numbers by value, with "-" last.
  const sort = (heading) => {
    const table = heading.closest("table");
    const column = heading.cellIndex;
    const up = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = (row) => text(row.cells[column]);
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const numeric = !Number.isNaN(Number(x)) && !Number.isNaN(Number(y));
      return (up ? 1 : -1) * (numeric ? x - y : x.localeCompare(y));
    };
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort(order));
  };
  for (const heading of all("table.sortable thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(heading));
    heading.append(button);
  }

  // Tables: copy the rows that show, as CSV with full-precision values.
  const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const csv = (table) => all("tr", table).filter((row) => !row.closest(".off") && row.cells.length)
    .map((row) => [...row.cells].map((cell) => quoted(text(cell))).join(",")).join("\n") + "\n";
  const copy = async (content) => {
    try { await navigator.clipboard.writeText(content); return true; } catch { /* not allowed here: the older way */ }
    const area = document.createElement("textarea");
    area.value = content;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  for (const table of all(".scroll > table")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy as CSV";
    button.addEventListener("click", async () => {
      button.textContent = (await copy(csv(table))) ? "Copied" : "Copying was refused";
      setTimeout(() => { button.textContent = "Copy as CSV"; }, 2000);
    });
    table.closest(".scroll").after(button);
  }

  // A link opens what it leads to, and what that is folded into.
  const open = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    for (let part = target; part; part = part.parentElement) if (part instanceof HTMLDetailsElement) part.open = true;
  };
  addEventListener("hashchange", open);
  open();
})();
