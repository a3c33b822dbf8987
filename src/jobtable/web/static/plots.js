// Plots whose data stands in the page: <figure data-plot> by plotly.js, <figure data-parallel> drawn here.
import { colour, layout, loadPlotly, options, plain } from "./charts.js";
import { drawParallel } from "./parallel.js";

const palette = ["#6366f1", "#2fae72", "#e8a13a", "#e0455a", "#3ba7d9", "#b05ad6", "#8a9a2f", "#d96a9b", "#4c8f8b", "#c2703d"];

function colourOf(given) {
  if (given.palette !== undefined) return given.palette < 0 ? colour("muted") : palette[given.palette % palette.length];
  return colour(given.colour ?? "accent-ground");
}

function trace(given) {
  return {
    ...given,
    name: plain(given.name ?? ""),
    type: given.type ?? "scatter",
    marker: { color: colourOf(given), size: given.size ?? 7, opacity: 0.9 },
    line: { color: colourOf(given), width: 2, shape: given.shape ?? "linear" },
    hovertemplate: given.text ? "%{text}<extra></extra>" : undefined,
  };
}

export async function drawPlot(figure) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  let place = figure.querySelector(".chart");
  if (!place) {
    place = document.createElement("div");
    place.className = "chart";
    place.textContent = "Loading …";
    figure.append(place);
  }
  const plotly = await loadPlotly(figure.dataset.plotly);
  if (place.textContent === "Loading …") place.textContent = "";
  const shown = layout(data.title ?? "", {
    height: data.height ?? 320,
    showlegend: data.traces.length > 1,
    legend: { orientation: "h", y: 1.12 },
    barmode: "group",
    hoverlabel: { align: "left" },
  });
  if (data.x) shown.xaxis.title = { text: plain(data.x) };
  if (data.y) shown.yaxis.title = { text: plain(data.y) };
  if (data.isMap) {
    for (const axis of [shown.xaxis, shown.yaxis]) Object.assign(axis, { visible: false });
    shown.yaxis.scaleanchor = "x";
  }
  await plotly.react(place, data.traces.map(trace), shown, options);
}

function drawAll() {
  for (const figure of document.querySelectorAll("[data-plot]")) {
    drawPlot(figure).catch((error) => { figure.querySelector(".chart").textContent = error.message; });
  }
  for (const figure of document.querySelectorAll("[data-parallel]")) drawParallel(figure);
}

document.addEventListener("theme", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
