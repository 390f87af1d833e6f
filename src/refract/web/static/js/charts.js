// Draws the charts in data-chart with uPlot, in the colors of the page, and adds live clicks.

import { $, $$ } from "./dom.js";
import { formatNumber, locale, t, tn } from "./i18n.js";

const REDRAW_MS = 120;
const DAY_SECONDS = 86_400;
const plots = new Map(); // element → plot

// The browser resolves light-dark() only where a color is used, so a hidden element reads the result.
const probe = document.createElement("i");
probe.hidden = true;
document.body.append(probe);

function colorOf(token) {
  probe.style.color = `var(${token})`;
  return getComputedStyle(probe).color;
}

// ---- drawing ------------------------------------------------------------------------------------

/** Return formats for the axis and for the tip, as fine as the steps of the chart. */
function timeFormats({ at, zone: timeZone }) {
  const step = at.length > 1 ? at[1] - at[0] : DAY_SECONDS;
  const axis = step < DAY_SECONDS ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" };
  const tip = step < DAY_SECONDS ? { dateStyle: "medium", timeStyle: "short" } : { dateStyle: "medium" };
  return [axis, tip].map((options) => {
    const format = new Intl.DateTimeFormat(locale, { ...options, timeZone });
    return (seconds) => format.format(seconds * 1_000);
  });
}

function createTip() {
  const tip = document.createElement("div");
  tip.className = "chart-tip";
  tip.hidden = true;
  return tip;
}

function describePoint({ clicks, previous }, index, time) {
  const count = clicks[index];
  if (!previous) return tn("{time}: {n} click", "{time}: {n} clicks", count, { time });
  const values = { time, previous: formatNumber(previous[index] ?? 0) };
  return tn("{time}: {n} click (previously {previous})", "{time}: {n} clicks (previously {previous})", count, values);
}

function moveTip(tip, plot, data, formatTime) {
  const index = plot.cursor.idx;
  tip.hidden = index == null;
  if (index == null) return;
  tip.textContent = describePoint(data, index, formatTime(data.at[index]));
  const left = plot.valToPos(data.at[index], "x") + plot.bbox.left / devicePixelRatio;
  const room = plot.root.parentElement.clientWidth - tip.offsetWidth;
  tip.style.insetInlineStart = `${Math.max(0, Math.min(room, left - tip.offsetWidth / 2))}px`;
}

function axes(ink, line, formatTime) {
  const font = `12px ${getComputedStyle(document.documentElement).getPropertyValue("--font").trim()}`;
  const axis = { stroke: ink, font, ticks: { show: false }, grid: { stroke: line, width: 1 } };
  const wholeNumber = (value) => (Number.isInteger(value) ? formatNumber(value) : "");
  return [
    { ...axis, grid: { show: false }, values: (_plot, at) => at.map(formatTime), space: 64, size: 28 },
    { ...axis, values: (_plot, values) => values.map(wholeNumber), size: 44, space: 36 },
  ];
}

function draw(area) {
  const data = JSON.parse(area.dataset.chart);
  if (!data.at.length || !window.uPlot) return;
  const [ink, line, accent, wash] = ["--ink-faint", "--line", "--accent", "--accent-wash"].map(colorOf);
  const [formatAxis, formatTip] = timeFormats(data);
  const tip = createTip();
  const clicks = { label: t("Clicks"), stroke: accent, fill: wash, width: 2, points: { show: data.at.length < 3 } };
  const previous = { label: t("Previous period"), stroke: ink, width: 1, dash: [4, 4], points: { show: false } };
  const options = {
    width: area.clientWidth,
    height: area.clientHeight,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 7, fill: accent, stroke: accent } },
    scales: { x: { time: true }, y: { range: (_plot, _low, high) => [0, Math.max(4, high * 1.1)] } },
    axes: axes(ink, line, formatAxis),
    series: [{}, clicks, { ...previous, show: Boolean(data.previous) }],
    hooks: { setCursor: [(plot) => moveTip(tip, plot, data, formatTip)] },
  };
  plots.get(area)?.destroy();
  area.replaceChildren();
  plots.set(area, new window.uPlot(options, [data.at, data.clicks, data.previous ?? data.at.map(() => null)], area));
  area.append(tip);
}

function drawAll(within = document) {
  for (const area of $$("[data-chart]", within)) draw(area);
}

let timer = 0;
function redrawSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    for (const area of [...plots.keys()]) if (!area.isConnected) plots.delete(area);
    drawAll();
  }, REDRAW_MS);
}

// ---- live ---------------------------------------------------------------------------------------

let source = null;

// New clicks are added to the newest point of the chart and to its total, unless that period has ended.
function addClicks(block, count) {
  const area = $("[data-chart]", block);
  const total = $("[data-live-period]", block);
  if (!area || !total || count <= 0) return;
  const data = JSON.parse(area.dataset.chart);
  const step = data.at.length > 1 ? data.at.at(-1) - data.at.at(-2) : DAY_SECONDS;
  if (Date.now() / 1_000 >= data.at.at(-1) + step) return;
  data.clicks[data.clicks.length - 1] += count;
  area.dataset.chart = JSON.stringify(data);
  draw(area);
  const sum = data.clicks.reduce((before, clicks) => before + clicks, 0);
  showNumber(total, sum);
}

function showNumber(element, value) {
  const text = formatNumber(value);
  if (element.textContent === text) return;
  element.textContent = text;
  element.classList.remove("ticked");
  void element.offsetWidth; // restarts the animation
  element.classList.add("ticked");
}

function listen() {
  const block = $("[data-live-source]");
  source?.close();
  if (!block) return;
  let known = Number(block.dataset.liveSince);
  source = new EventSource(block.dataset.liveSource);
  source.addEventListener("clicks", (event) => {
    const totals = JSON.parse(event.data);
    addClicks(block, totals.clicks - known);
    known = totals.clicks;
    for (const element of $$("[data-live]")) showNumber(element, totals[element.dataset.live] ?? 0);
    $("[data-live-state]")?.classList.add("live-on");
  });
  source.addEventListener("error", () => $("[data-live-state]")?.classList.remove("live-on"));
}

addEventListener("resize", redrawSoon);
addEventListener("pagehide", () => source?.close());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawSoon);
new MutationObserver(redrawSoon).observe(document.documentElement, {
  attributes: true,
  attributeFilter: ["data-theme"],
});
document.addEventListener("refract:shown", (event) => {
  const around = event.detail.within.parentElement ?? document;
  drawAll(around);
  if ($("[data-live-source]", around)) listen();
});
drawAll();
listen();
