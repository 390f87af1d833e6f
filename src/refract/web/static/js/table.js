// Tables of links and lists of items: selection, bulk actions, and shortcuts on a row.

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

// Where the keyboard goes on after the rows have been shown anew.
let focusAfter = null;

// The bulk form acts on one row: it has the undo, the toast and the token.
function actOnRow(row, button) {
  for (const tick of ticks()) tick.checked = tick.closest("[data-row]") === row;
  focusAfter = $$("[data-row]").indexOf(row);
  button.click();
}

document.addEventListener("htmx:afterSettle", () => {
  if (focusAfter === null) return;
  const rows = $$("[data-row]");
  const next = rows[Math.min(focusAfter, rows.length - 1)];
  if (next) $("[data-row-open]", next)?.focus();
  focusAfter = null;
});

// By key: the bulk action that a row names in `data-states` once it is done, and the one that reverses it.
const STATE_KEYS = { r: ["unread", "read"], s: ["favorite", "unfavorite"], a: ["archive", "unarchive"] };

function stateButton(row, key) {
  if (!(key in STATE_KEYS)) return null;
  const [done, reversed] = STATE_KEYS[key];
  const isDone = (row.dataset.states ?? "").split(" ").includes(done);
  return $(`[data-bulk] [name=act][value=${isDone ? reversed : done}]`);
}

// Shift+J selects the row and goes on: a range grows by every press.
function tickAndMove(row, step) {
  const rows = $$("[data-row]");
  const next = rows[rows.indexOf(row) + step];
  for (const each of [row, next]) if (each && $("[data-tick]", each)) $("[data-tick]", each).checked = true;
  $("[data-row-open]", next ?? row).focus();
  showBulkBar();
}

document.addEventListener("refract:row-key", (event) => {
  const { key, row } = event.detail;
  const tick = $("[data-tick]", row);
  const removeButton = $("[data-bulk-remove]");
  const button = { x: tick, e: $("[data-row-edit]", row), c: $("[data-copy]", row) }[key];
  const changeState = tick && stateButton(row, key);
  if (button) button.click();
  else if (changeState) actOnRow(row, changeState);
  else if (key === "#" && tick && removeButton) actOnRow(row, removeButton);
  else if (key === "J" && tick) tickAndMove(row, 1);
  else if (key === "K" && tick) tickAndMove(row, -1);
  else return;
  event.preventDefault();
});

// ---- the menu of a row --------------------------------------------------------------------------

function closeRowMenu({ focus = false } = {}) {
  const menu = $(".row-menu");
  const opener = menu?.parentElement && $("[data-row-menu]", menu.parentElement);
  menu?.remove();
  opener?.setAttribute("aria-expanded", "false");
  if (focus) opener?.focus();
}

function openRowMenu(opener) {
  const row = opener.closest("[data-row]");
  const menu = $("#row-menu").content.firstElementChild.cloneNode(true);
  const disabled = row.dataset.state === "disabled";
  $("[data-menu=open]", menu).href = $("[data-row-open]", row).href;
  $(`[data-menu=${disabled ? "disable" : "enable"}]`, menu).remove();
  opener.after(menu);
  opener.setAttribute("aria-expanded", "true");
  if (menu.getBoundingClientRect().bottom > window.innerHeight) menu.classList.add("row-menu-up");
  $("[role=menuitem]", menu).focus();
}

function runMenuItem(item) {
  const row = item.closest("[data-row]");
  const { menu: action } = item.dataset;
  closeRowMenu({ focus: true });
  if (action === "edit") $("[data-row-edit]", row).click();
  else if (action === "copy") $("[data-copy]", row).click();
  else if (action !== "open") actOnRow(row, $(`[data-bulk] [name=act][value=${action}]`));
}

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-row-menu]");
  const item = event.target.closest("[data-menu]");
  if (item) return runMenuItem(item);
  const wasOpen = opener?.nextElementSibling !== null && opener?.nextElementSibling !== undefined;
  closeRowMenu();
  if (!opener || !$("#row-menu") || event.metaKey || event.ctrlKey) return;
  event.preventDefault();
  if (!wasOpen) openRowMenu(opener);
});

document.addEventListener("keydown", (event) => {
  const menu = event.target.closest?.(".row-menu");
  if (!menu) return;
  const items = $$("[role=menuitem]", menu);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) items[(items.indexOf(event.target) + step + items.length) % items.length].focus();
  else if (event.key === "Escape") closeRowMenu({ focus: true });
  else return;
  event.preventDefault();
  event.stopPropagation();
});

// ---- menus of the filter bar --------------------------------------------------------------------

// Typing narrows the tags that are listed; Enter filters by a tag that is not among them.
document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-menu-search]")) return;
  const typed = event.target.value.trim().toLowerCase();
  for (const item of $$("li", event.target.closest(".menu-panel"))) {
    item.hidden = !item.textContent.toLowerCase().includes(typed);
  }
});

onShown(showBulkBar);
