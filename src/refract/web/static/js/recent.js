// The pages of links, lists and items that were opened last, for the command bar. Kept in this browser for the user who
// is signed in, and erased at sign-out.

import { $ } from "./dom.js";

const PREFIX = "refract-recent:";
const MAX_RECENT = 5;
const PAGES = /^\/app\/(links|lists|library)\/\d+$/;

const key = `${PREFIX}${$("meta[name=user]")?.content ?? ""}`;

function read() {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? [];
  } catch {
    return []; // storage is blocked, or holds something else
  }
}

function write(pages) {
  try {
    localStorage.setItem(key, JSON.stringify(pages));
  } catch {
    // Storage is blocked or full: nothing is remembered.
  }
}

function eraseAll() {
  try {
    for (const one of Object.keys(localStorage)) if (one.startsWith(PREFIX)) localStorage.removeItem(one);
  } catch {
    // Storage is blocked: there is nothing to erase.
  }
}

/** Return the last pages, newest first, without the one that is open. */
export const listRecent = () => read().filter(({ href }) => href !== location.pathname);

if (PAGES.test(location.pathname) && !$("[data-problem]")) {
  const page = { href: location.pathname, title: document.title.replace(/ · Refract$/, "") };
  write([page, ...listRecent()].slice(0, MAX_RECENT));
}
document.addEventListener("submit", ({ target }) => {
  if (new URL(target.action, location.href).pathname === "/auth/sign-out") eraseAll();
});
