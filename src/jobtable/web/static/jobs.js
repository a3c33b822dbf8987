// The list of jobs: rows change in place, new jobs are announced, and several can be acted on at once.
import { askServer, toast } from "./server.js";
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
  if (group && !hasEnded) return; // its own progress says nothing until its jobs have ended
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
let known; // the jobs of the first page when it was last shown or looked at
let newsTimer;

function lookForNewSoon() {
  newsTimer ??= setTimeout(() => {
    newsTimer = undefined;
    lookForNew().catch(() => tryAgainLater(lookForNewSoon));
  }, 700 + Math.random() * 1300);
}

// Which jobs match a filter, and in which order, the server knows.
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

// --- acting on several ---

function ticks() {
  return [...document.querySelectorAll("[data-tick]")];
}

const mostMatching = 500; // each is acted on by a request of its own, of which the server answers so many a minute
const mostSearches = 10;
let matching; // the ids of all that match, once they are chosen

const chosenIds = () => matching ?? ticks().filter((tick) => tick.checked).map((tick) => tick.value);

function howMany(count) {
  if (!matching) return `${count} chosen`;
  return count < mostMatching ? `All ${count} that match chosen` : `The newest ${count} that match chosen`;
}

function showSelection() {
  const bar = document.querySelector("[data-selection]");
  if (!bar) return;
  const chosen = chosenIds();
  const isWholePage = chosen.length > 0 && ticks().every((tick) => tick.checked);
  bar.hidden = chosen.length === 0;
  bar.querySelector("[data-selected]").textContent = howMany(chosen.length);
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
  query.set("limit", mostMatching);
  const found = [];
  for (let searched = 0; searched < mostSearches && found.length < mostMatching; searched += 1) {
    const page = await askServer(`/api/v1/jobs?${query}`);
    found.push(...page.items.map((job) => job.job_id));
    if (!page.cursor) break;
    query.set("cursor", page.cursor);
  }
  return found.slice(0, mostMatching);
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-choose-matching]");
  if (!button) return;
  button.disabled = true;
  try {
    matching = await findMatching();
    document.querySelector("[data-selection] [data-act-many]").focus(); // the button is hidden now
  } catch (error) {
    toast(error.message, true);
  }
  button.disabled = false;
  showSelection();
});

function tellHowItWent(done, problems) {
  if (!problems.length) return toast(`${done} done`);
  toast(`${done} done, ${problems.length} refused: ${problems[0]}${problems.length > 1 ? " …" : ""}`, true);
}

// What harms is asked about, and whatever is done to more than one sees.
function isWanted(button, count) {
  const harms = button.dataset.harms !== undefined;
  if (!harms && !matching) return true;
  const under = harms ? ` and everything under ${count === 1 ? "it" : "them"}` : "";
  return confirm(`${button.textContent.trim()} ${count} job${count === 1 ? "" : "s"}${under}?`);
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-act-many]");
  const ids = chosenIds();
  if (!button || !isWanted(button, ids.length)) return;
  const { actMany: path, method } = button.dataset;
  const told = document.querySelector("[data-selected]");
  button.disabled = true;
  const problems = [];
  for (const [number, id] of ids.entries()) {
    told.textContent = `${number} of ${ids.length} so far`;
    await askServer(path.replace("{id}", encodeURIComponent(id)), { method }).catch((error) => problems.push(error.message));
  }
  for (const tick of ticks()) tick.checked = false;
  matching = undefined;
  tellHowItWent(ids.length - problems.length, problems);
  button.disabled = false;
  showSelection();
  document.querySelector("[data-tick-all]")?.focus(); // the button is hidden with the selection
});

if (news) {
  document.addEventListener("regions", startFromWhatIsShown);
  startFromWhatIsShown();
}
