// Searches the whole log of a job, part by part, on the server.
import { askServer } from "./server.js";

const path = `/api/v1/jobs/${encodeURIComponent(document.body.dataset.jobPage)}/logs/search`;
const atOnce = 100;

const field = document.querySelector("[data-log-search]");
const begin = document.querySelector("[data-log-whole]");
const log = document.querySelector("[data-log]");
const found = document.querySelector("[data-found]");
const bar = document.querySelector("[data-found-bar]");
const told = bar.querySelector("[data-found-count]");
const more = bar.querySelector("[data-found-more]");

let current; // the search that is shown; results of earlier ones are dropped
const count = () => found.childElementCount;

function part(className, content, title) {
  const element = document.createElement("span");
  element.className = className;
  element.append(...[content].flat());
  if (title) element.title = title;
  return element;
}

// A text with every match marked. A text with letters that are longer in lower case is not marked.
function marked(text, wanted) {
  const [low, lowWanted] = [text.toLowerCase(), wanted.toLowerCase()];
  if (low.length !== text.length) return [text];
  const pieces = [];
  let start = 0;
  for (let at = low.indexOf(lowWanted); at >= 0; at = low.indexOf(lowWanted, start)) {
    const mark = document.createElement("mark");
    mark.textContent = text.slice(at, at + wanted.length);
    pieces.push(text.slice(start, at), mark);
    start = at + wanted.length;
  }
  return [...pieces, text.slice(start)];
}

function lineOf({ epoch, number, text, timestamp, log_level: level }, wanted) {
  const line = document.createElement("div");
  line.className = `line line-${(level ?? "info").toLowerCase()}`;
  const place = timestamp ? [timestamp.slice(11, 23), level.toLowerCase()] : [`line ${number}`, `run ${epoch}`];
  line.append(part("line-place", place[0], timestamp), part("line-level", place[1]), part("line-text", marked(text, wanted)));
  return line;
}

function showResults(isShown) {
  log.hidden = isShown;
  found.hidden = bar.hidden = !isShown;
}

function tell(state) {
  const number = count();
  const matches = number === 1 ? "1 line" : `${number} lines`;
  told.textContent = state ?? (number ? `${matches} in the whole log${current.cursor ? " so far" : ""}.` : "No match in the whole log.");
  more.hidden = state !== undefined || !current.cursor;
}

async function lookOn(search) {
  const enough = count() + atOnce;
  tell("Searching…");
  try {
    do {
      const query = new URLSearchParams({ text: search.text, ignore_case: true, limit: atOnce, ...(search.cursor && { cursor: search.cursor }) });
      const page = await askServer(`${path}?${query}`);
      if (search !== current) return;
      found.append(...page.items.map((line) => lineOf(line, search.text)));
      search.cursor = page.cursor;
    } while (search.cursor && count() < enough);
    tell();
  } catch (error) {
    if (search === current) tell(error.message);
  }
}

function start() {
  if (!field.value) return;
  current = { text: field.value };
  found.replaceChildren();
  showResults(true);
  lookOn(current);
}

function goBack() {
  current = undefined;
  showResults(false);
  log.dispatchEvent(new Event("shown"));
}

field.addEventListener("input", () => {
  begin.hidden = !field.value;
  if (!field.value && current) goBack();
});
field.addEventListener("keydown", (event) => event.key === "Enter" && start());
begin.addEventListener("click", start);
more.addEventListener("click", () => lookOn(current));
bar.querySelector("[data-found-back]").addEventListener("click", goBack);
