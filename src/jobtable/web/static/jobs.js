// The list of jobs: rows change in place, new jobs are announced, and actions apply to several jobs.
import { askServer, sentenceOf, toast } from "./server.js";
import { fetchPage, tryAgainLater } from "./regions.js";

const rowsOf = (page) => [...page.querySelectorAll("tr[data-job]")];
const findRow = (jobId) => document.querySelector(`tr[data-job="${CSS.escape(jobId)}"]`);

export function liveJobs(event) {
  let mayBeNew = !event.is_complete;
  const isFiltered = document.querySelector("[data-jobs]")?.dataset.filtered !== undefined;
  for (const change of event.changes) {
    const row = findRow(change.values.job_id);
    if (row) showJob(row, change);
    else mayBeNew ||= isFiltered || change.kind === "added";
  }
  if (mayBeNew) lookForNewSoon();
}

function showJob(row, { kind, values }) {
  const status = row.querySelector('[data-cell="status"] .badge');
  const name = kind === "removed" ? "deleted" : values.status.toLowerCase();
  if (status.textContent !== name) {
    status.className = `badge badge-${name}`;
    status.textContent = name;
    const cell = status.parentElement;
    cell.classList.remove("changed");
    void cell.offsetWidth;
    cell.classList.add("changed");
  }
  const attempt = row.querySelector('[data-cell="attempt"]');
  attempt.textContent = attempt.textContent.replace(/^\s*\d+/, values.attempts);
  row.querySelector('[data-cell="took"]').textContent = values.took;
  showMessage(row.querySelector('[data-cell="message"]'), name === "completed" ? "" : (values.message ?? ""));
  showProgress(row, values.progress, ["completed", "deleted"].includes(name));
}

function showMessage(place, text) {
  place.hidden = !text;
  place.title = text.slice(0, 500);
  place.textContent = text.split("\n")[0];
}

function showProgress(row, percent, hasEnded) {
  const group = row.querySelector("[data-group]");
  if (group && !hasEnded) return; // its own progress means nothing until its jobs have ended
  if (group) {
    group.querySelector(".muted").remove();
    delete group.dataset.group;
  }
  row.querySelector("progress").value = percent;
  row.querySelector(".progress-value").textContent = `${Math.round(percent)}%`;
}

// --- new jobs ---

const news = document.querySelector("[data-news]");
const firstPage = news?.querySelector("a").href;
let known; // the jobs of the first page when it was last shown or fetched
let newsTimer;

function lookForNewSoon() {
  newsTimer ??= setTimeout(() => {
    newsTimer = undefined;
    lookForNew().catch(() => tryAgainLater(lookForNewSoon));
  }, 700 + Math.random() * 1300);
}

// Only the server knows which jobs match a filter, and their order.
async function lookForNew() {
  const page = await fetchPage(firstPage);
  if (!page) return;
  const found = rowsOf(page).map((row) => row.dataset.job);
  known ??= new Set(found);
  const count = found.filter((jobId) => !known.has(jobId) && !findRow(jobId)).length;
  news.hidden = count === 0;
  news.querySelector("a").textContent = `Show ${count} new`;
}

function startFromWhatIsShown() {
  const isFirst = document.querySelector("[data-jobs]").dataset.first !== undefined;
  known = isFirst ? new Set(rowsOf(document).map((row) => row.dataset.job)) : undefined;
  news.hidden = true;
  if (!isFirst) lookForNewSoon();
  showSelection();
}

// --- actions on several jobs ---

function ticks() {
  return [...document.querySelectorAll("[data-tick]")];
}

const mostMatching = 5000;
const mostAPage = 500;
const mostSearches = 20;
const mostARequest = 50;
let matching; // the ids of the selected matches, and whether these are all
let acting; // the progress text during an action

const chosenIds = () => matching?.ids ?? ticks().filter((tick) => tick.checked).map((tick) => tick.value);

function howMany(count) {
  if (!matching) return `${count} selected`;
  return `${matching.areAll ? "All" : "Newest"} ${count} matches selected`;
}

