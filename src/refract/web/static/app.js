// What every page does beyond plain forms. No imports: each module is a file with a hashed address of its own, and they talk by
// events on document:
//   refract:toast  {message, kind: "done"|"note"|"wrong", undo: address}   (also as an HX-Trigger response header)
//   refract:shown  {within}: something was put into the page
//   refract:row-key {key, row}: a letter pressed on a row of a list; preventDefault() when it meant something
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
  const drawn = target.closest("a[data-drawer]");
  if (drawn && $("#drawer") && !event.metaKey && !event.ctrlKey && !event.shiftKey && event.button === 0) {
    event.preventDefault();
    openDrawer(drawn);
  }
  if (target.closest("[data-inert]")) event.preventDefault(); // to be dragged, not pressed
  if (target.closest("[data-drawer-close]") && $("#drawer[open]")) {
    event.preventDefault();
    $("#drawer").close();
  }
  if (target instanceof HTMLDialogElement) target.close(); // the backdrop is the dialog itself
  const copier = target.closest("[data-copy]");
  if (copier) copy(copier);
  if (target.closest("[data-theme-switch]")) setTheme(THEMES[(THEMES.indexOf(root.dataset.theme ?? "system") + 1) % THEMES.length]);
});

document.addEventListener("change", (event) => {
  if (event.target.closest("[data-theme-choice]")) setTheme(event.target.value);
});

// ---- drawer: a page of ours, shown beside the one that is there --------------------------------------------------------

async function openDrawer(link) {
  const drawer = $("#drawer");
  const body = $("[data-drawer-body]", drawer);
  $("[data-drawer-title]", drawer).textContent = link.dataset.drawerTitle ?? link.title ?? "";
  body.replaceChildren($("#skeleton")?.content.cloneNode(true) ?? "");
  if (!drawer.open) drawer.showModal();
  try {
    const answer = await fetch(link.href, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const content = $("[data-drawer-content]", page);
    if (!answer.ok || !content) throw new Error("no form");
    $("[data-drawer-title]", drawer).textContent = $("h1", page)?.textContent ?? "";
    body.replaceChildren(document.importNode(content, true));
    window.htmx?.process(body);
    document.dispatchEvent(new CustomEvent("refract:shown", { detail: { within: body } }));
    $("[autofocus]", body)?.focus();
  } catch {
    location.assign(link.href); // the same as a page of its own
  }
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
    default: return /^[a-z#]$/.test(key) && (onRow(key) || press(`[data-key="${CSS.escape(key)}"]`));
  }
}

// A list may take a key for the row that has the focus: table.js and others listen for it.
function onRow(key) {
  const row = document.activeElement?.closest("[data-row]");
  if (!row) return false;
  return !row.dispatchEvent(new CustomEvent("refract:row-key", { bubbles: true, cancelable: true, detail: { key, row } }));
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

const AGO = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const UNITS = [["year", 31_557_600], ["month", 2_629_800], ["week", 604_800], ["day", 86_400], ["hour", 3_600], ["minute", 60]];

function ago(at) {
  const seconds = (at - Date.now()) / 1_000;
  for (const [unit, size] of UNITS) if (Math.abs(seconds) >= size) return AGO.format(Math.trunc(seconds / size), unit);
  return Math.abs(seconds) < 5 ? "just now" : AGO.format(Math.trunc(seconds), "second");
}

function localise(within = document) {
  for (const time of $$("time[data-moment]", within)) {
    const at = new Date(time.dateTime);
    time.textContent = time.dataset.moment === "age" ? ago(at) : (time.dataset.moment === "time" ? MINUTE : DAY).format(at);
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
document.addEventListener("htmx:afterSwap", (event) => {
  localise(event.target);
  document.dispatchEvent(new CustomEvent("refract:shown", { detail: { within: event.target } }));
});
document.addEventListener("refract:shown", (event) => localise(event.detail.within));
// A form answered by a whole page: what that page has to say is said here too.
document.addEventListener("htmx:beforeSwap", (event) => {
  const said = new DOMParser().parseFromString(event.detail.serverResponse ?? "", "text/html").querySelectorAll("#toasts [data-toast]");
  for (const toast of said) {
    const here = document.importNode(toast, true);
    $("#toasts").append(here);
    mind(here);
  }
  if (event.detail.xhr.status === 422) event.detail.shouldSwap = true;
});
document.addEventListener("htmx:sendError", () => say({ message: "The server did not answer. Look before you try again.", kind: "wrong" }));

// How much waits for review or a decision, on pages that do not know. Nobody misses the number of a page they have left already.
for (const waiting of $$("[data-waiting]")) fetch(waiting.dataset.waiting).then(async (answer) => { if (answer.ok) waiting.innerHTML = await answer.text(); }, () => {});

if (/Mac|iPhone|iPad/.test(navigator.platform)) for (const key of $$("[data-mod]")) key.textContent = "⌘";

// Days begin where the visitor is: the server asks for nothing more than the name of the zone.
document.cookie = `refract_zone=${encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC")}; path=/; max-age=31536000; samesite=lax`;

showTheme();
localise();
$$("[data-toast]").forEach(mind);
