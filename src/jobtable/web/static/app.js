// What every page does: theme, menu, relative times, copying, actions, live regions.
import { toast, askServer } from "./server.js";
import { watch } from "./live.js";
import { liveJobs } from "./jobs.js";

const themes = ["auto", "light", "dark"];

function showTheme() {
  const name = document.documentElement.dataset.theme ?? "auto";
  for (const place of document.querySelectorAll("[data-theme-name]")) place.textContent = `Theme: ${name}`;
}

function nextTheme() {
  const root = document.documentElement;
  const next = themes[(themes.indexOf(root.dataset.theme ?? "auto") + 1) % themes.length];
  if (next === "auto") {
    delete root.dataset.theme;
    localStorage.removeItem("theme");
  } else {
    root.dataset.theme = next;
    localStorage.setItem("theme", next);
  }
  showTheme();
  document.dispatchEvent(new CustomEvent("theme"));
}

const steps = [[60, "s", 1], [3600, "min", 60], [86400, "h", 3600], [Infinity, "d", 86400]];

export function ago(moment) {
  const seconds = Math.max(0, (Date.now() - moment.getTime()) / 1000);
  const [, unit, size] = steps.find(([limit]) => seconds < limit);
  return seconds < 1 ? "now" : `${Math.floor(seconds / size)} ${unit} ago`;
}

function refreshTimes() {
  for (const time of document.querySelectorAll("time[data-ago]")) time.textContent = ago(new Date(time.dateTime));
}

async function copyText(button) {
  await navigator.clipboard.writeText(button.dataset.copy);
  toast("Copied");
}

// The answer to a button and the live events may both say that the page's subject is gone: one of them leaves.
let isLeaving = false;
export function leaveFor(path) {
  if (isLeaving) return;
  isLeaving = true;
  location.assign(path);
}
// A page that the browser has kept is shown again without being loaded.
addEventListener("pageshow", () => (isLeaving = false));

async function act(button) {
  if (button.dataset.confirm && !confirm(button.dataset.confirm)) return;
  button.disabled = true;
  try {
    await askServer(button.dataset.act, { method: button.dataset.method });
    if (button.dataset.then) leaveFor(button.dataset.then);
    else await refreshRegions();
  } catch (error) {
    toast(error.message, true);
  } finally {
    button.disabled = false;
  }
}

// A form whose fields are the members of what is sent. A field that is left empty is not.
async function send(form) {
  const fields = [...form.elements].filter((field) => field.name && field.value !== "");
  const body = Object.fromEntries(fields.map((field) => [field.name, field.type === "number" ? Number(field.value) : field.value]));
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    await askServer(form.dataset.send, { method: form.dataset.method, body });
    button.blur();
    toast("Saved");
    await refreshRegions();
  } catch (error) {
    toast(error.message, true);
  } finally {
    button.disabled = false;
  }
}

document.addEventListener("submit", (event) => {
  if (!event.target.dataset.send) return;
  event.preventDefault();
  send(event.target);
});

// Fetches the page again and puts its regions in place of those that are shown; what a person types or reads stays.
export async function refreshRegions() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const region of document.querySelectorAll("[data-region]")) {
    const other = fresh.querySelector(`[data-region="${region.dataset.region}"]`);
    if (other && !region.contains(document.activeElement)) region.replaceChildren(...other.childNodes);
  }
}

export function showRegion(name, html) {
  const region = document.querySelector(`[data-region="${name}"]`);
  const parsed = new DOMParser().parseFromString(html, "text/html");
  region?.replaceChildren(...parsed.body.childNodes);
}

let refreshTimer;
function refreshSoon() {
  // All who look on are told at once: a different moment for each keeps the server's load even.
  refreshTimer ??= setTimeout(() => {
    refreshTimer = undefined;
    refreshRegions().catch(() => {});
  }, 700 + Math.random() * 1300);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.copy !== undefined) copyText(button);
  else if (button.dataset.act) act(button);
  else if (button.dataset.themeSwitch !== undefined) nextTheme();
  else if (button.dataset.reload !== undefined) location.reload();
});

const narrow = matchMedia("(max-width: 820px)");
function foldMenu() {
  const menu = document.querySelector("[data-menu]");
  if (menu) menu.open = !narrow.matches;
}
narrow.addEventListener("change", foldMenu);
foldMenu();
showTheme();
setInterval(refreshTimes, 5000);

const topics = document.body.dataset.topics;
if (topics) {
  watch(topics.split(" "), {
    overview: (event) => showRegion("overview", event.html),
    changes: (event) => {
      if (event.topic === "jobs") liveJobs(event);
      else if (document.body.dataset.refresh !== undefined) refreshSoon();
      document.dispatchEvent(new CustomEvent("changes", { detail: event }));
    },
    reload: () => refreshSoon(),
  });
}
