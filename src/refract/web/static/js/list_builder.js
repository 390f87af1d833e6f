// The list editor: reordering by dragging and by keyboard, and checking the name as it is typed.
// Without scripts everything but dragging works.

import { $, $$ } from "./dom.js";
import { getText, HttpError, postForm } from "./http.js";
import { showToast } from "./toast.js";

const announce = (message) => {
  $("#list-said").textContent = message;
};

// ---- order --------------------------------------------------------------------------------------

const RELOAD_MS = 1_200;
const entries = $("[data-order]");
const items = () => $$("[data-entry]", entries);
const order = () =>
  items()
    .map((item) => item.dataset.entry)
    .join(",");
let lastRequest = Promise.resolve();
let pending = 0;

function renumber() {
  items().forEach((item, index) => {
    $("[data-place]", item).textContent = index + 1;
  });
}

function reportFailure(exc) {
  if (!(exc instanceof HttpError)) {
    showToast({ message: "The server did not answer: the new order is not kept.", kind: "wrong" });
    return;
  }
  showToast({ message: "The list has changed meanwhile. Here is how it stands now.", kind: "note" });
  setTimeout(() => location.reload(), RELOAD_MS);
}

// One request after the other, each with the whole order: the last one decides, and it is the one on the screen.
function saveOrder() {
  renumber();
  const fields = { order: order() };
  pending += 1;
  entries.setAttribute("aria-busy", "true");
  lastRequest = lastRequest
    .then(() => postForm(entries.dataset.order, fields))
    .catch(reportFailure)
    .finally(() => {
      pending -= 1;
      if (!pending) entries.removeAttribute("aria-busy");
    });
}

function moveEntry(item, step) {
  const all = items();
  const place = all.indexOf(item) + step;
  if (place < 0 || place >= all.length) return announce("It is already at the end of the list.");
  const focused = document.activeElement;
  if (step < 0) all[place].before(item);
  else all[place].after(item);
  focused.focus();
  saveOrder();
  announce(`Moved to place ${place + 1} of ${all.length}.`);
}

function watchDragging() {
  let dragged = null;
  let before = "";
  entries.addEventListener("pointerdown", (event) => {
    const item = event.target.closest("[data-grip]")?.closest("[data-entry]");
    if (item) item.draggable = true;
  });
  entries.addEventListener("dragstart", (event) => {
    dragged = event.target.closest("[data-entry]");
    before = order();
    dragged.classList.add("entry-dragged");
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", dragged.dataset.entry);
  });
  entries.addEventListener("dragover", (event) => {
    const over = event.target.closest("[data-entry]");
    if (!dragged) return;
    event.preventDefault();
    if (!over || over === dragged) return;
    const { top, height } = over.getBoundingClientRect();
    if (event.clientY < top + height / 2) over.before(dragged);
    else over.after(dragged);
  });
  entries.addEventListener("dragend", () => {
    dragged.draggable = false;
    dragged.classList.remove("entry-dragged");
    dragged = null;
    if (order() !== before) saveOrder();
  });
}

function watchOrder() {
  watchDragging();
  entries.addEventListener("click", (event) => {
    const button = event.target.closest("[data-move]");
    if (!button) return;
    event.preventDefault();
    moveEntry(button.closest("[data-entry]"), Number(button.dataset.move));
  });
  entries.addEventListener("keydown", (event) => {
    const item = event.target.closest("[data-entry]");
    if (!item || !event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
    event.preventDefault();
    moveEntry(item, event.key === "ArrowUp" ? -1 : 1);
  });
  // What the user is typing stays: an entry whose form is open is not replaced by what the server found out.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if ($("details[open]", event.detail.target)) event.detail.shouldSwap = false;
  });
}

if (entries) watchOrder();

// ---- name ---------------------------------------------------------------------------------------

const TYPING_PAUSE_MS = 300;
const slug = $("[data-slug]");
let pause = 0;
let check = new AbortController();

function clean(input) {
  const value = input.value
    .toLowerCase()
    .replace(/[\s_]+/g, "-")
    .replace(/[^a-z0-9-]/g, "");
  if (value === input.value) return;
  const caret = input.selectionStart - (input.value.length - value.length);
  input.value = value;
  input.setSelectionRange(caret, caret);
}

// An answer to a name that is no longer in the box is dropped.
async function checkSlug() {
  check = new AbortController();
  const { signal } = check;
  let html = "";
  try {
    html = await getText(`${slug.dataset.slug}?${new URLSearchParams({ slug: slug.value })}`, { signal });
  } catch (exc) {
    if (!(exc instanceof HttpError)) return; // given up for a newer name, or no answer: publishing says what is wrong
  }
  if (!signal.aborted) $("#slug-state").innerHTML = html;
}

function onSlugInput() {
  clean(slug);
  check.abort();
  clearTimeout(pause);
  $("#slug-state").textContent = slug.value ? "Checking…" : "";
  if (slug.value) pause = setTimeout(checkSlug, TYPING_PAUSE_MS);
}

slug?.addEventListener("input", onSlugInput);
if (slug && slug.value !== slug.defaultValue) onSlugInput(); // the user was faster than this script
