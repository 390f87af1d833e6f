// The capture box grows with its text. Enter saves, Shift+Enter starts a new line.

import { $$ } from "./dom.js";

const MAX_HEIGHT_PX = 320;

for (const box of $$("[data-grow]")) {
  const fit = () => {
    box.style.blockSize = "auto";
    box.style.blockSize = `${Math.min(box.scrollHeight + 2, MAX_HEIGHT_PX)}px`;
  };
  box.addEventListener("input", fit);
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (box.value.trim()) box.form.requestSubmit();
  });
}
