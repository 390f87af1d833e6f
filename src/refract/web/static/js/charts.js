// Draws the charts in data-chart with uPlot, in the colors of the page, and adds live clicks.

import { $, $$ } from "./dom.js";
import { formatNumber, locale } from "./i18n.js";

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

const AXIS_FORMATS = {
  hour: { hour: "2-digit", minute: "2-digit" },
  day: { day: "numeric", month: "short" },
  week: { day: "numeric", month: "short" },
  month: { month: "short" },
};
const TIP_FORMATS = {
  hour: { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
  day: { weekday: "short", day: "numeric", month: "short", year: "numeric" },
  week: { dateStyle: "medium" },
  month: { month: "long", year: "numeric" },
};
const LABEL_PIXELS = 72;

function timeFormat(options, timeZone) {
  const format = new Intl.DateTimeFormat(locale, { ...options, timeZone });
  return (seconds) => format.format(seconds * 1_000);
}

/** Return labels for points of the chart: hours name the day where it begins, months the year where it does. */
function axisLabels({ by, zone }) {
  const label = timeFormat(AXIS_FORMATS[by], zone);
  const outer = { hour: AXIS_FORMATS.day, month: { month: "short", year: "numeric" } }[by];
  if (!outer) return (times) => times.map(label);
  const group = timeFormat(by === "hour" ? AXIS_FORMATS.day : { year: "numeric" }, zone);
  const first = timeFormat(outer, zone);
  return (times) =>
    times.map((at, index) => (index === 0 || group(at) !== group(times[index - 1]) ? first(at) : label(at)));
}

/** Choose points for labels: as many as fit, at equal distances. */
function chooseSplits(times, width) {
  const step = Math.max(1, Math.ceil(times.length / Math.max(1, Math.floor(width / LABEL_PIXELS))));
  return times.filter((_at, index) => index % step === 0);
}

function createTip() {
  const tip = document.createElement("div");
  tip.className = "chart-tip";
  tip.hidden = true;
  return tip;
}

function moveTip(tip, plot, data, formatTime) {
  const index = plot.cursor.idx;
  tip.hidden = index == null;
  if (index == null) return;
  const lines = data.series.map((line) => `${line.label}: ${formatNumber(line.values[index] ?? 0)}`);
  tip.replaceChildren(
    ...[formatTime(data.at[index]), ...lines].map((text) => {
      const line = document.createElement("span");
      line.textContent = text;
      return line;
    }),
  );
  const left = plot.valToPos(data.at[index], "x") + plot.bbox.left / devicePixelRatio;
  const room = plot.root.parentElement.clientWidth - tip.offsetWidth;
  tip.style.insetInlineStart = `${Math.max(0, Math.min(room, left - tip.offsetWidth / 2))}px`;
}

function axes(data, ink, line) {
  const font = `12px ${getComputedStyle(document.documentElement).getPropertyValue("--font").trim()}`;
  const axis = { stroke: ink, font, ticks: { show: false }, grid: { stroke: line, width: 1 } };
  const wholeNumber = (value) => (Number.isInteger(value) ? formatNumber(value) : "");
  const labels = axisLabels(data);
  return [
    {
      ...axis,
      grid: { show: false },
      splits: (plot) => chooseSplits(data.at, plot.bbox.width / devicePixelRatio),
      values: (_plot, times) => labels(times),
      size: 28,
    },
    { ...axis, values: (_plot, values) => values.map(wholeNumber), size: 44, space: 36 },
  ];
}

/** Return series and their values. A point that is not over is the end of a dashed line of its own. */
function lines(data, [ink, accent, wash, second]) {
  const last = data.at.length - 1;
  const series = [{}];
  const values = [data.at];
  const runs = data.running && last > 0;
  for (const [number, line] of data.series.entries()) {
    const stroke = line.look === "dashed" ? ink : number ? second : accent;
    const dash = line.look === "dashed" ? [4, 4] : undefined;
    const base = { label: line.label, stroke, width: dash ? 1 : 2, dash, points: { show: last < 2 } };
    const cut = runs && !dash;
    series.push(number ? base : { ...base, fill: wash });
    values.push(cut ? line.values.map((value, index) => (index === last ? null : value)) : line.values);
    if (!cut) continue;
    series.push({ ...base, dash: [3, 4], points: { show: false } });
    values.push(line.values.map((value, index) => (index < last - 1 ? null : value)));
  }
  return [series, values];
}

function draw(area) {
  const data = JSON.parse(area.dataset.chart);
  if (!data.at.length || !window.uPlot) return;
  const [ink, line, accent, wash, second] = ["--ink-faint", "--line", "--accent", "--accent-wash", "--expired"].map(
    colorOf,
  );
  const tip = createTip();
  const formatTip = timeFormat(TIP_FORMATS[data.by], data.zone);
  const [series, values] = lines(data, [ink, accent, wash, second]);
  const options = {
    width: area.clientWidth,
    height: area.clientHeight,
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 7, fill: (_plot, at) => series[at].stroke, stroke: (_plot, at) => series[at].stroke },
    },
    scales: { x: { time: true }, y: { range: (_plot, _low, high) => [0, Math.max(4, high * 1.1)] } },
    axes: axes(data, ink, line),
    series,
    hooks: { setCursor: [(plot) => moveTip(tip, plot, data, formatTip)] },
  };
  plots.get(area)?.destroy();
  area.replaceChildren();
  plots.set(area, new window.uPlot(options, values, area));
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

