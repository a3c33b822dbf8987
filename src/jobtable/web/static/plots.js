// Plots whose data is in the page: <figure data-plot> drawn by plotly.js, <figure data-parallel> drawn here.
import { colour, layout, loadPlotly, options, plain } from "./charts.js";
import { drawParallel } from "./parallel.js";

const palette = ["#6366f1", "#2fae72", "#e8a13a", "#e0455a", "#3ba7d9", "#b05ad6", "#8a9a2f", "#d96a9b", "#4c8f8b", "#c2703d"];

// After the palette, hues that are far apart, so that no two clusters look the same.
function numbered(number) {
  return palette[number] ?? `hsl(${Math.round(number * 137.5) % 360} 60% ${number % 2 ? 42 : 58}%)`;
}

function colourOf(given) {
  if (given.palette !== undefined) return given.palette < 0 ? colour("muted") : numbered(given.palette);
  return colour(given.colour ?? "accent-ground");
}

function trace(given) {
  return {
    ...given,
    name: plain(given.name ?? ""),
    type: given.type ?? "scatter",
    marker: { color: colourOf(given), size: given.size ?? 7, opacity: 0.9, symbol: given.symbol ?? "circle" },
    line: { color: colourOf(given), width: 2, shape: given.shape ?? "linear" },
    hovertemplate: given.text ? "%{text}<extra></extra>" : undefined,
  };
}

const mostLetters = 30; // beside an axis
const drawn = new WeakMap(); // the data that each figure shows

const dataOf = (figure) => figure.querySelector("script").textContent;

async function drawPlot(figure) {
  const data = JSON.parse(dataOf(figure));
  let place = figure.querySelector(".chart");
  if (!place) {
    place = document.createElement("div");
    place.className = "chart";
    place.dataset.drawn = "";
    place.textContent = "Loading…";
    figure.append(place);
  }
  const plotly = await loadPlotly(figure.dataset.plotly);
  if (place.textContent === "Loading…") place.textContent = "";
  const shown = layout(data.title ?? "", {
    height: place.clientHeight,
    showlegend: data.traces.length > 1 && !data.isMap,
    // Below the axis: above, it would cover points on small screens.
    legend: { orientation: "h", y: data.x ? -0.28 : -0.15, yanchor: "top" },
    barmode: data.isStacked ? "stack" : "group",
    hoverlabel: { align: "left" },
  });
  if (!data.title) shown.margin.t = 10;
  if (data.x) shown.xaxis.title = { text: plain(data.x), standoff: 6 };
  if (data.y) shown.yaxis.title = { text: plain(data.y.length > mostLetters ? `${data.y.slice(0, mostLetters - 1)}…` : data.y) };
  if (data.isByDay) {
    Object.assign(shown.xaxis, { type: "category", categoryorder: "category ascending" });
    Object.assign(shown.yaxis, { rangemode: "tozero", tickformat: data.format });
    if (data.isCount && Math.max(...data.traces.flatMap((each) => each.y)) < 6) shown.yaxis.dtick = 1;
    shown.bargap = 0.5;
  }
  if (data.isStacked) Object.assign(shown, { bargap: 0.2 }).xaxis.type = "date"; // many days: not each is named
  if (data.isMap) {
    for (const axis of [shown.xaxis, shown.yaxis]) Object.assign(axis, { visible: false });
    shown.yaxis.scaleanchor = "x";
    shown.margin = { t: 8, r: 8, b: 8, l: 8 };
  }
  await plotly.react(place, data.traces.map(trace), shown, options);
  if (data.isMap && data.traces.length > 1) drawLegend(plotly, figure, place, data.traces);
}

// Below the map, where it covers no points however many names it has; a click on a name hides or shows its points.
function drawLegend(plotly, figure, place, traces) {
  figure.querySelector(".legend")?.remove();
  const legend = document.createElement("ul");
  legend.className = "legend";
  legend.dataset.drawn = "";
  for (const [number, given] of traces.entries()) {
    const box = document.createElement("span");
    box.className = "legend-box";
    box.style.background = colourOf(given);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "legend-name";
    button.setAttribute("aria-pressed", "true");
    button.append(box, given.name);
    button.addEventListener("click", () => {
      const isShown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(isShown));
      plotly.restyle(place, { visible: isShown }, [number]);
    });
    const entry = document.createElement("li");
    entry.append(button);
    legend.append(entry);
  }
  figure.append(legend);
}

function drawFigure(figure) {
  drawn.set(figure, dataOf(figure));
  if (figure.dataset.parallel !== undefined) drawParallel(figure);
  else drawPlot(figure).catch((error) => { figure.querySelector(".chart").textContent = error.message; });
}

const figures = () => [...document.querySelectorAll("[data-plot], [data-parallel]")];

function drawAll() {
  figures().forEach(drawFigure);
}

function drawChanged() {
  figures().filter((figure) => drawn.get(figure) !== dataOf(figure)).forEach(drawFigure);
}

document.addEventListener("theme", drawAll);
document.addEventListener("regions", drawChanged);
window.addEventListener("resize", () => document.querySelectorAll("[data-parallel]").forEach(drawParallel));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
