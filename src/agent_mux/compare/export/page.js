"use strict";
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement, row = head.parentElement, body = head.closest("table").tBodies[0];
    const at = [...row.children].indexOf(head);
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of row.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const value = (line) => line.children[at].dataset.value ?? line.children[at].textContent;
    const compare = (a, b) => {
      const x = value(a), y = value(b);
      if (x === "" || y === "") return x === y ? 0 : x === "" ? 1 : -1; // unknown is always last
      const difference = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
      return sign * difference;
    };
    body.append(...[...body.rows].sort(compare));
  });
}
const text = document.getElementById("filter"), verdict = document.getElementById("verdict");
function filter() {
  let shown = 0;
  for (const trial of document.querySelectorAll("details.trial")) {
    const matches = trial.querySelector("summary").textContent.toLowerCase().includes(text.value.toLowerCase());
    trial.hidden = !matches || (verdict.value !== "" && trial.dataset.verdict !== verdict.value);
    shown += trial.hidden ? 0 : 1;
  }
  document.getElementById("shown").textContent = shown + " shown";
}
text.addEventListener("input", filter);
verdict.addEventListener("change", filter);
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const part of opened) part.open = true;
});
addEventListener("afterprint", () => { for (const part of opened) part.open = false; });
