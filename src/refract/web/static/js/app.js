// Behaviour of every page: theme, copying, dialogs, shortcuts, times. Modules communicate by events on document:
//   refract:shown   {within}: something was put into the page
//   refract:row-key {key, row}: a letter was pressed on a row; a listener that handles it calls preventDefault()
//   refract:toast and refract:undo: see toast.js

import { copyText } from "./clipboard.js";
import { $, $$, emit, hasModifier, isTextField, onShown, shorten } from "./dom.js";
import "./drafts.js";
import "./feedback.js";
import { getDocument, getText } from "./http.js";
import { locale, t, timeZone } from "./i18n.js";
import { showToast } from "./toast.js";

const root = document.documentElement;

// ---- theme --------------------------------------------------------------------------------------

const THEMES = ["system", "light", "dark"];
const THEME_LABELS = { system: t("Theme: System"), light: t("Theme: Light"), dark: t("Theme: Dark") };

const currentTheme = () => root.dataset.theme ?? "system";

function setTheme(theme) {
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem("refract-theme");
    else localStorage.setItem("refract-theme", theme);
  } catch {
    // Storage is blocked: the theme applies to this page only.
  }
  showTheme();
}

function showTheme() {
  const theme = currentTheme();
  const label = THEME_LABELS[theme];
  for (const button of $$("[data-theme-switch]")) {
    button.title = label;
    button.setAttribute("aria-label", label);
  }
  for (const radio of $$("[data-theme-choice] input")) radio.checked = radio.value === theme;
}

document.addEventListener("change", (event) => {
  if (event.target.closest("[data-theme-choice]")) setTheme(event.target.value);
});

// ---- copy ---------------------------------------------------------------------------------------

async function copyFrom(button) {
  const text = button.dataset.copy || $("code", button.closest("[data-copied-from]")).textContent;
  if (!(await copyText(text))) {
    showToast({ message: t("Couldn’t copy. Select the text and copy it."), kind: "wrong" });
    return;
  }
  showToast({ message: t("Copied {text}", { text: shorten(text, 60) }) });
  if ("copied" in button.dataset) return; // it still says so
  const label = $("[data-copy-label]", button);
  const before = label?.textContent;
  button.dataset.copied = "";
  setIcon(button, "copy", "check");
  if (label) label.textContent = t("Copied");
  setTimeout(() => {
    delete button.dataset.copied;
    setIcon(button, "check", "copy");
    if (label) label.textContent = before;
  }, 2_000);
}

// One icon that changes: a second, hidden one in each row would make tables slower to replace.
function setIcon(button, from, to) {
  const use = $("use", button);
  use?.setAttribute("href", use.getAttribute("href").replace(`#${from}`, `#${to}`));
}

// ---- dialogs, menus, the drawer -----------------------------------------------------------------

function openDialog(id) {
  const dialog = document.getElementById(id);
  if (dialog && !dialog.open) {
    for (const group of $$("[data-needs]", dialog)) group.hidden = !$(group.dataset.needs);
    dialog.showModal();
  }
  return Boolean(dialog);
}

function closeMenus(except = null) {
  for (const menu of $$("details[data-dismiss][open]")) if (!menu.contains(except)) menu.open = false;
}

// The drawer shows another page's form beside the page that is open.
async function openDrawer(link) {
  const drawer = $("#drawer");
  const body = $("[data-drawer-body]", drawer);
  $("[data-drawer-title]", drawer).textContent = link.dataset.drawerTitle ?? link.title ?? "";
  drawer.dataset.size = link.dataset.drawer;
  body.replaceChildren($("#skeleton")?.content.cloneNode(true) ?? "");
  if (!drawer.open) drawer.showModal();
  try {
    const page = await getDocument(link.href);
    const content = $("[data-drawer-content]", page);
    if (!content) throw new Error("no form");
    $("[data-drawer-title]", drawer).textContent = $("h1", page)?.textContent ?? "";
    body.replaceChildren(document.importNode(content, true));
    window.htmx?.process(body);
    emit("refract:shown", { within: body });
    $("[autofocus]", body)?.focus();
  } catch {
    location.assign(link.href); // the same form as a page of its own
  }
}

const isPlainClick = (event) => !event.metaKey && !event.ctrlKey && !event.shiftKey && event.button === 0;

document.addEventListener("click", (event) => {
  const target = event.target;
  closeMenus(target);
  const opener = target.closest("[data-dialog-open]");
  if (opener && openDialog(opener.dataset.dialogOpen)) {
    event.preventDefault();
    closeMenus();
  }
  const drawerLink = target.closest("a[data-drawer]");
  if (drawerLink && $("#drawer") && isPlainClick(event)) {
    event.preventDefault();
    openDrawer(drawerLink);
  }
  if (target.closest("[data-inert]")) event.preventDefault(); // to be dragged, not pressed
  if (target.closest("[data-drawer-close]") && $("#drawer[open]")) {
    event.preventDefault();
    $("#drawer").close();
  }
  if (target instanceof HTMLDialogElement) target.close(); // the backdrop is the dialog itself
  const copyButton = target.closest("[data-copy]");
  if (copyButton) copyFrom(copyButton);
  const theme = target.closest("[data-theme-set]")?.dataset.themeSet;
  if (theme) {
    setTheme(theme);
    showToast({ message: THEME_LABELS[theme] });
  }
  if (target.closest("[data-theme-switch]")) setTheme(THEMES[(THEMES.indexOf(currentTheme()) + 1) % THEMES.length]);
});

