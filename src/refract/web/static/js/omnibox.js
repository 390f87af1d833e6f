// The command bar lists the options of the server, which the arrow keys select. Enter runs the first one, also when
// it is pressed before the options are there. An empty bar starts with the pages that were opened last.

import { $, $$, shorten } from "./dom.js";
import { reportFailure } from "./feedback.js";
import { getDocument } from "./http.js";
import { t } from "./i18n.js";
import { listRecent } from "./recent.js";

const TYPING_PAUSE_MS = 90; // faster than reading, slower than typing
const BLUR_MS = 150; // a click on an option takes the focus first

const BY_SCRIPT = "[data-copy], [data-dialog-open], [data-theme-set]";

function buildRecentOption({ href, title }, index) {
  const option = document.createElement("a");
  option.className = "omnibox-option";
  option.id = `omnibox-recent-${index}`;
  option.href = href;
  option.tabIndex = -1;
  option.setAttribute("role", "option");
  const icon = $(`.rail-item[href="${href.split("/").slice(0, 3).join("/")}"] .icon`)?.cloneNode(true) ?? "";
  const words = document.createElement("span");
  words.className = "omnibox-words";
  words.textContent = title;
  option.append(icon, words);
  return option;
}

class Omnibox {
  constructor(form) {
    this.form = form;
    this.input = $("input[name=q]", form);
    this.hint = $("[data-omnibox-hint]", form);
    this.results = $(".omnibox-results", form);
    this.timer = 0;
    this.request = null;
    this.shownFor = null; // the text that the options below belong to
    this.watch();
  }

  get text() {
    return this.input.value.trim();
  }

  get options() {
    return $$("[role=option]", this.results);
  }

  get selected() {
    return $("[aria-selected=true]", this.results);
  }

  toggle(open) {
    this.results.hidden = !open;
    this.input.setAttribute("aria-expanded", String(open));
    if (!open) this.input.removeAttribute("aria-activedescendant");
  }

  select(chosen) {
    for (const option of this.options) option.setAttribute("aria-selected", String(option === chosen));
    if (!chosen) return;
    this.input.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  }

  // Some options are links, some are handled by app.js, and others send the text to another place than Enter does.
  run(option) {
    if (option.href) return location.assign(option.href);
    if (option.matches(BY_SCRIPT)) {
      this.input.value = "";
      this.input.blur();
      this.toggle(false);
      return option.click();
    }
    if (option.dataset.post) {
      this.form.action = option.dataset.post;
      this.input.name = "text";
      this.input.required = false;
    }
    this.form.requestSubmit();
  }

  showRecent() {
    const recent = listRecent();
    if (!recent.length) return;
    const heading = document.createElement("p");
    heading.className = "omnibox-sort";
    heading.setAttribute("role", "presentation");
    heading.textContent = t("Recent");
    this.results.prepend(heading, ...recent.map(buildRecentOption));
    $("kbd", this.options[recent.length])?.remove();
  }

  // The server knows what the text means: its first option is what Enter does.
  describeEnter() {
    const words = $(".omnibox-words", this.results);
    this.hint.textContent = words ? t("Enter: {action}", { action: shorten(words.textContent, 60) }) : "";
  }

  async load() {
    const text = this.text;
    this.request?.abort();
    this.request = new AbortController();
    try {
      const query = new URLSearchParams({ q: text, at: location.pathname });
      const page = await getDocument(`/app/omnibox?${query}`, { signal: this.request.signal });
      if (this.text !== text) return;
      this.results.replaceChildren(...[...page.body.childNodes].map((node) => document.importNode(node, true)));
      if (!text) this.showRecent();
      this.shownFor = text;
      this.describeEnter();
      this.toggle(document.activeElement === this.input && this.options.length > 0);
      this.select(this.options[0]);
    } catch (exc) {
      if (exc.name === "AbortError") return;
      this.toggle(false);
      reportFailure(exc);
    }
  }

  onInput() {
    this.hint.textContent = "";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), TYPING_PAUSE_MS);
  }

  // Enter before the options of this text are there: they are waited for, so that the first one runs.
  async runFirst() {
    clearTimeout(this.timer);
    await this.load();
    if (this.shownFor === this.text && this.options.length) this.run(this.options[0]);
    else this.form.requestSubmit();
  }

  onKey(event) {
    if (event.key === "Escape") return this.toggle(false); // app.js leaves the field
    if (event.key === "Enter" && this.text && this.shownFor !== this.text) {
      event.preventDefault();
      return this.runFirst();
    }
    if (this.results.hidden) return;
    const { options, selected } = this;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : options.length - 1;
      this.select(options[(options.indexOf(selected) + step) % options.length]);
    } else if (event.key === "Enter" && selected) {
      event.preventDefault();
      this.run(selected);
    }
  }

  watch() {
    this.input.addEventListener("input", () => this.onInput());
    this.input.addEventListener("focus", () => this.load());
    this.input.addEventListener("blur", () => setTimeout(() => this.toggle(false), BLUR_MS));
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    this.results.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps the focus
    this.results.addEventListener("click", (event) => {
      const option = event.target.closest("[data-omnibox-submit]");
      if (!option) return;
      if (option.matches(BY_SCRIPT)) this.input.blur();
      else this.run(option);
    });
  }
}

for (const form of $$("[data-omnibox]")) new Omnibox(form);
