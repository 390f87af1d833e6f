// Keeps what is typed into a form in this browser until the form is sent. Never passwords, secrets or files; the
// drafts of a user are erased at sign-out.

import { $, $$, onShown } from "./dom.js";
import { t } from "./i18n.js";
import { showToast } from "./toast.js";

const PREFIX = "refract-draft:";
const SENT = "refract-sent";
const MAX_AGE_MS = 30 * 86_400_000;
const TYPING_PAUSE_MS = 250;
const FORMS = "form[method=post]:not([data-no-draft], [data-omnibox], [data-bulk], [data-merge], .confirm-panel)";
const SKIPPED_TYPES = ["hidden", "password", "file", "submit", "button"];

const user = $("meta[name=user]")?.content ?? "";
const keyOf = (form) => `${PREFIX}${user}:${new URL(form.getAttribute("action"), location.href).pathname}`;
const fieldsOf = (form) =>
  [...form.elements].filter(
    (field) => field.name && field.matches("input, textarea, select") && !SKIPPED_TYPES.includes(field.type),
  );
const isText = (field) => field.matches("textarea, input:not([type=checkbox], [type=radio])");
const isTick = (field) => field.matches("[type=checkbox], [type=radio]");
const nameOf = (field) => (isTick(field) ? `${field.name}=${field.value}` : field.name);
const currentOf = (field) => (isTick(field) ? field.checked : field.value);
const defaultOf = (field) => {
  if (isTick(field)) return field.defaultChecked;
  if (field.matches("select")) return ($("option[selected]", field) ?? field.options[0])?.value ?? "";
  return field.defaultValue;
};

// Storage may be blocked or full: then nothing is kept.
function attempt(action) {
  try {
    return action();
  } catch {
    return null;
  }
}

function keep(form) {
  const changed = fieldsOf(form).filter((field) => currentOf(field) !== defaultOf(field));
  const fields = Object.fromEntries(changed.map((field) => [nameOf(field), [defaultOf(field), currentOf(field)]]));
  attempt(() => {
    if (changed.length) localStorage.setItem(keyOf(form), JSON.stringify({ at: Date.now(), fields }));
    else localStorage.removeItem(keyOf(form));
  });
}

/** Forget the draft of a form that was sent or given up. */
export const forgetDraft = (form) => attempt(() => localStorage.removeItem(keyOf(form)));

// A field that the server has changed meanwhile, or that was rendered with an error, is left alone.
function restore(form) {
  const draft = attempt(() => JSON.parse(localStorage.getItem(keyOf(form))));
  if (!draft) return false;
  let restored = false;
  for (const field of fieldsOf(form)) {
    const [before, typed] = draft.fields[nameOf(field)] ?? [];
    if (typed === undefined || before !== defaultOf(field) || currentOf(field) !== before) continue;
    if (isTick(field)) field.checked = typed;
    else field.value = typed;
    field.closest("details")?.setAttribute("open", "");
    field.dispatchEvent(new Event("input", { bubbles: true }));
    restored ||= isText(field);
  }
  return restored;
}

function draftKeys() {
  return attempt(() => Object.keys(localStorage).filter((key) => key.startsWith(PREFIX))) ?? [];
}

function eraseAll() {
  for (const key of draftKeys()) attempt(() => localStorage.removeItem(key));
}

function eraseOld() {
  for (const key of draftKeys()) {
    const at = attempt(() => JSON.parse(localStorage.getItem(key)).at) ?? 0;
    if (Date.now() - at > MAX_AGE_MS) attempt(() => localStorage.removeItem(key));
  }
}

// A form that was sent is done when another page of ours is shown: not an error, and not the same page once more.
function settleSent() {
  const key = attempt(() => sessionStorage.getItem(SENT));
  attempt(() => sessionStorage.removeItem(SENT));
  const arrived = performance.getEntriesByType("navigation")[0]?.type === "navigate";
  if (key && arrived && !$("[data-problem]")) attempt(() => localStorage.removeItem(key));
}

let pause = 0;
document.addEventListener("input", ({ target, isTrusted }) => {
  const form = target.form;
  if (!isTrusted || !form?.matches(FORMS)) return;
  clearTimeout(pause);
  pause = setTimeout(() => keep(form), TYPING_PAUSE_MS);
});
document.addEventListener("change", ({ target }) => {
  if (target.form?.matches(FORMS)) keep(target.form);
});
document.addEventListener("submit", ({ target, defaultPrevented }) => {
  if (new URL(target.action, location.href).pathname === "/auth/sign-out") eraseAll();
  if (defaultPrevented || !target.matches(FORMS)) return;
  keep(target);
  attempt(() => sessionStorage.setItem(SENT, keyOf(target)));
});
document.addEventListener("htmx:afterRequest", ({ detail }) => {
  if (detail.successful && detail.elt.matches(FORMS)) forgetDraft(detail.elt);
});
document.addEventListener("click", ({ target }) => {
  const cancel = target.closest("[data-drawer-close]");
  if (cancel) forgetDraft(cancel.closest("form"));
});

settleSent();
eraseOld();
if ($("[data-signed-out]")) eraseAll();
onShown((within) => {
  const restored = $$(FORMS, within).filter(restore);
  if (restored.length) showToast({ message: t("Restored what you typed"), kind: "note" });
});
