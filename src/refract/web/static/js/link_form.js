// The link form: whether a name is available, the page's title as an offer, local times.

import { $, $$, onShown } from "./dom.js";
import { getJson } from "./http.js";
import { t } from "./i18n.js";

const TYPING_PAUSE_MS = 250;

const nameIn = (input) => input.value.trim().replace(/^\//, "");

// The API is in English, so its reason decides and not its sentence.
function describeReason(reason, name) {
  if (reason === "SLUG_TAKEN") return t("/{name} is already in use. Choose another.", { name });
  if (reason === "SLUG_RESERVED") return t("/{name} is reserved. Choose another.", { name });
  return t("Use up to 50 letters A to Z, numbers, - and _, starting with a letter or number.");
}

async function checkName(input, line) {
  const name = nameIn(input);
  line.dataset.state = "";
  line.textContent = "";
  if (!name) return;
  const result = await getJson(`/api/v1/names/${encodeURIComponent(name)}`);
  if (nameIn(input) !== name) return;
  line.dataset.state = result.available ? "free" : "taken";
  line.textContent = result.available ? t("/{name} is available", { name }) : describeReason(result.reason, name);
}

function watchName(input) {
  const line = document.getElementById(input.dataset.nameCheck);
  const check = () => checkName(input, line).catch(() => {}); // saving the form reports the problem
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, TYPING_PAUSE_MS);
  });
  if (input.value) check();
}

// The server works in UTC. The field shows local time, and a hidden field holds the offset.
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
  if (hint) hint.textContent = t("Your local time.");
}

function watchOnce(selector, within, watch) {
  for (const input of $$(`${selector}:not([data-watched])`, within)) {
    input.dataset.watched = "";
    watch(input);
  }
}

// A suggested value is filled in when it is clicked, never automatically.
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
