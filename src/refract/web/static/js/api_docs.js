// API docs: search while typing, and the language of examples is remembered.

import { $, $$ } from "./dom.js";

const REMEMBERED = "api-language";
const search = $(".api-search")?.elements.q;

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const chapter of $$(".api-chapter")) {
    let shown = 0;
    for (const operation of $$("[data-api-words]", chapter)) {
      operation.hidden = !words.every((word) => operation.dataset.apiWords.includes(word));
      if (!operation.hidden) shown += 1;
    }
    chapter.hidden = shown === 0;
    const link = $(`[data-api-chapter="${chapter.id}"]`);
    link.hidden = chapter.hidden;
    $(".count", link).textContent = shown;
    found += shown;
  }
  const guides = $("[data-api-guides]");
  if (guides) guides.hidden = words.length > 0;
  $("[data-api-nothing]").hidden = found > 0;
}

function chooseLanguage() {
  const choices = $$("[name=language]");
  const known = localStorage.getItem(REMEMBERED);
  for (const choice of choices) {
    if (choice.value === known) choice.checked = true;
    choice.addEventListener("change", () => localStorage.setItem(REMEMBERED, choice.value));
  }
}

// The page of a section has no index to search: its form leads to the overview.
if ($(".api-index")) {
  search.addEventListener("input", filter);
  search.form.addEventListener("submit", (event) => event.preventDefault());
}
chooseLanguage();
