// Runs before the first paint, so that a remembered theme never flashes. A classic script: modules run too late.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const theme = localStorage.getItem("refract-theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // Storage is blocked (private window, policy): the system's theme applies.
  }
})();
