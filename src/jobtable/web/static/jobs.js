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

if (news) {
  document.addEventListener("regions", startFromWhatIsShown);
  startFromWhatIsShown();
}

// --- acting on several ---

function ticks() {
  return [...document.querySelectorAll("[data-tick]")];
}

function showSelection() {
  const chosen = ticks().filter((tick) => tick.checked);
  const bar = document.querySelector("[data-selection]");
  if (!bar) return;
  bar.hidden = chosen.length === 0;
  bar.querySelector("[data-selected]").textContent = `${chosen.length} chosen`;
  document.querySelector("[data-tick-all]").checked = chosen.length > 0 && chosen.length === ticks().length;
  const compare = bar.querySelector("[data-compare]");
  compare.hidden = chosen.length < 2 || chosen.length > Number(compare.dataset.compare);
  compare.href = `/compare?${new URLSearchParams(chosen.map((tick) => ["id", tick.value]))}`;
}

document.addEventListener("change", (event) => {
  if (event.target.dataset.tickAll !== undefined) for (const tick of ticks()) tick.checked = event.target.checked;
  if (event.target.closest(".tick")) showSelection();
});

function tellHowItWent(done, problems) {
  if (!problems.length) return toast(`${done} done`);
  toast(`${done} done, ${problems.length} refused: ${problems[0]}${problems.length > 1 ? " …" : ""}`, true);
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-act-many]");
  if (!button || (button.dataset.confirm && !confirm(button.dataset.confirm))) return;
  button.disabled = true;
  let done = 0;
  const problems = [];
  for (const tick of ticks().filter((each) => each.checked)) {
    try {
      await askServer(button.dataset.actMany.replace("{id}", encodeURIComponent(tick.value)), { method: "POST" });
      done += 1;
    } catch (error) {
      problems.push(error.message);
    }
    tick.checked = false;
  }
  tellHowItWent(done, problems);
  button.disabled = false;
  showSelection();
  document.querySelector("[data-tick-all]").focus(); // the button is hidden with the selection
});