// ---- the map ------------------------------------------------------------------------------------

// Its outlines are a large file, and most visits end above it.
const mapObserver = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) showMap(target);
});

function showMap(map) {
  mapObserver.unobserve(map);
  for (const place of $$("[data-place]", map)) place.setAttribute("href", `${map.dataset.map}#${place.dataset.place}`);
}

function watchMaps(within = document) {
  for (const map of $$("[data-map]", within)) mapObserver.observe(map);
}

addEventListener("beforeprint", () => $$("[data-map]").forEach(showMap));

// ---- live ---------------------------------------------------------------------------------------

let source = null;

// New clicks are added to the newest point of the chart and to its total, unless that period has ended.
function addClicks(block, count) {
  const area = $("[data-chart]", block);
  const total = $("[data-live-period]", block);
  if (!total || count <= 0) return;
  if (!area) {
    // The first click of a period: there was nothing to draw before.
    window.htmx?.ajax("GET", location.href, { target: "#analytics", select: "#analytics", swap: "outerHTML" });
    return;
  }
  const data = JSON.parse(area.dataset.chart);
  const step = data.at.length > 1 ? data.at.at(-1) - data.at.at(-2) : DAY_SECONDS;
  if (Date.now() / 1_000 >= data.at.at(-1) + step) return;
  const clicks = data.series[0].values;
  clicks[clicks.length - 1] += count;
  area.dataset.chart = JSON.stringify(data);
  draw(area);
  const sum = clicks.reduce((before, number) => before + number, 0);
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
    if (totals.clicks > known) document.body.dispatchEvent(new CustomEvent("refract:clicks"));
    known = totals.clicks;
    for (const element of $$("[data-live]")) showNumber(element, totals[element.dataset.live] ?? 0);
    $("[data-live-state]")?.classList.add("live-on");
  });
  source.addEventListener("error", () => $("[data-live-state]")?.classList.remove("live-on"));
}

// ---- panels in tabs ------------------------------------------------------------------------------

function selectTab(tab) {
  for (const other of $$("[role=tab]", tab.closest("[role=tablist]"))) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", String(chosen));
    other.tabIndex = chosen ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).classList.toggle("later-panel", !chosen);
  }
}

document.addEventListener("click", (event) => {
  const tab = event.target.closest("[data-panels] [role=tab]");
  if (tab) selectTab(tab);
  if (event.target.closest("[data-chart-save]")) savePicture();
});
document.addEventListener("keydown", (event) => {
  const tab = event.target.closest?.("[data-panels] [role=tab]");
  const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!tab || !move) return;
  const all = $$("[role=tab]", tab.closest("[role=tablist]"));
  const next = all[(all.indexOf(tab) + move + all.length) % all.length];
  selectTab(next);
  next.focus();
});

// ---- the chart as a picture ----------------------------------------------------------------------

function savePicture() {
  const canvas = $("[data-chart] canvas");
  if (!canvas) return;
  const picture = document.createElement("canvas");
  picture.width = canvas.width;
  picture.height = canvas.height;
  const context = picture.getContext("2d");
  context.fillStyle = colorOf("--surface");
  context.fillRect(0, 0, picture.width, picture.height);
  context.drawImage(canvas, 0, 0);
  picture.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = "clicks.png";
    link.click();
    URL.revokeObjectURL(link.href);
  });
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
  watchMaps(around);
  if ($("[data-live-source]", around)) listen();
});
drawAll();
watchMaps();
listen();
