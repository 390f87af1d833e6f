// One tag dragged onto another becomes part of it; x ticks, m merges what is ticked.

const $ = (selector, within = document) => within.querySelector(selector);
let dragged = null;

const row = (target) => target.closest?.("[data-tag-row]");

document.addEventListener("dragstart", (event) => {
  dragged = row(event.target);
  if (!dragged) return;
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", dragged.dataset.tagRow);
});
document.addEventListener("dragover", (event) => {
  const over = row(event.target);
  for (const one of document.querySelectorAll(".tag-over")) if (one !== over) one.classList.remove("tag-over");
  if (!dragged || !over || over === dragged) return;
  event.preventDefault();
  over.classList.add("tag-over");
});
document.addEventListener("dragend", () => {
  dragged = null;
  for (const one of document.querySelectorAll(".tag-over")) one.classList.remove("tag-over");
});
document.addEventListener("drop", (event) => {
  const over = row(event.target);
  const form = $("[data-merge]");
  if (!dragged || !over || over === dragged || !form) return;
  event.preventDefault();
  for (const tick of document.querySelectorAll("[data-tick]")) tick.checked = tick.value === dragged.dataset.tagRow;
  $("[name=target]", form).value = over.dataset.tagRow;
  form.requestSubmit();
});
document.addEventListener("refract:row-key", (event) => {
  if (event.detail.key !== "x") return;
  $("[data-tick]", event.detail.row)?.click();
  event.preventDefault();
});
