// Names for parts of the theme that have none. Its copy buttons stand in a landmark for each block of code.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
new MutationObserver(() => {
  for (const [index, nav] of document.querySelectorAll("nav.md-code__nav").entries()) {
    if (!nav.hasAttribute("aria-label")) nav.setAttribute("aria-label", `Code ${index + 1}`);
  }
}).observe(document.body, { childList: true, subtree: true });
