// What every page does beyond plain forms. One file, no imports, so that its hashed address is all there is to cache.
// Others talk to it by events on document:
//   refract:toast  {message, kind: "done"|"note"|"wrong", undo: address}   (also as an HX-Trigger response header)
//   refract:undo   sent before an undo form goes out; preventDefault() to do it another way

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
const root = document.documentElement;

// ---- theme -----------------------------------------------------------------------------------------------------------

const THEMES = ["system", "light", "dark"];
const THEME_WORDS = { system: "as the system", light: "light", dark: "dark" };

function setTheme(theme) {
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem("refract-theme");
    else localStorage.setItem("refract-theme", theme);
  } catch {
    // Not remembered, still shown.
  }
  showTheme();
}

function showTheme() {
  const theme = root.dataset.theme ?? "system";
  for (const button of $$("[data-theme-switch]")) button.setAttribute("aria-label", button.title = `Colours: ${THEME_WORDS[theme]}. Change`);
  for (const radio of $$("[data-theme-choice] input")) radio.checked = radio.value === theme;
}

// ---- toasts ----------------------------------------------------------------------------------------------------------

const SHORT = 6_000;
const UNDOABLE = 20_000;
const ICONS = { done: "circle-check", note: "info", wrong: "circle-alert" };

function mind(toast) {
  const undo = $("[data-toast-undo]", toast);
  let timer;
  const close = () => toast.remove();
  const wait = () => { timer = setTimeout(close, undo ? UNDOABLE : SHORT); };
  const hold = () => clearTimeout(timer);
  $("[data-toast-close]", toast).addEventListener("click", close);
  toast.addEventListener("pointerenter", hold);
  toast.addEventListener("pointerleave", wait);
  toast.addEventListener("focusin", hold);
  toast.addEventListener("focusout", wait);
  undo?.addEventListener("submit", (event) => {
    const asked = new CustomEvent("refract:undo", { bubbles: true, cancelable: true, detail: { action: undo.action } });
    if (undo.dispatchEvent(asked)) return;
    event.preventDefault();
    close();
  });
  if (!toast.classList.contains("toast-wrong")) wait();
}

