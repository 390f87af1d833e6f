// The link form: what a name, a destination and campaign fields lead to, local times, and what follows saving.

import { readCampaign, setCampaign } from "./campaign.js";
import { copyText } from "./clipboard.js";
import { $, $$, onShown } from "./dom.js";
import { getJson } from "./http.js";
import { t } from "./i18n.js";
import "./tag_field.js";
import { showToast, showToastNext } from "./toast.js";

const TYPING_PAUSE_MS = 250;

const nameIn = (input) => input.value.trim().replace(/^\//, "");
const domainIn = (form) => form.elements.domain?.value ?? "";

const withDomain = (path, form) => {
  const domain = domainIn(form);
  return domain ? `${path}${path.includes("?") ? "&" : "?"}domain=${encodeURIComponent(domain)}` : path;
};

const nameUrl = (name, form) => withDomain(`/api/v1/names/${encodeURIComponent(name)}`, form);

// The API is in English, so its reason decides and not its sentence.
function describeReason(reason, name) {
  if (reason === "SLUG_TAKEN") return t("/{name} is already in use. Choose another.", { name });
  if (reason === "SLUG_RESERVED") return t("/{name} is reserved. Choose another.", { name });
  return t("Use up to 50 letters A to Z, numbers, - and _, starting with a letter or number.");
}

async function checkName(input, line) {
  const name = nameIn(input);
  line.dataset.state = "";
  line.textContent = "";
  showQr(input.form, "");
  if (!name) return;
  const url = nameUrl(name, input.form);
  const result = await getJson(url);
  if (nameIn(input) !== name || url !== nameUrl(name, input.form)) return;
  line.dataset.state = result.available ? "free" : "taken";
  if (result.available) showQr(input.form, name);
  line.textContent = result.available ? t("/{name} is available", { name }) : describeReason(result.reason, name);
}

// The QR code of a name that is available; a form without one has no place for it.
function showQr(form, name) {
  const image = $("[data-live-qr]", form);
  if (!image) return;
  if (name) image.src = withDomain(`/app/qr?name=${encodeURIComponent(name)}`, form);
  image.hidden = !name;
  image.nextElementSibling.hidden = Boolean(name);
}

function showName(input) {
  const live = $("[data-live-name]", input.form);
  if (live) live.textContent = nameIn(input) || live.dataset.blank;
}

function watchName(input) {
  const line = document.getElementById(input.dataset.nameCheck);
  const check = () => checkName(input, line).catch(() => {}); // saving the form reports the problem
  let timer = 0;
  input.addEventListener("input", () => {
    showName(input);
    clearTimeout(timer);
    timer = setTimeout(check, TYPING_PAUSE_MS);
  });
  input.form.elements.domain?.addEventListener("change", () => {
    showDomain(input.form);
    check();
  });
  if (input.value) check();
}

// The host of the chosen domain, before the name and in the preview.
function showDomain(form) {
  const host = `${form.elements.domain.selectedOptions[0].label}/`;
  const prefix = $(":scope > .field-prefix", form.elements.name.parentElement);
  const live = $("[data-live-host]", form);
  if (prefix) prefix.textContent = host;
  if (live) live.textContent = host;
}

// The server works in UTC. The field shows local time, and a hidden field holds the offset.
function watchTime(input) {
  const zone = input.form.elements[`${input.name}_zone`];
  if (input.value && zone.value === "0") {
    const at = new Date(`${input.value}Z`);
    input.value = new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  }
  const storeOffset = () => {
    zone.value = String((input.value ? new Date(input.value) : new Date()).getTimezoneOffset());
  };
  storeOffset();
  input.addEventListener("input", storeOffset);
  const hint = document.getElementById(`${input.id}-hint`);
  if (hint) hint.textContent = t("Your local time.");
}

function watchOnce(selector, within, watch) {
  for (const input of $$(`${selector}:not([data-watched])`, within)) {
    input.dataset.watched = "";
    watch(input);
  }
}

// ---- title --------------------------------------------------------------------------------------

// The title of the page is filled into a new link until someone types one, and offered to an existing link.
function fillTitle(form, title) {
  const field = form.elements.title;
  if (!field || form.elements.link || (field.value && field.dataset.filled !== field.value)) return;
  field.value = title;
  field.dataset.filled = title;
  $("[data-fill]", form)?.remove();
}

// The preview shows what was found, or else what is typed: the card of the link before its title.
function showTyped(form, selector, typed) {
  const live = $(selector, form);
  if (!live) return;
  live.dataset.found ??= live.textContent;
  live.textContent = typed || live.dataset.found;
}

function showCard(form) {
  const read = (name) => form.elements[name]?.value.trim() ?? "";
  const [title, text, image] = ["card_title", "card_description", "card_image"].map(read);
  const host = $("[data-live-host]", form)?.textContent.replace(/\/$/, "");
  showTyped(form, "[data-live-title]", title || read("title"));
  showTyped(form, "[data-live-text]", text);
  showTyped(form, "[data-live-image]", URL.canParse(image) ? new URL(image).host : "");
  showTyped(form, "[data-live-card-host]", (title || text || image) && host);
}

function watchCard(form) {
  for (const name of ["title", "card_title", "card_description", "card_image"]) {
    form.elements[name]?.addEventListener("input", () => showCard(form));
  }
}

document.addEventListener("click", (event) => {
  const offer = event.target.closest("[data-fill]");
  const field = offer && document.getElementById(offer.dataset.fill);
  if (!field) return;
  field.value = offer.dataset.fillWith;
  field.focus();
});

// ---- campaign -----------------------------------------------------------------------------------

// The fields and the query of the destination are the same thing: a change of one is shown by the other.
function watchCampaign(form) {
  const destination = form.elements.destination;
  const fields = $$("[data-utm]", form);
  if (!destination || !fields.length) return;
  destination.addEventListener("input", ({ isTrusted }) => {
    const found = readCampaign(destination.value);
    if (isTrusted) for (const field of fields) field.value = found[field.dataset.utm] ?? "";
  });
  for (const field of fields) {
    field.addEventListener("input", () => {
      if (!destination.value.trim()) return;
      destination.value = setCampaign(destination.value, field.dataset.utm, field.value.trim());
    });
  }
}

// A template fills its fields, which may be edited afterwards. Without script the server sets them, so its name goes.
function watchTemplates(select) {
  const values = JSON.parse(select.dataset.utmTemplates);
  const form = select.form;
  select.removeAttribute("name");
  select.addEventListener("change", () => {
    for (const [key, value] of Object.entries(values[select.value] ?? {})) {
      const field = form.elements[key];
      field.value = value;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
  });
}

// ---- defaults of a team -------------------------------------------------------------------------

// They fill what is as the form, or the defaults of another team, left it.
function watchTeam(select) {
  const defaults = JSON.parse(select.dataset.teamDefaults);
  const form = select.form;
  let filled = defaults[select.value] ?? { tags: "", domain: "" };
  select.addEventListener("change", () => {
    const chosen = defaults[select.value] ?? { tags: "", domain: "" };
    for (const [name, value] of Object.entries(chosen)) {
      const field = form.elements[name];
      if (!field || field.value !== filled[name]) continue;
      field.value = value;
      field.dispatchEvent(new Event(name === "domain" ? "change" : "input", { bubbles: true }));
    }
    filled = chosen;
  });
}

// ---- saved --------------------------------------------------------------------------------------

// The table stays where it is and shows the change; elsewhere the page of the link is opened.
document.addEventListener("refract:link-saved", async ({ detail }) => {
  const copied = detail.copy ? await copyText(detail.copy) : false;
  const toast = { message: copied ? detail.copied : detail.message, undo: detail.undo };
  if ($("[data-link-results]") && $("#drawer[open]")) {
    $("#drawer").close();
    showToast(toast);
    window.htmx.ajax("GET", location.href, { target: "#results", select: "#results", swap: "outerHTML" });
  } else {
    showToastNext(toast);
    location.assign(detail.href);
  }
});

onShown((within) => {
  watchOnce("[data-name-check]", within, watchName);
  watchOnce("[data-local-time]", within, watchTime);
  watchOnce("[data-link-form]", within, watchCard);
  watchOnce("[data-team-defaults]", within, watchTeam);
  watchOnce("[data-utm-templates]", within, watchTemplates);
  watchOnce("[data-campaign]", within, (part) => watchCampaign(part.closest("form")));
  const form = within.id === "looks" && within.closest("form");
  if (!form) return;
  const found = $("[data-page-title]", within);
  if (found) fillTitle(form, found.dataset.pageTitle);
  showCard(form);
});
