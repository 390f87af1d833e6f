// A published list: open all of its links at once.

import { $, $$ } from "./dom.js";
import { showToast } from "./toast.js";

const MAX_UNASKED = 10;

$("[data-open-all]")?.addEventListener("click", () => {
  const links = $$(".shelf-link");
  if (links.length > MAX_UNASKED && !confirm(`Open ${links.length} tabs?`)) return;
  const opened = links.filter((link) => window.open(link.href, "_blank") !== null).length;
  if (opened < links.length) {
    showToast({
      message: "Your browser did not allow all of them. Allow pop-ups for this page and try again.",
      kind: "note",
    });
  }
  $("#list-said").textContent = `Opened ${opened} of ${links.length}.`;
});
