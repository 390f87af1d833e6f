// A field of comma-separated tags as chips, with completion. The field itself stays in the form and keeps the text,
// so the form works without this script, and drafts restore it.

import { $$, onShown } from "./dom.js";
import { getJson } from "./http.js";
import { t } from "./i18n.js";

const TYPING_PAUSE_MS = 150;
const MAX_OPTIONS = 8;

const parse = (text) =>
  text
    .split(",")
    .map((tag) => tag.trim())
    .filter(Boolean);
const sameTag = (one, other) => one.toLowerCase() === other.toLowerCase();

function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function enhance(field) {
  const listId = `${field.id}-options`;
  const input = make("input", { type: "text", className: "tag-input", autocomplete: "off", id: `${field.id}-entry` });
  const chips = make("span", { className: "tag-chips" });
  const options = make("ul", { id: listId, className: "tag-options", hidden: true, role: "listbox" });
  for (const name of ["aria-describedby", "aria-invalid"]) {
    if (field.hasAttribute(name)) input.setAttribute(name, field.getAttribute(name));
  }
  // A drawer may hold a field with the id of another on the page, whose label is not ours.
  const label = field.closest(".field").querySelector("label");
  label.htmlFor = input.id;
  options.setAttribute("aria-label", label.textContent.trim());
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", listId);
  input.setAttribute("aria-expanded", "false");
  field.hidden = true;
  field.after(chips, input);
  field.closest(".field-frame").classList.add("tag-frame");
  field.closest(".field-frame").after(options);

  const store = (tags) => {
    field.value = tags.join(", ");
    field.dispatchEvent(new Event("change", { bubbles: true }));
    show();
  };
  const show = () => {
    chips.replaceChildren(
      ...parse(field.value).map((tag) => {
        const remove = make("button", { type: "button", className: "tag-remove", textContent: "×" });
        remove.setAttribute("aria-label", t("Remove {tag}", { tag }));
        remove.addEventListener("click", () => {
          store(parse(field.value).filter((other) => other !== tag));
          input.focus();
        });
        return make("span", { className: "tag-chip" }, tag, remove);
      }),
    );
  };
  const choices = () => $$("[role=option]", options);
  const chosen = () => choices().findIndex((option) => option.ariaSelected === "true");
  const choose = (index) => {
    for (const [place, option] of choices().entries()) option.ariaSelected = String(place === index);
    const option = choices()[index];
    option?.scrollIntoView({ block: "nearest" });
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
  };
  const offer = (names) => {
    options.replaceChildren(
      ...names.map((name, place) => {
        const option = make("li", { id: `${listId}-${place}`, role: "option", textContent: name });
        option.ariaSelected = "false";
        option.addEventListener("pointerdown", (event) => {
          event.preventDefault(); // the focus stays in the field
          add(name);
        });
        return option;
      }),
    );
    options.hidden = !names.length;
    input.setAttribute("aria-expanded", String(names.length > 0));
    input.removeAttribute("aria-activedescendant");
  };
  const add = (text) => {
    const tags = parse(field.value);
    const added = parse(text).filter((tag) => !tags.some((other) => sameTag(tag, other)));
    input.value = "";
    offer([]);
    if (added.length) store([...tags, ...added]);
  };
  const complete = async () => {
    const typed = input.value.trim();
    if (!typed) return offer([]);
    const query = new URLSearchParams({ scope: field.dataset.tagField, q: typed, sort: "usage", limit: MAX_OPTIONS });
    const { items } = await getJson(`/api/v1/tags?${query}`);
    if (input.value.trim() !== typed) return;
    const tags = parse(field.value);
    offer(items.map((item) => item.name).filter((name) => !tags.some((tag) => sameTag(tag, name))));
  };

  let timer = 0;
  input.addEventListener("input", (event) => {
    event.stopPropagation(); // not a field of the form
    clearTimeout(timer);
    if (input.value.includes(",")) add(input.value);
    else timer = setTimeout(() => complete().catch(() => offer([])), TYPING_PAUSE_MS);
  });
  input.addEventListener("keydown", (event) => {
    const count = choices().length;
    if (event.isComposing || event.metaKey || event.ctrlKey) return;
    if (event.key === "Enter" && (input.value.trim() || chosen() >= 0)) {
      add(choices()[chosen()]?.textContent ?? input.value);
    } else if (event.key === "ArrowDown" && count) choose((chosen() + 1) % count);
    else if (event.key === "ArrowUp" && count) choose((Math.max(chosen(), 0) - 1 + count) % count);
    else if (event.key === "Escape" && !options.hidden) offer([]);
    else if (event.key === "Backspace" && !input.value) store(parse(field.value).slice(0, -1));
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  input.addEventListener("blur", () => add(input.value));
  field.addEventListener("input", show); // a restored draft
  show();
}

onShown((within) => {
  for (const field of $$("[data-tag-field]:not([hidden])", within)) enhance(field);
});
