// Helpers for elements, keys and custom events.

/** Return the first element that matches, or null. */
export const $ = (selector, within = document) => within.querySelector(selector);

/** Return all elements that match, as an array. */
export const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

/** Return a text, cut to at most `length` characters. */
export const shorten = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** Tell whether keys pressed on `target` are text for a field, not shortcuts. A checkbox takes no text. */
export const isTextField = (target) =>
  target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;

/** Tell whether a key was pressed together with Command, Control or Alt. */
export const hasModifier = (event) => event.metaKey || event.ctrlKey || event.altKey;

/** Send a custom event that bubbles; return false if a listener prevented its default. */
export const emit = (name, detail, target = document) =>
  target.dispatchEvent(new CustomEvent(name, { bubbles: true, cancelable: true, detail }));

/** Run `handler` for the whole page now, and later for every part that is put into it. */
export function onShown(handler) {
  document.addEventListener("refract:shown", (event) => handler(event.detail.within));
  handler(document);
}
