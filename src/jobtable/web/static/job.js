// The page of one job: its log grows, its parts follow, its metrics are drawn.
import { askServer } from "./server.js";
import { leaveFor, refreshRegions } from "./app.js";
import { draw } from "./charts.js";

const jobId = document.body.dataset.jobPage;
const log = document.querySelector("[data-log]");
const levels = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];
const mostLines = 5000;

function matches(line) {
  const least = Number(document.querySelector("[data-log-level]").value);
  const text = document.querySelector("[data-log-search]").value.toLowerCase();
  return Number(line.dataset.level) >= least && (!text || line.textContent.toLowerCase().includes(text));
}

function filterLines() {
  let shown = 0;
  for (const line of log.querySelectorAll(".line")) {
    line.hidden = !matches(line);
    if (!line.hidden) shown += 1;
  }
  log.querySelector("[data-log-empty]").hidden = shown > 0;
}

function follow() {
  if (document.querySelector("[data-log-follow]").checked) log.scrollTop = log.scrollHeight;
}

function addLine(entry) {
  const seen = log.querySelectorAll(".line");
  const last = seen[seen.length - 1];
  if (last && new Date(entry.timestamp) <= new Date(last.dataset.at) && last.dataset.at >= entry.timestamp) return;
  const line = document.createElement("div");
  line.className = `line line-${entry.log_level.toLowerCase()}`;
  line.dataset.level = levels.indexOf(entry.log_level);
  line.dataset.at = entry.timestamp;
  const time = document.createElement("time");
  time.dateTime = entry.timestamp;
  time.textContent = entry.timestamp.slice(11, 23);
  const level = document.createElement("span");
  level.className = "line-level";
  level.textContent = entry.log_level.toLowerCase();
  const text = document.createElement("span");
  text.className = "line-text";
  text.textContent = entry.exception ? `${entry.message}\n${entry.exception}` : entry.message;
  line.append(time, level, text);
  line.hidden = !matches(line);
  log.querySelector("[data-log-empty]").before(line);
  if (seen.length >= mostLines) seen[0].remove();
}

async function readNewLines() {
  const lines = log.querySelectorAll(".line");
  const after = lines.length ? `&after=${encodeURIComponent(lines[lines.length - 1].dataset.at)}` : "";
  const page = await askServer(`/api/v1/jobs/${encodeURIComponent(jobId)}/logs?limit=500${after}`);
  page.items.forEach(addLine);
  finishLines();
}

function finishLines() {
  log.querySelector("[data-log-empty]").hidden = log.querySelector(".line:not([hidden])") !== null;
  follow();
}

// --- metrics ---

const series = new Map(JSON.parse(document.querySelector("[data-series]").textContent).map((line) => [line.name, line]));
let drawTimer;

// What has several values is drawn; a single one is told.
function drawMetrics() {
  drawTimer = undefined;
  const section = document.querySelector("[data-metrics]");
  section.hidden = series.size === 0;
  const lines = [...series.values()];
  const drawn = lines.filter((line) => line.x.length > 1);
  if (drawn.length) draw(section, drawn);
  const told = lines.filter((line) => line.x.length === 1).flatMap(fieldOf);
  section.querySelector("[data-single]").replaceChildren(...told);
}

function fieldOf(line) {
  const field = document.createElement("div");
  const name = document.createElement("dt");
  const value = document.createElement("dd");
  name.textContent = line.name;
  value.textContent = Number(line.y[0].toPrecision(6));
  field.append(name, value);
  return field;
}

function addValue(metric) {
  const by = metric.step !== null ? "step" : metric.epoch !== null ? "epoch" : "time";
  const line = series.get(metric.metric_name) ?? { name: metric.metric_name, by, x: [], y: [] };
  line.x.push(line.by === "time" ? metric.timestamp : metric[line.by]);
  line.y.push(metric.value);
  series.set(metric.metric_name, line);
  drawTimer ??= setTimeout(drawMetrics, 500);
}

// --- what happens ---

document.addEventListener("changes", ({ detail }) => {
  if (!detail.is_complete) {
    readNewLines().catch(() => {});
    refreshRegions().catch(() => {});
    return;
  }
  let isOther = false;
  const lines = [];
  for (const { type, kind, values } of detail.changes) {
    if (type === "JobLog" && kind === "added") lines.push(values);
    else if (type === "JobMetric" && kind === "added") addValue(values);
    else if (type === "Job" && kind === "removed") return leaveFor("/jobs");
    else if (type !== "JobTimeline" && kind !== "removed") isOther = true;
  }
  lines.sort((one, other) => (one.timestamp < other.timestamp ? -1 : 1)).forEach(addLine);
  if (lines.length) finishLines();
  if (isOther) refreshRegions().catch(() => {});
});

document.querySelector("[data-log-level]").addEventListener("change", filterLines);
document.querySelector("[data-log-search]").addEventListener("input", filterLines);
document.querySelector("[data-log-follow]").addEventListener("change", follow);
document.addEventListener("theme", drawMetrics);
follow();
drawMetrics();
