// Common to all pages: theme, menu, relative times, copying, actions, live regions.
import { toast, askServer } from "./server.js";
import { watch } from "./live.js";
import { liveJobs } from "./jobs.js";
import { leaveFor, refreshIfUnderWay, refreshRegions, refreshSoon, showRegion } from "./regions.js";

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

function inOneUnit(seconds) {
  const [, unit, size] = steps.find(([limit]) => seconds < limit);
  return `${Math.floor(seconds / size)} ${unit}`;
}

function refreshTimes() {
  for (const time of document.querySelectorAll("time[data-ago], time[data-ahead]")) {
    const isAhead = time.dataset.ahead !== undefined;
    const seconds = ((isAhead ? -1 : 1) * (Date.now() - new Date(time.dateTime).getTime())) / 1000;
    time.textContent = seconds < 1 ? "now" : isAhead ? `in ${inOneUnit(seconds)}` : `${inOneUnit(seconds)} ago`;
  }
}

// Times are in UTC; the tooltip adds the local time, which the server does not know.
const ownClock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
document.addEventListener("pointerover", (event) => {
  const time = event.target.closest("time");
  if (time) time.title = `${ownClock.format(new Date(time.dateTime))}\n${time.dateTime}`;
});

// Browsers deny the clipboard to pages over plain HTTP from another machine, but let them copy a selection.
function copySelected(text, beside) {
  const field = document.createElement("textarea");
  field.className = "visually-hidden";
  field.value = text;
  beside.after(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  beside.focus();
  return isCopied;
}

async function copyText(button) {
  const text = button.dataset.copy;
  const isWritten = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  if (isWritten || copySelected(text, button)) toast("Copied");
  else prompt("The browser does not let this page copy. Copy the selected text yourself:", text);
}

// A disabled button would lose the focus.
async function whileBusy(button, work) {
  if (button.ariaBusy === "true") return;
  button.ariaBusy = "true";
  try {
    await work();
  } catch (error) {
    toast(error.message, true);
  } finally {
    button.ariaBusy = null;
  }
}

function act(button) {
  const { act: path, method, confirm: question, then, told } = button.dataset;
  if (question && !confirm(question)) return;
  whileBusy(button, async () => {
    await askServer(path, { method });
    if (told) toast(told);
    if (then) leaveFor(then);
    else await refreshRegions();
  });
}

// The fields of the form are the members of the body. An empty number is not sent; an empty text clears the value.
function send(form) {
  const fields = [...form.elements].filter((field) => field.name && (field.type !== "number" || field.value !== ""));
  const body = Object.fromEntries(fields.map((field) => [field.name, field.type === "number" ? Number(field.value) : field.value]));
  whileBusy(form.querySelector("button"), async () => {
    await askServer(form.dataset.send, { method: form.dataset.method, body });
    for (const field of fields) field.defaultValue = field.value;
    toast(form.dataset.told ?? "Saved");
    await refreshRegions();
  });
}

document.addEventListener("submit", (event) => {
  if (!event.target.dataset.send) return;
  event.preventDefault();
  send(event.target);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.copy !== undefined) copyText(button);
  else if (button.dataset.act) act(button);
  else if (button.dataset.themeSwitch !== undefined) nextTheme();
});

const narrow = matchMedia("(max-width: 820px)");
function foldMenu() {
  const menu = document.querySelector("[data-menu]");
  if (menu) menu.open = !narrow.matches;
}
narrow.addEventListener("change", foldMenu);
document.addEventListener("keydown", (event) => {
  const menu = document.querySelector("[data-menu][open]");
  if (event.key !== "Escape" || !menu || !narrow.matches) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
foldMenu();
showTheme();
setInterval(refreshTimes, 5000);

function watchTopic() {
  const { topic, also, topics } = document.body.dataset; // an id may have spaces
  const watched = topics ? JSON.parse(topics) : [topic, also].filter(Boolean);
  if (watched.length === 0) return;
  watch(watched, {
    overview: (event) => {
      showRegion("overview", event.html);
      refreshIfUnderWay();
    },
    changes: (event) => {
      if (event.topic === "jobs") {
        liveJobs(event);
        refreshIfUnderWay();
      } else if (document.body.dataset.refresh !== undefined) refreshSoon();
      document.dispatchEvent(new CustomEvent("changes", { detail: event }));
    },
    reload: ({ isFirst = false }) => {
      document.dispatchEvent(new CustomEvent("reload"));
      if (isFirst) refreshRegions();
      else refreshSoon();
    },
    // The login may have ended; then this leads to the login page.
    refused: () => askServer("/api/v1/me").catch(() => {}),
  });
}

// After the page's own scripts have loaded, because they listen to the events.
document.addEventListener("DOMContentLoaded", watchTopic);
