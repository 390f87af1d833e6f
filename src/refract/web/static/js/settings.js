// Marks the section that is being read in the list of sections.

import { $$ } from "./dom.js";

const links = $$("[data-section]");
const sections = links.map((link) => document.querySelector(link.hash));

function mark() {
  const line = window.innerHeight / 3;
  const atEnd = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2;
  const begun = sections.filter((section) => section.getBoundingClientRect().top <= line).length;
  const current = atEnd && window.scrollY > 0 ? links.length - 1 : Math.max(0, begun - 1);
  for (const [place, link] of links.entries()) {
    if (place === current) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

document.addEventListener("scroll", mark, { passive: true });
window.addEventListener("resize", mark);
mark();
