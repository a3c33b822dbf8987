// The page of one job: follows its log and parts, and draws its metrics.
import { askServer } from "./server.js";
import { draw, rounded } from "./charts.js";
import { leaveFor, refreshRegions, refreshSoon, tryAgainLater } from "./regions.js";

const jobId = document.body.dataset.jobPage;
const log = document.querySelector("[data-log]");
const end = log.querySelector("[data-log-empty]");
const nothingYet = end.textContent;
const following = document.querySelector("[data-log-follow]");
const levels = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];
const mostLines = 5000;
const longestLine = 5000; // shown; the same number as in pages/jobs.py
const mostPoints = 4000; // per chart; even, so that thinning keeps the last point

const lines = () => log.getElementsByClassName("line");
const lastLine = () => lines()[lines().length - 1];

function matches(line) {
  const least = Number(document.querySelector("[data-log-level]").value);
  const text = document.querySelector("[data-log-search]").value.toLowerCase();
  return Number(line.dataset.level) >= least && (!text || line.textContent.toLowerCase().includes(text));
}

function filterLines() {
  for (const line of lines()) line.hidden = !matches(line);
  finishLines();
}

// Typing filters the loaded lines; log_search.js searches the whole log.
function finishLines() {
  const count = lines().length;
  end.hidden = log.querySelector(".line:not([hidden])") !== null;
  const hint = document.querySelector("[data-log-search]").value && " Press Enter to search the whole log.";
  end.textContent = count ? `No match in the last ${count === 1 ? "line" : `${count} lines`}.${hint}` : nothingYet;
  follow();
}

function follow() {
  if (following.checked) log.scrollTop = log.scrollHeight;
}

let scrolledTo = 0;
function stopFollowingWhoReads() {
  const isBelow = log.scrollHeight - log.clientHeight - log.scrollTop > 4;
  if (log.scrollTop < scrolledTo && isBelow) following.checked = false;
  scrolledTo = log.scrollTop;
}

// A time as a text that sorts: the page and the API format it differently.
function instantOf(timestamp) {
  const [seconds, fraction = ""] = timestamp.replace(/(Z|\+00:00)$/, "").split(".");
  return `${seconds}.${fraction.padEnd(6, "0")}`;
}

// A line may be as large as an item, and a few of them would make the page slow.
function shortened(text) {
  const left = text.length - longestLine;
  return left > 0 ? `${text.slice(0, longestLine)} … ${left.toLocaleString("en")} more characters` : text;
}

function lineOf(entry) {
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
  text.textContent = shortened(entry.exception ? `${entry.message}\n${entry.exception}` : entry.message);
  line.append(time, level, text);
  line.hidden = !matches(line);
  return line;
}

const lineBefore = (line) => line.previousElementSibling?.closest(".line");

// Insert by time: lines from the API and from events may arrive in any order, and twice.
function placeLines(entries) {
  const newestFirst = entries.map((entry) => [instantOf(entry.timestamp), entry]).sort(([one], [other]) => (one < other ? 1 : -1));
  let next = end;
  let before = lastLine();
  for (const [at, entry] of newestFirst) {
    while (before && instantOf(before.dataset.at) > at) [next, before] = [before, lineBefore(before)];
    if (before && instantOf(before.dataset.at) === at) continue;
    const line = lineOf(entry);
    next.before(line);
    next = line;
  }
}

function forgetOldLines() {
  const all = [...lines()];
  for (const line of all.slice(0, -mostLines)) line.remove();
  if (all.length <= mostLines || log.querySelector(".log-note")) return;
  const note = document.createElement("p");
  note.className = "log-note";
  note.textContent = "Earlier lines are in the full log.";
  log.prepend(note);
}

function addLines(entries) {
  placeLines(entries);
  forgetOldLines();
  finishLines();
}

async function fetchLines(after) {
  const found = [];
  let cursor;
  do {
    const query = new URLSearchParams({ limit: 500, newest_first: true, ...(after && { after }), ...(cursor && { cursor }) });
    const page = await askServer(`/api/v1/jobs/${encodeURIComponent(jobId)}/logs?${query}`);
    found.push(...page.items);
    cursor = page.cursor;
  } while (cursor && found.length < mostLines);
  return found;
}

// One read at a time, starting after the line that was last when it was requested.
let readFrom;
let isReading = false;
async function readNewLines() {
  readFrom ??= lastLine()?.dataset.at ?? "";
  if (isReading) return;
  isReading = true;
  while (readFrom !== undefined) {
    const from = readFrom;
    readFrom = undefined;
    try {
      addLines(await fetchLines(from));
    } catch {
      readFrom = from;
      tryAgainLater(readNewLines);
      break;
    }
  }
  isReading = false;
}

