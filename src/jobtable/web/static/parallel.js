// Parallel coordinates as SVG: an axis for each column, a line for each row; the first rows are the best.

const svg = "http://www.w3.org/2000/svg";
const [height, top, bottom, leastGap, widestGap, letterWidth] = [320, 34, 24, 92, 160, 8.5];

function make(name, attributes, text) {
  const element = document.createElementNS(svg, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// A logarithmic parameter has a logarithmic axis; otherwise most values would be at one end.
function scaleOf(values, isLog) {
  const given = values.filter((value) => value !== null && value !== undefined);
  if (given.every((value) => typeof value === "number")) {
    const along = isLog ? Math.log : (value) => value;
    const [least, most] = [Math.min(...given), Math.max(...given)];
    const [low, high] = [along(least), along(most)];
    const at = (value) => (high === low ? 0.5 : (along(value) - low) / (high - low));
    return { at, ends: [shortened(least), shortened(most)] };
  }
  const names = [...new Set(given.map(String))].sort();
  const at = (value) => (names.length < 2 ? 0.5 : names.indexOf(String(value)) / (names.length - 1));
  return { at, ends: [names[0], names.at(-1)] };
}

function shortened(number) {
  return Number.isInteger(number) ? String(number) : number.toPrecision(3);
}

// Text without room between two axes is cut; the tooltip has all of it.
function label(at, y, kind, text, room) {
  const most = Math.floor(room / letterWidth);
  const made = make("text", { x: at, y, class: kind }, text.length > most ? `${text.slice(0, most - 1)}…` : text);
  if (text.length > most) made.append(make("title", {}, text));
  return made;
}

export function drawParallel(figure) {
  const { axes, isLog, rows } = JSON.parse(figure.querySelector("script").textContent);
  // As wide as its place, unless the names of the axes need more: then the place scrolls.
  const longest = Math.max(...axes.map((name) => name.length)) * letterWidth;
  const width = Math.max(figure.clientWidth, axes.length * Math.min(widestGap, Math.max(leastGap, longest)));
  const drawing = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": figure.getAttribute("aria-label"), class: "parallel", "data-drawn": "" });
  const scales = axes.map((_, number) => scaleOf(rows.map((row) => row[number]), isLog[number]));
  const x = (number) => 50 + (axes.length < 2 ? 0 : (number * (width - 100)) / (axes.length - 1));
  const y = (share) => height - bottom - share * (height - top - bottom);
  const best = Math.max(1, Math.ceil(rows.length / 10));
  for (const [place, row] of [...rows.entries()].reverse()) {
    const points = row.map((value, number) => (value === null ? null : `${x(number)},${y(scales[number].at(value))}`));
    const line = make("polyline", { points: points.filter(Boolean).join(" "), class: place < best ? "parallel-best" : "parallel-line" });
    line.append(make("title", {}, axes.map((name, number) => `${name} ${row[number]}`).join("\n")));
    drawing.append(line);
  }
  const room = axes.length < 2 ? 100 : x(1) - x(0);
  for (const [number, name] of axes.entries()) {
    drawing.append(make("line", { x1: x(number), x2: x(number), y1: top, y2: height - bottom, class: "parallel-axis" }));
    drawing.append(label(x(number), 12, "parallel-name", name, room));
    drawing.append(label(x(number), top - 6, "parallel-end", scales[number].ends[1], room));
    drawing.append(label(x(number), height - 8, "parallel-end", scales[number].ends[0], room));
  }
  figure.querySelector("svg")?.remove();
  figure.append(drawing);
}
