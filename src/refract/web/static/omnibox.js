// The omnibox: what Enter will do, as one types; answers from the server below it; arrows choose.

const QUIET = 90; // ms: faster than reading, slower than typing

function guess(text) {
  if (/^https?:\/\/\S+$/i.test(text) || /^[\w-]+(\.[\w-]+)+(\/\S*)?$/.test(text)) return "shorten this address";
  if (/^\/[\w-]+/.test(text)) return `open ${text}`;
  if (/^#\S+$/.test(text)) return `show everything tagged ${text}`;
  return `search for “${text.length > 40 ? `${text.slice(0, 39)}…` : text}”`;
}

for (const box of document.querySelectorAll("[data-omnibox]")) {
  const input = box.querySelector("input[name=q]");
  const hint = box.querySelector("[data-omnibox-hint]");
  const results = box.querySelector(".omnibox-results");
  let timer = 0;
  let asking = null;
  let shown = null; // the text that the lines below belong to

  const options = () => [...results.querySelectorAll("[role=option]")];
  const chosen = () => results.querySelector("[aria-selected=true]");
  const text = () => input.value.trim();

  function open(is) {
    results.hidden = !is;
    input.setAttribute("aria-expanded", String(is));
    if (!is) input.removeAttribute("aria-activedescendant");
  }

  function choose(option) {
    for (const one of options()) one.setAttribute("aria-selected", String(one === option));
    if (!option) return;
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  // Some lines are places, others send what is in the box somewhere else than Enter would.
  function take(option) {
    if (option.href) return location.assign(option.href);
    if (option.dataset.post) {
      box.action = option.dataset.post;
      input.name = "text";
    }
    box.requestSubmit();
  }

  async function ask() {
    const wanted = text();
    asking?.abort();
    if (!wanted) return open(false);
    asking = new AbortController();
    try {
      const answer = await fetch(`/app/omnibox?q=${encodeURIComponent(wanted)}`, { signal: asking.signal, headers: { Accept: "text/html" } });
      if (!answer.ok || text() !== wanted) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      results.replaceChildren(...[...page.body.childNodes].map((node) => document.importNode(node, true)));
      shown = wanted;
      open(document.activeElement === input && options().length > 0);
      choose(options()[0]);
    } catch (wrong) {
      if (wrong.name !== "AbortError") open(false);
    }
  }

  input.addEventListener("input", () => {
    hint.textContent = text() ? `Enter: ${guess(text())}` : "";
    clearTimeout(timer);
    if (!text()) return open(false);
    timer = setTimeout(ask, QUIET);
  });
  input.addEventListener("focus", () => { if (text()) ask(); });
  input.addEventListener("blur", () => setTimeout(() => open(false), 150));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return open(false); // app.js leaves the field
    if (results.hidden) return;
    const all = options();
    const here = all.indexOf(chosen());
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(all[(here + (event.key === "ArrowDown" ? 1 : all.length - 1)) % all.length]);
    } else if (event.key === "Enter" && shown === text() && (chosen()?.href || chosen()?.dataset.post)) {
      event.preventDefault();
      take(chosen());
    }
  });
  results.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps the focus
  results.addEventListener("click", (event) => { if (event.target.closest("[data-omnibox-submit]")) take(event.target.closest("[data-omnibox-submit]")); });
}
