// The form of a link: whether a name is free, the page's title on offer, times in the user's own zone.

import { $, $$, onShown } from "./dom.js";
import { getJson } from "./http.js";

const TYPING_PAUSE_MS = 250;

const nameIn = (input) => input.value.trim().replace(/^\//, "");

async function checkName(input, line) {
  const name = nameIn(input);
  line.dataset.state = "";
  line.textContent = "";
  if (!name) return;
  const result = await getJson(`/api/v1/names/${encodeURIComponent(name)}`);
  if (nameIn(input) !== name) return;
  line.dataset.state = result.available ? "free" : "taken";
  line.textContent = result.available ? `/${name} is free.` : result.detail;
}

function watchName(input) {
  const line = document.getElementById(input.dataset.nameCheck);
  const check = () => checkName(input, line).catch(() => {}); // saving the form says what is wrong
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, TYPING_PAUSE_MS);
  });
  if (input.value) check();
}

// The server works in UTC; the field shows local time, and the hidden field says how far that is from UTC.
function watchTime(input) {
  const zone = $("[data-local-zone]", input.form);
  if (input.value && zone.value === "0") {
    const at = new Date(`${input.value}Z`);
    input.value = new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  }
  const storeOffset = () => {
    zone.value = String((input.value ? new Date(input.value) : new Date()).getTimezoneOffset());
  };
  storeOffset();
  input.addEventListener("input", storeOffset);
  const hint = document.getElementById(`${input.id}-hint`);
  if (hint) hint.textContent = "In your own time zone.";
}

function watchOnce(selector, within, watch) {
  for (const input of $$(`${selector}:not([data-watched])`, within)) {
    input.dataset.watched = "";
    watch(input);
  }
}

// What was found out is offered, never filled in by itself.
document.addEventListener("click", (event) => {
  const offer = event.target.closest("[data-fill]");
  const field = offer && document.getElementById(offer.dataset.fill);
  if (!field) return;
  field.value = offer.dataset.fillWith;
  field.focus();
});

onShown((within) => {
  watchOnce("[data-name-check]", within, watchName);
  watchOnce("[data-local-time]", within, watchTime);
});