function showSelection() {
  const bar = document.querySelector("[data-selection]");
  if (!bar) return;
  const chosen = chosenIds();
  const isWholePage = chosen.length > 0 && ticks().every((tick) => tick.checked);
  bar.hidden = chosen.length === 0 && !acting;
  bar.querySelector("[data-selected]").textContent = acting ?? howMany(chosen.length);
  document.querySelector("[data-tick-all]").checked = isWholePage;
  const chooseMatching = bar.querySelector("[data-choose-matching]");
  if (chooseMatching) chooseMatching.hidden = !isWholePage || matching !== undefined;
  const compare = bar.querySelector("[data-compare]");
  compare.hidden = chosen.length < 2 || chosen.length > Number(compare.dataset.compare);
  compare.href = `/compare?${new URLSearchParams(chosen.map((id) => ["id", id]))}`;
}

document.addEventListener("change", (event) => {
  if (event.target.dataset.tickAll !== undefined) for (const tick of ticks()) tick.checked = event.target.checked;
  if (!event.target.closest(".tick")) return;
  matching = undefined;
  showSelection();
});

async function findMatching() {
  const query = new URL(firstPage).searchParams;
  query.set("limit", mostAPage);
  const ids = [];
  for (let searched = 0; searched < mostSearches && ids.length < mostMatching; searched += 1) {
    const page = await askServer(`/api/v1/jobs?${query}`);
    ids.push(...page.items.map((job) => job.job_id));
    if (!page.cursor) return { ids, areAll: true };
    query.set("cursor", page.cursor);
  }
  return { ids, areAll: false };
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-choose-matching]");
  if (!button) return;
  button.disabled = true;
  try {
    matching = await findMatching();
    document.querySelector("[data-selection] [data-act-many]").focus(); // the button is now hidden
  } catch (error) {
    toast(error.message, true);
  }
  button.disabled = false;
  showSelection();
});

function tellHowItWent({ done, problems, lost, left }) {
  const refused = problems.length ? `, ${problems.length} refused: ${problems[0]}${problems.length > 1 ? " …" : ""}` : "";
  const unknown = lost ? `. ${lost} Check the other ${left}.` : "";
  toast(`${done} done${refused}${unknown}`, problems.length > 0 || lost !== undefined);
}

// Ask before destructive actions, and before any action on jobs that are not on the page.
function isWanted(button, count) {
  const harms = button.dataset.harms !== undefined;
  if (!harms && !matching) return true;
  const under = harms ? ` and all ${count === 1 ? "its" : "their"} descendants` : "";
  return confirm(`${button.textContent.trim()} ${count} job${count === 1 ? "" : "s"}${under}?`);
}

// In portions, to show the progress. If the server is lost, the outcome of the current portion is unknown.
async function actOn(ids, path, more) {
  const problems = [];
  for (let tried = 0; tried < ids.length; tried += mostARequest) {
    acting = `${tried} of ${ids.length} done`;
    showSelection();
    try {
      const body = { job_ids: ids.slice(tried, tried + mostARequest), ...more };
      const { outcomes } = await askServer(path, { method: "POST", body });
      problems.push(...outcomes.filter(({ problem }) => problem).map(({ problem }) => sentenceOf(problem)));
    } catch (error) {
      return { done: tried - problems.length, problems, lost: error.message, left: ids.length - tried };
    }
  }
  return { done: ids.length - problems.length, problems };
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-act-many]");
  const ids = chosenIds();
  if (!button || acting || !isWanted(button, ids.length)) return;
  const { actMany: path, harms } = button.dataset;
  const all = [...document.querySelectorAll("[data-act-many]")];
  for (const each of all) each.disabled = true;
  const told = await actOn(ids, path, harms === undefined ? {} : { tree: true });
  acting = undefined;
  for (const each of all) each.disabled = false;
  for (const tick of ticks()) tick.checked = false;
  matching = undefined;
  tellHowItWent(told);
  showSelection();
  document.querySelector("[data-tick-all]")?.focus(); // the button is hidden with the selection
});

if (news) {
  document.addEventListener("regions", startFromWhatIsShown);
  startFromWhatIsShown();
}
