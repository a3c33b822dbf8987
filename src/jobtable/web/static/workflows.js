// Pages of workflows: a click in the graph shows a state without leaving the page; forms start, check and answer.
import { refreshRegions } from "./regions.js";
import { askServer, toast } from "./server.js";

// --- what is chosen is in the address: links work without this, and reload the page ---

function goTo(link) {
  const address = new URL(link.href);
  history.pushState(null, "", address);
  return refreshRegions().then(() => {
    const part = address.hash && document.querySelector(address.hash);
    if (!part) return;
    if (part.id === "state") part.focus({ preventScroll: true });
    const { top, bottom } = part.getBoundingClientRect();
    if (top < 0 || top > innerHeight * 0.8 || bottom < 0) part.scrollIntoView({ block: "start" });
  });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-view]");
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  goTo({ href: new URL(link.getAttribute("href"), location.href).href });
});
addEventListener("popstate", () => refreshRegions());

// An explanation closes when one goes on elsewhere.
document.addEventListener("click", (event) => {
  for (const term of document.querySelectorAll("details.term[open]")) if (!term.contains(event.target)) term.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const term of document.querySelectorAll("details.term[open]")) {
    term.open = false;
    term.querySelector("summary").focus();
  }
});

// --- zoom ---

const zooms = [50, 65, 80, 100, 125, 160];
const graph = document.querySelector("[data-graph]");
const setZoom = (zoom) => (graph.dataset.zoom = String(zoom));

function fit() {
  const svg = graph.querySelector("svg");
  if (!svg) return;
  const room = graph.clientWidth - 28;
  const fitting = zooms.filter((zoom) => zoom <= 100 && (svg.getAttribute("width") * zoom) / 100 <= room);
  setZoom(fitting.at(-1) ?? (innerWidth < 820 ? 65 : 50));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-zoom-by], [data-zoom-fit]");
  if (!button) return;
  if (button.dataset.zoomBy === undefined) return fit();
  const next = zooms.indexOf(Number(graph.dataset.zoom)) + Number(button.dataset.zoomBy);
  setZoom(zooms[Math.min(Math.max(next, 0), zooms.length - 1)]);
});
if (graph) fit();

// --- forms ---

// Pages over plain HTTP have no randomUUID.
const newKey = () => [...crypto.getRandomValues(new Uint32Array(4))].join("-");

function tell(form, text) {
  const place = form.querySelector("[data-problem]");
  place.textContent = text;
  place.hidden = !text;
}

const sentence = (error) => [error.message, ...(error.places ?? []).filter((each) => each.at).map(({ at, message }) => `${at.slice(1).join(".")}: ${message}`)].join(" ");

async function whileSending(form, work) {
  const buttons = [...form.querySelectorAll("button")];
  tell(form, "");
  for (const button of buttons) button.disabled = true;
  try {
    await work();
  } catch (error) {
    tell(form, sentence(error));
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

function checkJson(form, field) {
  try {
    JSON.parse(field.value);
    return true;
  } catch (error) {
    tell(form, `The ${field.name} is not JSON: ${error.message}.`);
    field.focus();
    return false;
  }
}

const given = (form) => Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));

for (const form of document.querySelectorAll("[data-start]")) {
  let key = newKey();
  form.addEventListener("input", () => (key = newKey()));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!checkJson(form, form.elements.input)) return;
    whileSending(form, async () => {
      const made = await askServer(form.dataset.start, { method: "POST", body: given(form), key });
      key = newKey();
      location.assign(form.dataset.then + encodeURIComponent(made.name));
    });
  });
}

// Answers are in live regions, so the listener is on the document.
document.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-answer]");
  if (!form) return;
  event.preventDefault();
  const field = form.elements.result;
  const isFailure = event.submitter?.value === "failure";
  if (!isFailure && field.value && !checkJson(form, field)) return;
  const callback_id = form.dataset.answer;
  const body = isFailure ? { callback_id, error: { ErrorType: "Refused", ErrorMessage: field.value || "refused on the page" } } : { callback_id, result: field.value || null };
  whileSending(form, async () => {
    await askServer(`/api/v1/callbacks/${isFailure ? "failure" : "success"}`, { method: "POST", body });
    field.value = field.defaultValue;
    toast("Answered");
    await refreshRegions();
  });
});

// --- definitions ---

// Where a fault is: the line of the member whose path the server names.
function placeOf(text, path) {
  let from = 0;
  for (const part of path.split("/").filter(Boolean)) {
    const found = text.indexOf(`"${part.replace(/\[\d+\]$/, "")}"`, from);
    if (found < 0) break;
    from = found;
  }
  return from;
}

function showFaults(form, faults) {
  const place = form.querySelector("[data-faults]");
  const field = form.elements.definition;
  field.setAttribute("aria-invalid", String(faults.some((each) => each.severity === "ERROR")));
  if (!faults.length) {
    const good = document.createElement("p");
    good.className = "muted";
    good.textContent = "The definition has no faults.";
    return place.replaceChildren(good);
  }
  const list = document.createElement("ul");
  for (const { severity, code, message, location: at } of faults) {
    const entry = document.createElement("li");
    entry.className = `fault-${severity.toLowerCase()}`;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "fault-place";
    button.textContent = at || "the whole definition";
    button.title = code;
    button.addEventListener("click", () => {
      const start = placeOf(field.value, at);
      field.focus();
      field.setSelectionRange(start, start);
      field.scrollTop = (field.value.slice(0, start).split("\n").length - 4) * parseFloat(getComputedStyle(field).lineHeight);
    });
    entry.append(button, document.createElement("br"), message);
    list.append(entry);
  }
  place.replaceChildren(list);
}

for (const form of document.querySelectorAll("[data-definition-form]")) {
  const { checks, sendTo, sentBy, then, name, type } = form.dataset;
  const typeOf = () => type ?? form.elements.type.value;
  let timer;
  let asked = 0;
  const check = async () => {
    const number = ++asked;
    const definition = form.elements.definition.value;
    if (!definition) return;
    const answer = await askServer(checks, { method: "POST", body: { definition, type: typeOf() } });
    if (number === asked) showFaults(form, answer.faults);
  };
  const checkSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => check().catch((error) => tell(form, sentence(error))), 400);
  };
  form.addEventListener("input", checkSoon);
  checkSoon();
  let key = newKey();
  form.addEventListener("input", () => (key = newKey()));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const body = { definition: form.elements.definition.value, publish: form.elements.publish.checked };
    if (!name) Object.assign(body, { name: form.elements.name.value, type: typeOf() });
    whileSending(form, async () => {
      try {
        await askServer(sendTo, { method: sentBy, body, key: name ? undefined : key });
      } catch (error) {
        if (!error.places?.[0]?.location && error.places?.[0]?.severity === undefined) throw error;
        showFaults(form, error.places);
        return tell(form, "The definition has faults.");
      }
      location.assign(then + encodeURIComponent(name ?? body.name));
    });
  });
}

// Before this script loads, the browser would put the forms into the address.
const enable = () => {
  for (const button of document.querySelectorAll("form:is([data-start], [data-answer], [data-definition-form]) button")) button.disabled = false;
};
document.addEventListener("regions", enable);
enable();