function say({ message, kind = "done", undo = null }) {
  const toast = $("#toast-template").content.firstElementChild.cloneNode(true);
  toast.classList.replace("toast-done", `toast-${kind}`);
  $("[data-toast-message]", toast).textContent = message;
  const shape = $("use", toast);
  shape.setAttribute("href", shape.getAttribute("href").replace(/#.*/, `#${ICONS[kind]}`));
  if (undo) $("[data-toast-undo]", toast).action = undo;
  else $("[data-toast-undo]", toast).remove();
  $("#toasts").append(toast);
  mind(toast);
}

// ---- copy ------------------------------------------------------------------------------------------------------------

async function copy(button) {
  const text = button.dataset.copy;
  try {
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else copyByHand(text);
  } catch {
    say({ message: "Your browser did not allow copying. Select the text instead.", kind: "wrong" });
    return;
  }
  const label = $("[data-copy-label]", button);
  const before = label?.textContent;
  button.dataset.copied = "";
  if (label) label.textContent = "Copied";
  say({ message: `Copied ${text.length > 60 ? `${text.slice(0, 57)}…` : text}` });
  setTimeout(() => {
    delete button.dataset.copied;
    if (label) label.textContent = before;
  }, 2_000);
}

// Plain http on a home network has no clipboard API; the old way still works there.
function copyByHand(text) {
  const area = document.createElement("textarea");
  area.className = "unseen";
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("copy refused");
}

// ---- dialogs and menus -----------------------------------------------------------------------------------------------

function openDialog(id) {
  const dialog = document.getElementById(id);
  if (dialog && !dialog.open) dialog.showModal();
  return Boolean(dialog);
}

function dismissMenus(except = null) {
  for (const menu of $$("details[data-dismiss][open]")) if (!menu.contains(except)) menu.open = false;
}

document.addEventListener("click", (event) => {
  const target = event.target;
  dismissMenus(target);
  const opener = target.closest("[data-dialog-open]");
  if (opener && openDialog(opener.dataset.dialogOpen)) {
    event.preventDefault();
    dismissMenus();
  }
  if (target instanceof HTMLDialogElement) target.close(); // the backdrop is the dialog itself
  const copier = target.closest("[data-copy]");
  if (copier) copy(copier);
  if (target.closest("[data-theme-switch]")) setTheme(THEMES[(THEMES.indexOf(root.dataset.theme ?? "system") + 1) % THEMES.length]);
});

document.addEventListener("change", (event) => {
  if (event.target.closest("[data-theme-choice]")) setTheme(event.target.value);
});

// ---- omnibox ---------------------------------------------------------------------------------------------------------

function meaning(text) {
  if (/^https?:\/\/\S+$/i.test(text) || /^[\w-]+(\.[\w-]+)+(\/\S*)?$/.test(text)) return "shorten this address";
  if (/^\/[\w-]+/.test(text)) return `open ${text}`;
  if (/^#\S+$/.test(text)) return `show everything tagged ${text}`;
  return `search for “${text.length > 40 ? `${text.slice(0, 39)}…` : text}”`;
}

for (const box of $$("[data-omnibox]")) {
  const input = $("input[name=q]", box);
  const hint = $("[data-omnibox-hint]", box);
  const show = () => {
    const text = input.value.trim();
    hint.hidden = !text || document.activeElement !== input;
    if (text) hint.textContent = `Enter: ${meaning(text)}`;
  };
  for (const name of ["input", "focus", "blur"]) input.addEventListener(name, show);
}

// ---- keyboard --------------------------------------------------------------------------------------------------------

const typing = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;
let going = 0;

function moveRow(step) {
  const rows = $$("[data-row]");
  if (!rows.length) return false;
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.max(0, Math.min(rows.length - 1, here + step))];
  $("[data-row-open]", next)?.focus();
  return true;
}

function press(selector) {
  const element = $(selector);
  element?.click();
  return element !== null;
}

function act(key) {
  if (going > Date.now()) {
    going = 0;
    return press(`[data-go="${CSS.escape(key)}"]`);
  }
  switch (key) {
    case "g": going = Date.now() + 1_500; return true;
    case "?": return openDialog("keys");
    case "/": return focusOmnibox();
    case "j": return moveRow(1);
    case "k": return moveRow(-1);
    default: return /^[a-z#]$/.test(key) && press(`[data-key="${CSS.escape(key)}"]`);
  }
}

function focusOmnibox() {
  const input = $("#omnibox");
  input?.focus();
  input?.select();
  return input !== null;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  if ((event.metaKey || event.ctrlKey) && !event.altKey && event.key.toLowerCase() === "k") {
    if (focusOmnibox()) event.preventDefault();
    return;
  }
  if (event.key === "Escape") {
    const menu = $("details[data-dismiss][open]");
    dismissMenus();
    if (menu) $("summary", menu).focus();
    else if (typing(event.target)) event.target.blur();
    return;
  }
  if (event.metaKey || event.ctrlKey || event.altKey || typing(event.target) || $("dialog[open]")) return;
  if (act(event.key)) event.preventDefault();
});

// ---- small things ----------------------------------------------------------------------------------------------------

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const MINUTE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

function localise(within = document) {
  for (const time of $$("time[data-moment]", within)) {
    const at = new Date(time.dateTime);
    time.textContent = (time.dataset.moment === "time" ? MINUTE : DAY).format(at);
    time.title = at.toLocaleString();
  }
}

for (const input of $$("[data-echo]")) {
  const echo = document.getElementById(input.dataset.echo);
  input.addEventListener("input", () => { echo.textContent = input.value.trim() || input.placeholder; });
}

document.addEventListener("refract:toast", (event) => say(event.detail));
document.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.verb !== "get") event.detail.headers["X-CSRF-Token"] = $("meta[name=csrf]").content;
});
document.addEventListener("htmx:afterSwap", (event) => localise(event.target));
document.addEventListener("htmx:sendError", () => say({ message: "The server did not answer. Look before you try again.", kind: "wrong" }));

if (/Mac|iPhone|iPad/.test(navigator.platform)) for (const key of $$("[data-mod]")) key.textContent = "⌘";

showTheme();
localise();
$$("[data-toast]").forEach(mind);
