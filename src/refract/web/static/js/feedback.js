// Feedback: a failed partial update is never silent, and a message is never off-screen.

import { $, $$, emit, onShown } from "./dom.js";
import { csrfToken, HttpError, parseHtml, signInAndReturn } from "./http.js";
import { t } from "./i18n.js";
import { adoptToasts, showToast } from "./toast.js";

const RERENDERED = [409, 422]; // a form is rendered again, with what is wrong

/** Show why a request failed. A session that has ended leads to the sign-in page and back. */
export function reportFailure(exc) {
  if (exc.name === "AbortError") return;
  if (exc instanceof HttpError) showFailure(exc.status, exc.body);
  else showToast({ message: t("No response. Check whether it worked before retrying."), kind: "wrong" });
}

function showFailure(status, body) {
  if (status === 401) signInAndReturn();
  else showToast({ message: findDetail(body) ?? t("That didn’t work. Reload the page and try again."), kind: "wrong" });
}

// An error is a page of ours or, where a program asked, a problem document.
function findDetail(body) {
  try {
    return JSON.parse(body).detail;
  } catch {
    return $("[data-problem]", parseHtml(body))?.textContent.trim();
  }
}

// Whether a response contains the part of the page that the request asked for.
function hasPart({ requestConfig, serverResponse }) {
  const selector = requestConfig?.elt.closest("[hx-select]")?.getAttribute("hx-select");
  const page = parseHtml(serverResponse ?? "");
  return selector ? $(selector, page) !== null : $("[data-problem]", page) === null;
}

document.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers.Accept = "text/html"; // errors in the language of the page
  if (event.detail.verb !== "get") event.detail.headers["X-CSRF-Token"] = csrfToken();
});

// Every page has the template of a toast; parsing it takes as long as the whole swap of a table.
const HAS_TOAST = /id="toasts"[^>]*>\s*<div class="toast/;

document.addEventListener("htmx:beforeSwap", (event) => {
  // The response to a form may be a whole page: only a part is shown, and its toasts.
  const { serverResponse: html = "", xhr } = event.detail;
  if (HAS_TOAST.test(html)) adoptToasts(parseHtml(html));
  if (RERENDERED.includes(xhr.status) && hasPart(event.detail)) {
    event.detail.shouldSwap = true;
    event.detail.isError = false;
  }
  if (event.detail.shouldSwap) removeRows(event.detail.target);
});

// htmx sends two events for every element that it removes, hundreds for a table, and nothing listens.
function removeRows(target) {
  for (const rows of $$("[data-rows]", target)) rows.replaceChildren();
}

document.addEventListener("htmx:afterSwap", (event) => emit("refract:shown", { within: event.target }));
document.addEventListener("htmx:responseError", ({ detail }) =>
  showFailure(detail.xhr.status, detail.xhr.responseText),
);
document.addEventListener("htmx:sendError", () => reportFailure(new TypeError()));

// ---- messages in view ---------------------------------------------------------------------------

// What a form was refused for is scrolled to, and its field has the focus. A secret is shown in a dialog.
onShown((within) => {
  const message = $("[aria-invalid=true], .field-error, [data-message]", within);
  if (message) {
    message.closest("details")?.setAttribute("open", "");
    if (!message.matches("input, textarea, select")) message.tabIndex = -1;
    message.focus({ preventScroll: true });
    message.scrollIntoView({ block: "center" });
  }
  const dialog = $("dialog[data-dialog-now]", within);
  if (!dialog) return;
  dialog.close(); // open without scripts, and not modal
  dialog.showModal();
});