// --- metrics ---

let series;
let missedSince; // when values were found missing, until they are read
let toldSince = [];
let drawTimer;

function readSeries() {
  const all = JSON.parse(document.querySelector("[data-series]").textContent);
  series = new Map(all.map((line) => [line.name, line]));
}

// Metrics with several values are drawn; a single value is shown as text.
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
  value.textContent = rounded(line.y[0]);
  field.append(name, value);
  return field;
}

function addValue(metric) {
  const by = metric.step !== null ? "step" : metric.epoch !== null ? "epoch" : "time";
  const line = series.get(metric.metric_name) ?? { name: metric.metric_name, by, x: [], y: [] };
  line.x.push(line.by === "time" ? metric.timestamp : metric[line.by]);
  line.y.push(metric.value);
  if (line.x.length > mostPoints) thin(line);
  series.set(metric.metric_name, line);
  drawTimer ??= setTimeout(drawMetrics, 500);
}

// Drop every other point, so that drawing stays fast when the page is open all day.
function thin(line) {
  for (const axis of ["x", "y"]) line[axis] = line[axis].filter((_, number) => number % 2 === 0);
}

function isBehind(metric) {
  const line = series.get(metric.metric_name);
  const last = line?.x.at(-1);
  if (last === undefined) return true;
  return line.by === "time" ? instantOf(metric.timestamp) > instantOf(last) : metric[line.by] > last;
}

// The fetched page contains the missed values, but perhaps not those of later events.
function takeMissedValues({ detail }) {
  if (missedSince === undefined || detail.askedAt < missedSince) return;
  readSeries();
  toldSince.filter(isBehind).forEach(addValue);
  missedSince = undefined;
  toldSince = [];
  drawMetrics();
}

// --- elapsed time ---

const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

function durationOf(seconds) {
  let left = Math.max(1, Math.floor(seconds));
  const parts = units.map(([size, unit]) => {
    const count = Math.floor(left / size);
    left %= size;
    return count && `${count} ${unit}`;
  });
  return parts.filter(Boolean).slice(0, 2).join(" ");
}

// Counted from the server's value, because its clock and the browser's may differ.
let counted = { since: 0 };
function countSeconds() {
  const place = document.querySelector("[data-elapsed]");
  if (!place) return;
  if (counted.elapsed !== place.dataset.elapsed) counted = { elapsed: place.dataset.elapsed, since: performance.now() };
  place.textContent = durationOf(Number(counted.elapsed) + (performance.now() - counted.since) / 1000);
}

// --- events ---

const status = () => document.querySelector('[data-region="status"] .badge');

function readWhatWasMissed() {
  missedSince = performance.now();
  toldSince = [];
  readNewLines();
}

document.addEventListener("reload", readWhatWasMissed);
document.addEventListener("regions", takeMissedValues);
document.addEventListener("regions", countSeconds);
document.addEventListener("changes", ({ detail }) => {
  if (detail.topic === document.body.dataset.also) {
    if (document.querySelector("[data-waits]")) refreshSoon();
    return;
  }
  if (!detail.is_complete) {
    readWhatWasMissed();
    refreshSoon();
    return;
  }
  let isOther = false;
  let hasNewStatus = false;
  const told = [];
  for (const { type, kind, values } of detail.changes) {
    if (type === "JobLog" && kind === "added") told.push(values);
    else if (type === "JobMetric" && kind === "added") {
      if (values.child_job_id !== null) continue; // the child's own page draws it
      addValue(values);
      if (missedSince !== undefined) toldSince.push(values);
    } else if (type === "Job" && kind === "removed") return leaveFor("/jobs");
    else if (type !== "JobTimeline" && kind !== "removed") isOther = true;
    if (type === "Job") hasNewStatus = values.status.toLowerCase() !== status().textContent;
  }
  if (told.length) addLines(told);
  if (hasNewStatus) refreshRegions();
  else if (isOther) refreshSoon(); // some jobs report progress many times a second
});

document.querySelector("[data-log-level]").addEventListener("change", filterLines);
document.querySelector("[data-log-search]").addEventListener("input", filterLines);
following.addEventListener("change", follow);
log.addEventListener("scroll", stopFollowingWhoReads);
log.addEventListener("shown", follow);
document.addEventListener("theme", drawMetrics);
readSeries();
log.scrollTop = log.scrollHeight; // the end says how the job went, even if it is over
drawMetrics();
countSeconds();
setInterval(countSeconds, 1000);
