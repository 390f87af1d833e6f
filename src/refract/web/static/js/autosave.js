// Forms that save themselves: changes are sent after a pause in typing, and before another form leaves the page.

import { $, $$ } from "./dom.js";
import { forgetDraft } from "./drafts.js";
import { reportFailure } from "./feedback.js";
import { postForm } from "./http.js";
import { t } from "./i18n.js";

const TYPING_PAUSE_MS = 600;
const EXCLUDED = "[data-no-autosave]"; // decided when the form is sent
const dirty = new Map(); // form → timer
let lastRequest = Promise.resolve();

function show(form, message) {
  const state = $("[data-autosave-state]", form) ?? $(`[data-autosave-state="${form.id}"]`);
  if (state) state.textContent = message;
}

function fieldsOf(form) {
  const fields = new FormData(form);
  for (const field of form.elements) if (field.matches(EXCLUDED)) fields.delete(field.name);
  return fields;
}

// What was saved is what the next change is compared with.
function settle(form, fields) {
  for (const before of $$("[data-before]", form)) before.value = fields.get(before.dataset.before) ?? "";
  show(form, t("Saved"));
  if (!dirty.has(form)) forgetDraft(form);
  form.dispatchEvent(new CustomEvent("refract:saved", { bubbles: true }));
}

function save(form, options) {
  clearTimeout(dirty.get(form));
  dirty.delete(form);
  const fields = fieldsOf(form);
  show(form, t("Saving…"));
  // One after another, so that the last state of the form is the one that stays.
  lastRequest = lastRequest
    .then(() => postForm(form.getAttribute("action"), fields, { headers: { "X-Autosave": "1" }, ...options }))
    .then(() => settle(form, fields))
    .catch((exc) => {
      show(form, t("Not saved"));
      reportFailure(exc);
      throw exc;
    });
  const result = lastRequest;
  lastRequest = lastRequest.catch(() => {});
  return result;
}

/** Send all changes that are still waiting. */
export const saveAll = (options) => Promise.all([...dirty.keys()].map((form) => save(form, options)));

function onInput({ target }) {
  const form = target.form;
  if (!form?.matches("[data-autosave]") || target.matches(EXCLUDED)) return;
  clearTimeout(dirty.get(form));
  show(form, "");
  dirty.set(
    form,
    setTimeout(() => save(form).catch(() => {}), TYPING_PAUSE_MS),
  );
}

// Another form of the page waits until everything is saved; a form that saves itself contains its own changes.
async function onSubmit(event) {
  const { target, submitter } = event;
  if (target.matches("[data-autosave]")) {
    clearTimeout(dirty.get(target));
    dirty.delete(target);
  }
  if (!dirty.size || target.method === "dialog") return;
  event.preventDefault();
  event.stopImmediatePropagation();
  try {
    await saveAll();
    target.requestSubmit(submitter);
  } catch {
    // The failure was shown; the page stays as it is.
  }
}

document.addEventListener("input", onInput);
document.addEventListener("submit", onSubmit, { capture: true });
addEventListener("pagehide", () => saveAll({ keepalive: true }).catch(() => {}));
