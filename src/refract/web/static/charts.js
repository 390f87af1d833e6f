// Draws what the server has put into data-chart, with uPlot, in the colours of the page; and lets totals tick as clicks come.

const $ = (selector, within = document) => within.querySelector(selector);
const drawn = new Map(); // element → plot
const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// light-dark() is resolved by the browser only where a colour is used: a probe tells what it came to.
const probe = document.createElement("i");
probe.hidden = true;
document.body.append(probe);

function color(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

function draw(area) {
  const data = JSON.parse(area.dataset.chart);
  if (!data.at.length || !window.uPlot) return;
  const [ink, line, accent, wash] = ["--ink-faint", "--line", "--accent", "--accent-wash"].map(color);
  const font = `12px ${token("--font")}`;
  const whole = (values) => values.map((value) => (Number.isInteger(value) ? value.toLocaleString() : ""));
  const axis = { stroke: ink, font, ticks: { show: false }, grid: { stroke: line, width: 1 } };
  const step = data.at.length > 1 ? data.at[1] - data.at[0] : 86_400;
  const day = new Intl.DateTimeFormat(undefined, step < 86_400 ? { hour: "2-digit", minute: "2-digit", timeZone: data.zone } : { day: "numeric", month: "short", timeZone: data.zone });
  const full = new Intl.DateTimeFormat(undefined, step < 86_400 ? { dateStyle: "medium", timeStyle: "short", timeZone: data.zone } : { dateStyle: "medium", timeZone: data.zone });
  const tip = document.createElement("div");
  tip.className = "chart-tip";
  tip.hidden = true;
  const options = {
    width: area.clientWidth,
    height: area.clientHeight,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 7, fill: accent, stroke: accent } },
    scales: { x: { time: true }, y: { range: (_plot, _low, high) => [0, Math.max(4, high * 1.1)] } },
    axes: [
      { ...axis, grid: { show: false }, values: (_plot, at) => at.map((one) => day.format(one * 1_000)), space: 64, size: 28 },
      { ...axis, values: (_plot, values) => whole(values), size: 44, space: 36 },
    ],
    series: [
      {},
      { label: "People", stroke: accent, fill: wash, width: 2, points: { show: data.at.length < 3 } },
      { label: "the time before", stroke: ink, width: 1, dash: [4, 4], points: { show: false }, show: Boolean(data.previous) },
    ],
    hooks: {
      setCursor: [(plot) => {
        const here = plot.cursor.idx;
        tip.hidden = here == null;
        if (here == null) return;
        const before = data.previous ? ` · ${(data.previous[here] ?? 0).toLocaleString()} before` : "";
        tip.textContent = `${full.format(data.at[here] * 1_000)}: ${data.clicks[here].toLocaleString()} people${before}`;
        const left = plot.valToPos(data.at[here], "x") + plot.bbox.left / devicePixelRatio;
        tip.style.insetInlineStart = `${Math.max(0, Math.min(area.clientWidth - tip.offsetWidth, left - tip.offsetWidth / 2))}px`;
      }],
    },
  };
  drawn.get(area)?.destroy();
  area.replaceChildren();
  drawn.set(area, new window.uPlot(options, [data.at, data.clicks, data.previous ?? data.at.map(() => null)], area));
  area.append(tip);
}

function drawAll(within = document) {
  for (const area of within.querySelectorAll("[data-chart]")) draw(area);
}

let timer = 0;
const again = () => {
  clearTimeout(timer);
  timer = setTimeout(() => {
    for (const area of [...drawn.keys()]) if (!area.isConnected) drawn.delete(area);
    drawAll();
  }, 120);
};

// ---- live ------------------------------------------------------------------------------------------------------------

let source = null;

// New clicks belong to the newest point of the chart and to the total of its time, as long as that time is not over.
function grow(block, by) {
  const area = $("[data-chart]", block);
  const total = $("[data-live-period]", block);
  if (!area || !total || by <= 0) return;
  const data = JSON.parse(area.dataset.chart);
  const step = data.at.length > 1 ? data.at.at(-1) - data.at.at(-2) : 86_400;
  if (Date.now() / 1_000 >= data.at.at(-1) + step) return;
  data.clicks[data.clicks.length - 1] += by;
  area.dataset.chart = JSON.stringify(data);
  draw(area);
  show(total, data.clicks.reduce((sum, one) => sum + one, 0));
}

function show(number, value) {
  const words = value.toLocaleString();
  if (number.textContent === words) return;
  number.textContent = words;
  number.classList.remove("ticked");
  void number.offsetWidth; // begins the animation anew
  number.classList.add("ticked");
}

function follow() {
  const block = $("[data-live-source]");
  source?.close();
  if (!block) return;
  let known = Number(block.dataset.liveSince);
  source = new EventSource(block.dataset.liveSource);
  source.addEventListener("clicks", (event) => {
    const told = JSON.parse(event.data);
    grow(block, told.clicks - known);
    known = told.clicks;
    for (const number of document.querySelectorAll("[data-live]")) show(number, told[number.dataset.live] ?? 0);
    $("[data-live-state]")?.classList.add("live-on");
  });
  source.addEventListener("error", () => $("[data-live-state]")?.classList.remove("live-on"));
}

addEventListener("resize", again);
addEventListener("pagehide", () => source?.close());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
new MutationObserver(again).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
document.addEventListener("refract:shown", (event) => {
  drawAll(event.detail.within.parentElement ?? document);
  if ($("[data-live-source]", event.detail.within.parentElement ?? document)) follow();
});
drawAll();
follow();
