// Messages at the edge of the page, some with an undo button, that disappear after a while.
// The server shows one by the response header HX-Trigger: {"refract:toast": {message, kind, undo}}.

import { $, $$, emit } from "./dom.js";

const NEXT = "refract-toast";
const SHORT_MS = 6_000;
const UNDO_MS = 20_000;
const ICONS = { done: "circle-check", note: "info", wrong: "circle-alert" };

/** Let a toast close by its button or after a while. It stays while the pointer or the focus is on it. */
export function watchToast(toast) {
  const undo = $("[data-toast-undo]", toast);
  let timer;
  const close = () => toast.remove();
  const start = () => {
    timer = setTimeout(close, undo ? UNDO_MS : SHORT_MS);
  };
  const stop = () => clearTimeout(timer);
  $("[data-toast-close]", toast).addEventListener("click", close);
  toast.addEventListener("pointerenter", stop);
  toast.addEventListener("pointerleave", start);
  toast.addEventListener("focusin", stop);
  toast.addEventListener("focusout", start);
  // A page that can undo without a reload prevents the default of this event.
  undo?.addEventListener("submit", (event) => {
    if (emit("refract:undo", { action: undo.action }, undo)) return;
    event.preventDefault();
    close();
  });
  if (!toast.classList.contains("toast-wrong")) start();
}

const isShown = (message) => $$("#toasts .toast-wrong [data-toast-message]").some((p) => p.textContent === message);

/**
 * Show a message. `kind` is done, note or wrong; `undo` is the address of an undo form.
 *
 * A failure that repeats itself, such as that of a poll, is shown once.
 */
export function showToast({ message, kind = "done", undo = null }) {
  if (kind === "wrong" && isShown(message)) return;
  const toast = $("#toast-template").content.firstElementChild.cloneNode(true);
  toast.classList.replace("toast-done", `toast-${kind}`);
  $("[data-toast-message]", toast).textContent = message;
  const shape = $("use", toast);
  shape.setAttribute("href", shape.getAttribute("href").replace(/#.*/, `#${ICONS[kind]}`));
  if (undo) $("[data-toast-undo]", toast).action = undo;
  else $("[data-toast-undo]", toast).remove();
  $("#toasts").append(toast);
  watchToast(toast);
}

/** Show a message on the page that is opened next. */
export function showToastNext(toast) {
  try {
    sessionStorage.setItem(NEXT, JSON.stringify(toast));
  } catch {
    // Storage is blocked: the next page shows the result itself.
  }
}

function showKept() {
  try {
    const kept = sessionStorage.getItem(NEXT);
    sessionStorage.removeItem(NEXT);
    if (kept) showToast(JSON.parse(kept));
  } catch {
    // Nothing was kept.
  }
}

/** Show the toasts of another page here. */
export function adoptToasts(page) {
  for (const toast of $$("#toasts [data-toast]", page)) {
    const adopted = document.importNode(toast, true);
    $("#toasts").append(adopted);
    watchToast(adopted);
  }
}

document.addEventListener("refract:toast", (event) => showToast(event.detail));
$$("[data-toast]").forEach(watchToast);
showKept();
