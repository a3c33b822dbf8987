// The list of jobs: rows change in place, new jobs are announced, and several can be acted on at once.
import { askServer, toast } from "./server.js";

let unseen = 0;

export function liveJobs(event) {
  for (const change of event.changes) {
    const row = document.querySelector(`tr[data-job="${CSS.escape(change.values.job_id)}"]`);
    if (row) showJob(row, change);
    else if (change.kind === "added") unseen += 1;
  }
  if (!event.is_complete) unseen = Math.max(unseen, 1);
  const news = document.querySelector("[data-news]");
  if (news && unseen) {
    news.hidden = false;
    news.querySelector("button").textContent = event.is_complete ? `Show ${unseen} new` : "Show many changes";
  }
}

function showJob(row, change) {
  const status = row.querySelector('[data-cell="status"] .badge');
  const name = change.kind === "removed" ? "deleted" : change.values.status.toLowerCase();
  if (status.textContent !== name) {
    status.className = `badge badge-${name}`;
    status.textContent = name;
    const cell = status.parentElement;
    cell.classList.remove("changed");
    void cell.offsetWidth;
    cell.classList.add("changed");
  }
  const ended = ["completed", "deleted"].includes(name);
  const group = row.querySelector("[data-group]");
  if (group && !ended) return; // its own progress says nothing until its jobs have ended
  if (group) {
    group.querySelector(".muted").remove();
    delete group.dataset.group;
  }
  row.querySelector("progress").value = change.values.progress;
  row.querySelector(".progress-value").textContent = `${Math.round(change.values.progress)}%`;
}

const ticks = () => [...document.querySelectorAll("[data-tick]")];

function showSelection() {
  const chosen = ticks().filter((tick) => tick.checked).length;
  const bar = document.querySelector("[data-selection]");
  if (!bar) return;
  bar.hidden = chosen === 0;
  bar.querySelector("[data-selected]").textContent = `${chosen} chosen`;
}

document.addEventListener("change", (event) => {
  if (event.target.dataset.tickAll !== undefined) for (const tick of ticks()) tick.checked = event.target.checked;
  if (event.target.closest(".tick")) showSelection();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-act-many]");
  if (!button || (button.dataset.confirm && !confirm(button.dataset.confirm))) return;
  button.disabled = true;
  let done = 0;
  for (const tick of ticks().filter((each) => each.checked)) {
    try {
      await askServer(button.dataset.actMany.replace("{id}", encodeURIComponent(tick.value)), { method: "POST" });
      tick.checked = false;
      done += 1;
    } catch (error) {
      toast(error.message, true);
    }
  }
  if (done) toast(`${done} done`);
  button.disabled = false;
  showSelection();
});
