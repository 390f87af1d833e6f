// The list editor: reordering by dragging and by keyboard, checking the name as it is typed, and the preview. Details and
// entries save themselves (autosave.js). Without scripts everything but dragging and the preview beside it works.

import "./autosave.js";
import { $, $$ } from "./dom.js";
import { getText, HttpError, postForm } from "./http.js";
import { formatNumber, t } from "./i18n.js";
import { showToast } from "./toast.js";

const announce = (message) => {
  $("#list-said").textContent = message;
};

// ---- order --------------------------------------------------------------------------------------

const RELOAD_MS = 1_200;
const entries = $("[data-order]");
const items = () => $$("[data-item]", entries); // entries and sections
const order = () =>
  items()
    .map((item) => item.dataset.item)
    .join(",");
let lastRequest = Promise.resolve();
let pending = 0;

function renumber() {
  $$("[data-place]", entries).forEach((place, index) => {
    place.textContent = index + 1;
  });
}

function reportFailure(exc) {
  if (!(exc instanceof HttpError)) {
    showToast({ message: t("Couldn’t save the order. Check your connection."), kind: "wrong" });
    return;
  }
  showToast({ message: t("This list changed elsewhere. Reloading…"), kind: "note" });
  setTimeout(() => location.reload(), RELOAD_MS);
}

// Requests run one after another, each with the whole order, so the last one is what the screen shows.
function saveOrder() {
  renumber();
  const fields = { order: order() };
  pending += 1;
  entries.setAttribute("aria-busy", "true");
  lastRequest = lastRequest
    .then(() => postForm(entries.dataset.order, fields))
    .then(refreshPreview)
    .catch(reportFailure)
    .finally(() => {
      pending -= 1;
      if (!pending) entries.removeAttribute("aria-busy");
    });
}

function moveEntry(item, step) {
  const all = items();
  const place = all.indexOf(item) + step;
  if (place < 0) return announce(t("Already first"));
  if (place >= all.length) return announce(t("Already last"));
  const focused = document.activeElement;
  if (step < 0) all[place].before(item);
  else all[place].after(item);
  focused.focus();
  saveOrder();
  const counts = { position: formatNumber(place + 1), total: formatNumber(all.length) };
  announce(t("Moved to position {position} of {total}", counts));
}

function watchDragging() {
  let dragged = null;
  let before = "";
  entries.addEventListener("pointerdown", (event) => {
    const item = event.target.closest("[data-grip]")?.closest("[data-item]");
    if (item) item.draggable = true;
  });
  entries.addEventListener("dragstart", (event) => {
    dragged = event.target.closest("[data-item]");
    before = order();
    dragged.classList.add("entry-dragged");
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", dragged.dataset.item);
  });
  entries.addEventListener("dragover", (event) => {
    const over = event.target.closest("[data-item]");
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
    moveEntry(button.closest("[data-item]"), Number(button.dataset.move));
  });
  entries.addEventListener("keydown", (event) => {
    const item = event.target.closest("[data-item]");
    if (!item || !event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
    event.preventDefault();
    moveEntry(item, event.key === "ArrowUp" ? -1 : 1);
  });
  // An entry whose form is open isn't replaced by an update, so the user's typing is kept.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if ($("details[open]", event.detail.target)) event.detail.shouldSwap = false;
  });
}

// ---- preview ------------------------------------------------------------------------------------

const preview = $("[data-preview]");
let refresh = new AbortController();

// The new page replaces the old one inside the frame, so that nothing flickers and the place in it stays.
async function refreshPreview() {
  refresh.abort();
  refresh = new AbortController();
  const { signal } = refresh;
  try {
    const html = await getText(preview.getAttribute("src"), { signal });
    const frame = preview.contentDocument;
    if (signal.aborted || !frame?.body) return;
    const page = new DOMParser().parseFromString(html, "text/html");
    frame.documentElement.dataset.palette = page.documentElement.dataset.palette;
    frame.body.replaceWith(frame.importNode(page.body, true));
  } catch {
    // A newer one follows, or there is no connection: then saving has said so.
  }
}

// On narrow screens the preview takes the place of the form.
function togglePreview(event) {
  if (getComputedStyle(preview.closest(".builder-preview")).position === "sticky") return;
  event.preventDefault();
  const label = $("span", event.currentTarget);
  const { labelEdit, labelPreview = label.textContent } = event.currentTarget.dataset;
  event.currentTarget.dataset.labelPreview = labelPreview;
  const isShown = $("[data-builder]").classList.toggle("builder-previewing");
  label.textContent = isShown ? labelEdit : labelPreview;
  event.currentTarget.setAttribute("aria-pressed", isShown);
}

if (entries) watchOrder();
if (preview) {
  document.addEventListener("refract:saved", refreshPreview);
  document.addEventListener("htmx:oobAfterSwap", refreshPreview);
  $("[data-preview-toggle]").addEventListener("click", togglePreview);
}

// ---- name ---------------------------------------------------------------------------------------

const TYPING_PAUSE_MS = 300;
const slug = $("[data-slug]");
const domain = slug?.form.elements.domain;
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

// A response for a name that is no longer in the field is dropped.
async function checkSlug() {
  check = new AbortController();
  const { signal } = check;
  let html = "";
  try {
    const asked = new URLSearchParams({ slug: slug.value, domain: domain?.value ?? "" });
    html = await getText(`${slug.dataset.slug}?${asked}`, { signal });
  } catch (exc) {
    if (!(exc instanceof HttpError)) return; // aborted for a newer name, or no response: publishing reports the problem
  }
  if (!signal.aborted) $("#slug-state").innerHTML = html;
}

function onSlugInput() {
  clean(slug);
  check.abort();
  clearTimeout(pause);
  $("#slug-state").textContent = slug.value ? t("Checking…") : "";
  if (slug.value) pause = setTimeout(checkSlug, TYPING_PAUSE_MS);
}

slug?.addEventListener("input", onSlugInput);
domain?.addEventListener("change", () => {
  $(":scope > .field-prefix", slug.parentElement).textContent = `${domain.selectedOptions[0].label}/`;
  onSlugInput();
});
if (slug && slug.value !== slug.defaultValue) onSlugInput(); // the user was faster than this script