// ---- keyboard -----------------------------------------------------------------------------------

const GO_MS = 1_500;
let goUntil = 0; // after "g" the next key goes somewhere

function moveRow(step) {
  const rows = $$("[data-row]").filter((row) => $("[data-row-open]", row));
  if (!rows.length) return false;
  const current = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.max(0, Math.min(rows.length - 1, current + step))];
  $("[data-row-open]", next)?.focus();
  return true;
}

// Press what a shortcut belongs to. A text field gets the focus, since a click by a script gives none.
function pressFirst(selector, within = document) {
  const element = $(selector, within);
  if (element && isTextField(element)) element.focus();
  else element?.click();
  return element !== null;
}

// What the page itself has for a key comes before what the frame has.
function pressKeyOf(key) {
  const selector = `[data-key="${CSS.escape(key)}"]`;
  return pressFirst(selector, $("main")) || pressFirst(selector);
}

// From a page to the place that it belongs to.
function goUp() {
  const place = $(".rail-item[aria-current]");
  if (!place || place.pathname === location.pathname) return false;
  place.click();
  return true;
}

// Offer a key to the list's module, for the row that has the focus.
function sendRowKey(key) {
  const row = document.activeElement?.closest("[data-row]");
  return Boolean(row) && !emit("refract:row-key", { key, row }, row);
}

function focusOmnibox() {
  const input = $("#omnibox");
  input?.focus();
  input?.select();
  return input !== null;
}

function undoLast() {
  const undo = $$("#toasts [data-toast-undo]").at(-1);
  undo?.requestSubmit();
  return undo !== undefined;
}

function runShortcut(key) {
  if (goUntil > Date.now()) {
    goUntil = 0;
    return pressFirst(`[data-go="${CSS.escape(key)}"]`);
  }
  switch (key) {
    case "g":
      goUntil = Date.now() + GO_MS;
      return true;
    case "?":
      return openDialog("shortcuts");
    case "/":
      return focusOmnibox();
    case "j":
      return moveRow(1);
    case "k":
      return moveRow(-1);
    case "J":
    case "K":
      return sendRowKey(key);
    case "z":
      return undoLast();
    default:
      return /^[a-z#]$/.test(key) && (sendRowKey(key) || pressKeyOf(key) || (key === "u" && goUp()));
  }
}

function leave(target) {
  const menu = $("details[data-dismiss][open]");
  closeMenus();
  if (menu) $("summary", menu).focus();
  else if (target.matches("input, textarea, select, [contenteditable]")) target.blur();
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  if ((event.metaKey || event.ctrlKey) && !event.altKey && event.key.toLowerCase() === "k") {
    if (focusOmnibox()) event.preventDefault();
  } else if ((event.metaKey || event.ctrlKey) && event.key === "Enter" && event.target.form?.method === "post") {
    event.preventDefault();
    event.target.form.requestSubmit();
  } else if (event.key === "Escape") {
    leave(event.target);
  } else if (!hasModifier(event) && !isTextField(event.target) && !$("dialog[open]") && runShortcut(event.key)) {
    event.preventDefault();
  }
});

// ---- times --------------------------------------------------------------------------------------

const DAY = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone });
const MINUTE = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short", timeZone });
const AGE = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" });
const UNIT_SECONDS = { year: 31_557_600, month: 2_629_800, week: 604_800, day: 86_400, hour: 3_600, minute: 60 };

function formatAge(at) {
  const seconds = (at - Date.now()) / 1_000;
  for (const [unit, size] of Object.entries(UNIT_SECONDS)) {
    if (Math.abs(seconds) >= size) return AGE.format(Math.trunc(seconds / size), unit);
  }
  return Math.abs(seconds) < 5 ? t("just now") : AGE.format(Math.trunc(seconds), "second");
}

const MOMENTS = { age: formatAge, time: (at) => MINUTE.format(at) };

onShown((within) => {
  for (const time of $$("time[data-moment]", within)) {
    const at = new Date(time.dateTime);
    time.textContent = MOMENTS[time.dataset.moment]?.(at) ?? DAY.format(at);
    time.title = at.toLocaleString(locale, { timeZone });
  }
});

// ---- echoes, badges, the zone -------------------------------------------------------------------

for (const input of $$("[data-echo]")) {
  const echo = document.getElementById(input.dataset.echo);
  input.addEventListener("input", () => {
    echo.textContent = input.value.trim() || input.placeholder;
  });
}

// The number of items to review, loaded where the page doesn't contain it. A failed request shows no number.
for (const badge of $$("[data-waiting]")) {
  getText(badge.dataset.waiting).then(
    (html) => {
      badge.innerHTML = html;
    },
    () => {},
  );
}

// The link form is loaded where one is shown, which on most pages is the drawer.
onShown((within) => {
  if ($("[data-link-form], [data-name-check]", within)) import("./link_form.js");
});

onShown((within) => {
  if (/Mac|iPhone|iPad/.test(navigator.platform)) for (const key of $$("[data-mod]", within)) key.textContent = "⌘";
});

// The server needs the name of the time zone to know when the user's days begin.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";
// biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is not in every browser we support
document.cookie = `refract_zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax`;

showTheme();
