// The review deck by keyboard: digits take a tag or leave it, y all, n none, Enter files, Backspace discards, z undoes.

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
const typing = (target) => target.closest("input:not([type=checkbox]), textarea, select") !== null;

function tick(all) {
  for (const box of $$("[data-proposal]")) box.checked = all;
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-all]")) tick(true);
  if (event.target.closest("[data-none]")) tick(false);
});

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.metaKey || event.ctrlKey || event.altKey || $("dialog[open]")) return;
  if (event.key === "Enter" && event.target.matches("[data-deck-form] input:not([type=checkbox])")) {
    event.preventDefault(); // a field's own Enter would press the first button: say which
    $("[data-confirm]")?.click();
    return;
  }
  if (typing(event.target) || !$("[data-deck-form]")) return;
  const number = /^[1-9]$/.test(event.key) ? Number(event.key) : 0;
  if (number) $$("[data-proposal]")[number - 1]?.click();
  else if (event.key === "Enter" && !event.target.closest("a, button, summary")) $("[data-confirm]").click();
  else if (event.key === "Backspace") $("[data-discard]").click();
  else return;
  event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "z" || event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || typing(event.target)) return;
  const undo = $$("#toasts [data-toast-undo]").at(-1);
  if (undo) {
    event.preventDefault();
    undo.requestSubmit();
  }
});

// j and k walk the queue like any list of rows, and show what they come to.
document.addEventListener("keydown", (event) => {
  if (!["j", "k"].includes(event.key) || typing(event.target) || event.metaKey || event.ctrlKey || event.altKey) return;
  const all = $$("[data-queue]");
  const here = all.findIndex((one) => one.hasAttribute("aria-current"));
  const next = all[here + (event.key === "j" ? 1 : -1)];
  if (next) location.assign(next.href);
});

// While a page is being read the deck looks again, unless somebody is at work in it.
setInterval(() => {
  const deck = $("[data-busy]");
  if (!deck || document.hidden || deck.contains(document.activeElement) || !window.htmx) return;
  window.htmx.ajax("GET", deck.dataset.busy, { target: "#deck", select: "#deck", swap: "outerHTML" });
}, 4_000);
