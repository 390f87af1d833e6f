// The box that takes anything grows with what is in it; Enter saves, Shift+Enter begins a line.

for (const box of document.querySelectorAll("[data-grow]")) {
  const fit = () => {
    box.style.blockSize = "auto";
    box.style.blockSize = `${Math.min(box.scrollHeight + 2, 320)}px`;
  };
  box.addEventListener("input", fit);
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (box.value.trim()) box.form.requestSubmit();
  });
}
