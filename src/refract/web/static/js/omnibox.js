// The command bar lists the options of the server, which the arrow keys select. Enter runs the first one.

import { $, $$, shorten } from "./dom.js";
import { reportFailure } from "./feedback.js";
import { getDocument } from "./http.js";
import { t } from "./i18n.js";

const TYPING_PAUSE_MS = 90; // faster than reading, slower than typing
const BLUR_MS = 150; // a click on an option takes the focus first

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

  // Some options are links; others send the text to another place than Enter does.
  run(option) {
    if (option.href) return location.assign(option.href);
    if (option.dataset.post) {
      this.form.action = option.dataset.post;
      this.input.name = "text";
    }
    this.form.requestSubmit();
  }

  // The server knows what the text means: its first option is what Enter does.
  describeEnter() {
    const words = $(".omnibox-words", this.results);
    this.hint.textContent = words ? t("Enter: {action}", { action: shorten(words.textContent, 60) }) : "";
  }

  async load() {
    const text = this.text;
    this.request?.abort();
    if (!text) return this.toggle(false);
    this.request = new AbortController();
    try {
      const page = await getDocument(`/app/omnibox?q=${encodeURIComponent(text)}`, { signal: this.request.signal });
      if (this.text !== text) return;
      this.results.replaceChildren(...[...page.body.childNodes].map((node) => document.importNode(node, true)));
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
    if (!this.text) return this.toggle(false);
    this.timer = setTimeout(() => this.load(), TYPING_PAUSE_MS);
  }

  onKey(event) {
    if (event.key === "Escape") return this.toggle(false); // app.js leaves the field
    if (this.results.hidden) return;
    const { options, selected } = this;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : options.length - 1;
      this.select(options[(options.indexOf(selected) + step) % options.length]);
    } else if (event.key === "Enter" && this.shownFor === this.text && (selected?.href || selected?.dataset.post)) {
      event.preventDefault();
      this.run(selected);
    }
  }

  watch() {
    this.input.addEventListener("input", () => this.onInput());
    this.input.addEventListener("focus", () => {
      if (this.text) this.load();
    });
    this.input.addEventListener("blur", () => setTimeout(() => this.toggle(false), BLUR_MS));
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    this.results.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps the focus
    this.results.addEventListener("click", (event) => {
      const option = event.target.closest("[data-omnibox-submit]");
      if (option) this.run(option);
    });
  }
}

for (const form of $$("[data-omnibox]")) new Omnibox(form);
