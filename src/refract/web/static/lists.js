// Lists: order by drag and by keyboard, names as they are typed, many links at once. Everything but dragging works without it.

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
const say = (message) => { $("#list-said").textContent = message; };
const toast = (message, kind) => document.dispatchEvent(new CustomEvent("refract:toast", { detail: { message, kind } }));

// ---- order -----------------------------------------------------------------------------------------------------------

const entries = $("[data-order]");
const items = () => $$("[data-entry]", entries);
let sending = Promise.resolve();
let unsent = 0;

function number() {
  items().forEach((item, index) => { $("[data-place]", item).textContent = index + 1; });
}

// One request after the other, each with the whole order: the last one decides, and it is the one on the screen.
function send() {
  const order = items().map((item) => item.dataset.entry).join(",");
  unsent += 1;
  entries.setAttribute("aria-busy", "true");
  sending = sending.then(async () => {
    const answer = await fetch(entries.dataset.order, {
      method: "POST",
      headers: { "X-CSRF-Token": $("meta[name=csrf]").content, "Content-Type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ order }),
    });
    if (answer.ok) return;
    toast("The list has changed meanwhile. Here is how it stands now.", "note");
    setTimeout(() => location.reload(), 1_200);
  }).catch(() => toast("The server did not answer: the new order is not kept.", "wrong")).finally(() => {
    unsent -= 1;
    if (!unsent) entries.removeAttribute("aria-busy");
  });
}

function move(item, by) {
  const all = items();
  const place = all.indexOf(item) + by;
  if (place < 0 || place >= all.length) return say("It is already at the end of the list.");
  const held = document.activeElement;
  if (by < 0) all[place].before(item);
  else all[place].after(item);
  held.focus();
  number();
  send();
  say(`Moved to place ${place + 1} of ${all.length}.`);
}

function startDragging() {
  let dragged = null;
  let before = "";
  entries.addEventListener("pointerdown", (event) => {
    const item = event.target.closest("[data-grip]")?.closest("[data-entry]");
    if (item) item.draggable = true;
  });
  entries.addEventListener("dragstart", (event) => {
    dragged = event.target.closest("[data-entry]");
    before = items().map((item) => item.dataset.entry).join(",");
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
    if (items().map((item) => item.dataset.entry).join(",") === before) return;
    number();
    send();
  });
}

if (entries) {
  startDragging();
  entries.addEventListener("click", (event) => {
    const button = event.target.closest("[data-move]");
    if (!button) return;
    event.preventDefault();
    move(button.closest("[data-entry]"), Number(button.dataset.move));
  });
  entries.addEventListener("keydown", (event) => {
    const item = event.target.closest("[data-entry]");
    if (!item || !event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
    event.preventDefault();
    move(item, event.key === "ArrowUp" ? -1 : 1);
  });
  // What somebody is typing stays: an entry whose form is open is not replaced by what we have found.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if ($("details[open]", event.detail.target)) event.detail.shouldSwap = false;
  });
}

// ---- names -----------------------------------------------------------------------------------------------------------

let pause;
let asking = new AbortController();

function tidy(input) {
  const clean = input.value.toLowerCase().replace(/[\s_]+/g, "-").replace(/[^a-z0-9-]/g, "");
  if (clean === input.value) return;
  const at = input.selectionStart - (input.value.length - clean.length);
  input.value = clean;
  input.setSelectionRange(at, at);
}

// Asked when the typing pauses; an answer to what is no longer in the box is dropped.
async function judge(input) {
  const { signal } = asking = new AbortController();
  try {
    const answer = await fetch(`${input.dataset.slug}?${new URLSearchParams({ slug: input.value })}`, { signal });
    const words = answer.ok ? await answer.text() : "";
    if (!signal.aborted) $("#slug-state").innerHTML = words;
  } catch {
    // Given up for a newer question, or nobody answered: publishing says what is wrong.
  }
}

function typed(input) {
  tidy(input);
  asking.abort();
  clearTimeout(pause);
  $("#slug-state").textContent = input.value ? "Checking…" : "";
  if (input.value) pause = setTimeout(judge, 300, input);
}

const slug = $("[data-slug]");
slug?.addEventListener("input", () => typed(slug));
if (slug && slug.value !== slug.defaultValue) typed(slug); // somebody was faster than this script

// ---- a published list ------------------------------------------------------------------------------------------------

$("[data-open-all]")?.addEventListener("click", () => {
  const links = $$(".shelf-link");
  if (links.length > 10 && !confirm(`Open ${links.length} tabs?`)) return;
  const opened = links.filter((link) => window.open(link.href, "_blank") !== null).length;
  if (opened < links.length) toast("Your browser did not allow all of them. Allow pop-ups for this page and try again.", "note");
  say(`Opened ${opened} of ${links.length}.`);
});
