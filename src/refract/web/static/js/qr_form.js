// The page of a QR code: it is drawn again while its looks are changed, or says why scanners would fail.

import { $, $$, onShown } from "./dom.js";
import { t } from "./i18n.js";

const PAUSE_MS = 200;
const MIN_CONTRAST = 0.4; // as in `refract.links.qr_styles`
const STYLE_FIELDS = ["color", "background", "margin", "correction", "shape"];

function computeLuminance(color) {
  const [red, green, blue] = [1, 3, 5].map((place) => {
    const value = Number.parseInt(color.slice(place, place + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function findProblem(color, background) {
  const contrast = computeLuminance(background) - computeLuminance(color);
  if (contrast < 0) return t("Many scanners can't read a light code on a dark background. Swap the colors.");
  if (contrast >= MIN_CONTRAST) return "";
  return t(
    "Scanners can't tell the code from its background. Choose a darker color for the code or a lighter background.",
  );
}

function buildUrl(form) {
  const looks = new URLSearchParams(form.dataset.qrForm);
  for (const name of STYLE_FIELDS) looks.set(name, form.elements[name].value);
  looks.set("logo", String(form.elements.logo.checked));
  return `/app/qr?${looks}`;
}

function draw(form) {
  const problem = $("[data-qr-problem]", form);
  const words = findProblem(form.elements.color.value, form.elements.background.value);
  $("span", problem).textContent = words;
  problem.hidden = !words;
  if (words || !form.checkValidity()) return;
  const url = buildUrl(form);
  $("[data-qr-image]", form).src = url;
  for (const link of $$("[data-qr-file]", form)) link.href = `${url}&format=${link.dataset.qrFile}`;
}

function watchLooks(form) {
  let timer = 0;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(draw, PAUSE_MS, form);
  });
}

onShown((within) => {
  for (const form of $$("[data-qr-form]:not([data-watched])", within)) {
    form.dataset.watched = "";
    watchLooks(form);
  }
});
