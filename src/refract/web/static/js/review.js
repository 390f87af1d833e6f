// Shortcuts of the review queue: 1–9 toggle a tag, y all, n none, Enter saves, Backspace discards.

import { $, $$, hasModifier, isTextField } from "./dom.js";

const REFRESH_MS = 4_000;

function tickAll(checked) {
  for (const box of $$("[data-proposal]")) box.checked = checked;
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-all]")) tickAll(true);
  if (event.target.closest("[data-none]")) tickAll(false);
});

// Each of these returns whether it handled the key.

function confirmFromField(event) {
  if (event.key !== "Enter" || !event.target.matches("[data-deck-form] input:not([type=checkbox])")) return false;
  $("[data-confirm]")?.click(); // a field's own Enter would press the first button
  return true;
}

function decide(event) {
  if (!$("[data-deck-form]")) return false;
  if (/^[1-9]$/.test(event.key)) $$("[data-proposal]")[Number(event.key) - 1]?.click();
  else if (event.key === "Enter" && !event.target.closest("a, button, summary")) $("[data-confirm]").click();
  else if (event.key === "Backspace") $("[data-discard]").click();
  else return false;
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || hasModifier(event)) return;
  if ($("dialog[open]")) return;
  if (confirmFromField(event) || (!isTextField(event.target) && decide(event))) event.preventDefault();
});

// j and k open the next and the previous item of the queue.
document.addEventListener("keydown", (event) => {
  if (!["j", "k"].includes(event.key) || isTextField(event.target) || hasModifier(event)) return;
  if ($("dialog[open]")) return;
  const queue = $$("[data-queue]");
  const current = queue.findIndex((item) => item.hasAttribute("aria-current"));
  const next = queue[current + (event.key === "j" ? 1 : -1)];
  next?.click();
});

// While a page is being fetched the form is refreshed, unless the user is working in it.
setInterval(() => {
  const deck = $("[data-busy]");
  if (!deck || document.hidden || deck.contains(document.activeElement) || !window.htmx) return;
  window.htmx.ajax("GET", deck.dataset.busy, { target: "#deck", select: "#deck", swap: "outerHTML" });
}, REFRESH_MS);
