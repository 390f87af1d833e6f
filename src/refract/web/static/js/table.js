// Tables of links: selection, bulk actions, and shortcuts on a row.

import { $, $$, onShown } from "./dom.js";
import { formatNumber } from "./i18n.js";

const ticks = () => $$("[data-tick]");
let lastTick = null;

function tickAll(checked) {
  for (const tick of ticks()) tick.checked = checked;
}

function showBulkBar() {
  const bar = $("[data-bulk-bar]");
  if (!bar) return;
  const count = ticks().filter((tick) => tick.checked).length;
  bar.classList.toggle("bulk-bar-shown", count > 0);
  $("[data-bulk-count]", bar).textContent = formatNumber(count);
  const all = $("[data-bulk-all]");
  if (all) {
    all.checked = count > 0 && count === ticks().length;
    all.indeterminate = count > 0 && count < ticks().length;
  }
  for (const tick of ticks()) tick.closest("[data-row]").classList.toggle("row-ticked", tick.checked);
}

// Shift selects everything between the last selected row and this one.
function tickRange(tick) {
  const all = ticks();
  const [from, to] = [all.indexOf(lastTick), all.indexOf(tick)].sort((a, b) => a - b);
  for (const between of all.slice(from, to + 1)) between.checked = tick.checked;
}

document.addEventListener("click", (event) => {
  const tick = event.target.closest("[data-tick]");
  if (tick && event.shiftKey && lastTick?.isConnected) tickRange(tick);
  if (tick) lastTick = tick;
  if (event.target.closest("[data-bulk-clear]")) tickAll(false);
  showBulkBar();
});

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-bulk-all]")) tickAll(event.target.checked);
  showBulkBar();
});

function deleteRow(row) {
  for (const tick of ticks()) tick.checked = tick.closest("[data-row]") === row;
  $("[data-bulk] [name=act][value=delete]").click();
}

document.addEventListener("refract:row-key", (event) => {
  const { key, row } = event.detail;
  const tick = $("[data-tick]", row);
  const button = { x: tick, e: $("[data-row-edit]", row), c: $("[data-copy]", row) }[key];
  if (button) button.click();
  else if (key === "#" && tick) deleteRow(row);
  else return;
  event.preventDefault();
});

onShown(showBulkBar);
