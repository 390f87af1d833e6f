// The box of the library searches while one types. What is a URL, or longer than a search, is saved by Enter instead.
// Ctrl+Enter saves any text. A box grows with its text; Shift+Enter starts a new line.

import { $, $$, emit, hasModifier } from "./dom.js";
import { forgetDraft } from "./drafts.js";

const MAX_HEIGHT_PX = 320;
const MAX_SEARCH = 200;
const URL_START = /^(https?:\/\/|www\.)\S|^[^\s/]+\.[a-z]{2,}\/\S*$/i;

const isSearch = (text) => text.length <= MAX_SEARCH && !text.includes("\n") && !URL_START.test(text);

// A search is no draft; what is to be saved is kept until it is sent.
function showMode(box) {
  const text = box.value.trim();
  const searches = isSearch(text);
  const save = $("[data-save]", box.form);
  save.classList.toggle("button-primary", !searches);
  save.classList.toggle("button-plain", searches);
  if (text && searches) {
    forgetDraft(box.form);
    box.form.dataset.noDraft = "";
  } else {
    delete box.form.dataset.noDraft;
  }
}

function send(box) {
  if (!box.form.matches("[data-library-box]")) box.form.requestSubmit();
  else if (isSearch(box.value.trim())) emit("refract:search", {}, box);
  else box.form.requestSubmit($("[data-save]", box.form));
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const box = event.target;
  if (box.matches("[data-library-box] textarea") && !isSearch(box.value.trim())) event.preventDefault();
});

for (const box of $$("[data-grow]")) {
  const fit = () => {
    box.style.blockSize = "auto";
    box.style.blockSize = `${Math.min(box.scrollHeight + 2, MAX_HEIGHT_PX)}px`;
  };
  box.addEventListener("input", fit);
  if (box.form.matches("[data-library-box]")) {
    box.addEventListener("input", () => showMode(box));
    // Before `drafts.js` sees it: what is saved is kept until it has arrived, however short it is.
    box.form.addEventListener("submit", () => delete box.form.dataset.noDraft);
    showMode(box);
  }
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || hasModifier(event)) return;
    event.preventDefault();
    if (box.value.trim() || box.form.matches("[data-library-box]")) send(box);
  });
}
