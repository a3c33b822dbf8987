// Charts by plotly.js, which is loaded when the first one is drawn.

let loaded;

export function loadPlotly(address) {
  loaded ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("The charts could not be loaded."));
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

// plotly.js takes some markup in texts; what comes from data is to be shown as it is.
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

export const options = { displayModeBar: false, responsive: true };

// One chart for each line, in the order of the lines.
export async function draw(section, lines) {
  const place = section.querySelector("[data-charts]");
  if (!place.children.length) place.innerHTML = '<p class="loading">Loading charts …</p>';
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
    const mode = line.x.length < 60 ? "lines+markers" : "lines";
    // plotly.js draws an array again only when it is another one.
    const trace = { x: [...line.x], y: [...line.y], mode, line: { color: colour("accent-ground"), width: 2 } };
    await plotly.react(chart, [trace], layout(line.name), options);
  }
}
