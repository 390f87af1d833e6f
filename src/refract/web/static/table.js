// Tables of links: ticks, what is done to many, and letters on a row.

const $ = (selector, within = document) => within.querySelector(selector);
const ticks = () => [...document.querySelectorAll("[data-tick]")];
let last = null;

function show() {
  const bar = $("[data-bulk-bar]");
  if (!bar) return;
  const number = ticks().filter((tick) => tick.checked).length;
  bar.classList.toggle("bulk-bar-shown", number > 0);
  $("[data-bulk-count]", bar).textContent = number;
  const all = $("[data-bulk-all]");
  if (all) {
    all.checked = number > 0 && number === ticks().length;
    all.indeterminate = number > 0 && number < ticks().length;
  }
  for (const tick of ticks()) tick.closest("[data-row]").classList.toggle("row-ticked", tick.checked);
}

document.addEventListener("click", (event) => {
  const tick = event.target.closest("[data-tick]");
  if (tick && event.shiftKey && last && last.isConnected) {
    const all = ticks();
    const [from, to] = [all.indexOf(last), all.indexOf(tick)].sort((a, b) => a - b);
    for (const one of all.slice(from, to + 1)) one.checked = tick.checked;
  }
  if (tick) last = tick;
  if (event.target.closest("[data-bulk-clear]")) for (const one of ticks()) one.checked = false;
  show();
});

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-bulk-all]")) for (const one of ticks()) one.checked = event.target.checked;
  show();
});

document.addEventListener("refract:row-key", (event) => {
  const { key, row } = event.detail;
  const press = (selector) => {
    const found = $(selector, row);
    found?.click();
    return found !== null;
  };
  if (key === "x" && $("[data-tick]", row)) $("[data-tick]", row).click();
  else if (key === "e" && press("[data-row-edit]")) return event.preventDefault();
  else if (key === "c" && press("[data-copy]")) return event.preventDefault();
  else if (key === "#" && $("[data-tick]", row)) {
    for (const one of ticks()) one.checked = one.closest("[data-row]") === row;
    $("[data-bulk] [name=act][value=delete]").click();
  } else return;
  event.preventDefault();
});

document.addEventListener("refract:shown", show);
show();
