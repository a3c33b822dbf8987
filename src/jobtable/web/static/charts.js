// Charts drawn by plotly.js, which is loaded for the first one.

let loaded;

export function loadPlotly(address) {
  loaded ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("Could not load the charts."));
    document.head.append(script);
  });
  return loaded;
}

export function colour(name) {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

// plotly.js interprets some markup in texts; data must be shown literally.
export function plain(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

export function layout(title, more = {}) {
  const axis = { gridcolor: colour("line"), zerolinecolor: colour("line"), automargin: true };
  return {
    title: { text: plain(title), font: { size: 14 }, x: 0, xanchor: "left", pad: { l: 6 } },
    height: 260,
    margin: { t: 36, r: 12, b: 36, l: 44 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("text"), family: "system-ui, sans-serif", size: 12 },
    showlegend: false,
    xaxis: { ...axis },
    yaxis: { ...axis },
    ...more,
  };
}

// To as many digits as people read.
export const rounded = (value) => Number(value.toPrecision(6));

// For a constant value, plotly.js would choose an axis from one less to one more, on which 0.02 looks like 0.
function aroundOne(value) {
  const margin = Math.abs(value) / 2 || 1;
  return [value - margin, value + margin];
}

// A line titled with its last value, over its steps, epochs or times.
function layoutOf({ name, by, x, y }) {
  const isByTime = by === "time";
  const shown = layout(`${name}: ${rounded(y.at(-1))}${isByTime ? "" : ` at ${by} ${x.at(-1)}`}`);
  if (!isByTime) shown.xaxis.title = { text: by, standoff: 6 };
  if (y.every((value) => value === y[0])) shown.yaxis.range = aroundOne(y[0]);
  return shown;
}

// Short lines have markers: a line of one point would be invisible.
function modeOf({ y }) {
  const lines = 1 + y.filter((value) => value === null).length;
  return y.length / lines < 60 ? "lines+markers" : "lines";
}

// A restarted job counts its steps from the start: values of earlier runs are a line of their own, in a paler colour.
function tracesOf({ by, x, y }) {
  const isBackAt = (number) => by !== "time" && number > 0 && x[number] < x[number - 1];
  const start = Math.max(0, x.findLastIndex((_, number) => isBackAt(number)));
  const earlier = { x: [], y: [] };
  const add = (at, value) => (earlier.x.push(at), earlier.y.push(value));
  for (const [number, at] of x.slice(0, start).entries()) {
    if (isBackAt(number)) add(at, null); // a gap
    add(at, y[number]);
  }
  const last = { x: x.slice(start), y: y.slice(start) }; // plotly.js redraws only a different array
  return [
    { ...earlier, mode: modeOf(earlier), line: { color: colour("faint"), width: 1.5 } },
    { ...last, mode: modeOf(last), line: { color: colour("accent-ground"), width: 2 } },
  ];
}

export const options = { displayModeBar: false, responsive: true };

// One chart for each line, in the order of the lines.
export async function draw(section, lines) {
  const place = section.querySelector("[data-charts]");
  if (!place.children.length) place.innerHTML = '<p class="loading">Loading charts…</p>';
  let plotly;
  try {
    plotly = await loadPlotly(section.dataset.plotly);
  } catch (error) {
    place.textContent = error.message;
    return;
  }
  place.querySelector(".loading")?.remove();
  for (const [number, line] of lines.entries()) {
    let chart = place.querySelector(`[data-chart="${CSS.escape(line.name)}"]`);
    if (!chart) {
      chart = document.createElement("div");
      chart.className = "chart";
      chart.dataset.chart = line.name;
      chart.setAttribute("role", "img");
      chart.setAttribute("aria-label", `Chart of ${line.name}`);
      place.insertBefore(chart, place.children[number] ?? null);
    }
    await plotly.react(chart, tracesOf(line), layoutOf(line), options);
  }
}
