// A published list: opens all of its links in tabs.

import { $, $$ } from "./dom.js";
import { formatNumber, t, tn } from "./i18n.js";
import { showToast } from "./toast.js";

const MAX_UNASKED = 10;

$("[data-open-all]")?.addEventListener("click", () => {
  const links = $$(".list-page-link");
  if (links.length > MAX_UNASKED && !confirm(tn("Open {n} tab?", "Open {n} tabs?", links.length))) return;
  const opened = links.filter((link) => window.open(link.href, "_blank") !== null).length;
  if (opened < links.length) {
    showToast({
      message: t("Your browser blocked some tabs. Allow pop-ups for this page and try again."),
      kind: "note",
    });
  }
  const counts = { opened: formatNumber(opened), total: formatNumber(links.length) };
  $("#list-said").textContent = t("Opened {opened} of {total}", counts);
});
