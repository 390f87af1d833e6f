// Tags: drag a tag onto another to merge it; x selects the row that has the focus; two selected ones can be merged.

import { $, $$, onShown } from "./dom.js";

let dragged = null;

const rowOf = (target) => target.closest?.("[data-tag-row]");

function markTarget(row) {
  for (const marked of $$(".tag-over")) if (marked !== row) marked.classList.remove("tag-over");
  row?.classList.add("tag-over");
}

document.addEventListener("dragstart", (event) => {
  dragged = rowOf(event.target);
  if (!dragged) return;
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", dragged.dataset.tagRow);
});

document.addEventListener("dragover", (event) => {
  const row = rowOf(event.target);
  const isTarget = dragged && row && row !== dragged;
  markTarget(isTarget ? row : null);
  if (isTarget) event.preventDefault();
});

document.addEventListener("dragend", () => {
  dragged = null;
  markTarget(null);
});

document.addEventListener("drop", (event) => {
  const row = rowOf(event.target);
  const form = $("[data-merge]");
  if (!dragged || !row || row === dragged || !form) return;
  event.preventDefault();
  for (const tick of $$("[data-tick]")) tick.checked = tick.value === dragged.dataset.tagRow;
  $("[name=target]", form).value = row.dataset.tagRow;
  form.requestSubmit();
});

document.addEventListener("refract:row-key", (event) => {
  if (event.detail.key !== "x") return;
  $("[data-tick]", event.detail.row)?.click();
  event.preventDefault();
});

function showMerge() {
  const button = $("[data-merge] [type=submit]");
  if (button) button.disabled = $$("[data-tick]:checked").length < 2;
}

document.addEventListener("change", showMerge);
onShown(showMerge);
