// Submits a job: sends the form as a request, and shows problems beside their fields.
import { askServer } from "./server.js";

const form = document.querySelector("[data-new-job]");
const button = form.querySelector("button");
const problem = form.querySelector("[data-problem]");
const fields = () => [...form.elements].filter((field) => field.name);

// --- problems ---

function placeOf(name) {
  return form.querySelector(`[data-field="${CSS.escape(name)}"]`);
}

function complain(name, text) {
  const place = placeOf(name);
  const field = place.querySelector("input, textarea");
  const told = document.createElement("p");
  told.className = "problem";
  told.id = `problem-${name}`;
  told.textContent = text;
  place.append(told);
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", told.id);
  place.closest("details")?.setAttribute("open", "");
}

function forgetComplaints(within = form) {
  for (const told of within.querySelectorAll("[data-field] > .problem")) told.remove();
  for (const field of within.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
}

function showProblem(text) {
  problem.textContent = text;
  problem.hidden = !text;
  form.querySelector("[aria-invalid]")?.focus();
}

// The text is sent unchanged: parsing a number here would lose digits, and turn 1.0 into 1.
function checkJson(field) {
  if (!field.value.trim()) return;
  let value;
  try {
    value = JSON.parse(field.value);
  } catch (error) {
    return complain(field.name, `Invalid JSON: ${error.message}.`);
  }
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
  if (!isObject) complain(field.name, 'Enter an object, such as {"learning_rate": 0.01}.');
}

function checkFields() {
  for (const field of fields()) {
    if (field.dataset.json !== undefined) checkJson(field);
    else if (!field.checkValidity()) complain(field.name, field.validity.patternMismatch ? field.dataset.hint : field.validationMessage);
  }
  return !form.querySelector("[aria-invalid]");
}

// The server names the fields that it refuses; those that the form lacks are listed below it.
function showRefusal(error) {
  const others = [];
  for (const { at, message } of error.places ?? []) {
    const path = at.slice(1).map(String);
    const name = [path.join("."), path[0]].find((each) => each && placeOf(each));
    if (name) complain(name, message);
    else others.push(`${path.join(".")}: ${message}`);
  }
  showProblem([error.message, ...others].join(" "));
}

// --- the request ---

function valueOf(field) {
  if (field.type === "number") return Number(field.value);
  if (field.dataset.lines !== undefined) return field.value.split("\n").map((line) => line.trim()).filter(Boolean);
  return field.value;
}

function textOfBody() {
  const body = {};
  for (const field of fields()) {
    if (field.dataset.json !== undefined || (field.type === "number" && field.value === "")) continue;
    const [name, member] = field.name.split(".");
    if (member) (body[name] ??= {})[member] = valueOf(field);
    else body[name] = valueOf(field);
  }
  body.name ||= body.task.split(":")[1];
  const raw = fields().filter((field) => field.dataset.json !== undefined && field.value.trim());
  const members = raw.map((field) => `${JSON.stringify(field.name)}:${field.value}`);
  return `{${[JSON.stringify(body).slice(1, -1), ...members].join(",")}}`;
}

// With the same key, a request whose response was lost can be repeated without submitting a second job.
// Pages over plain HTTP have no randomUUID.
const newKey = () => [...crypto.getRandomValues(new Uint32Array(4))].join("-");
let key = newKey();

form.addEventListener("input", (event) => {
  key = newKey();
  const place = event.target.closest("[data-field]");
  if (place) forgetComplaints(place);
});
addEventListener("pageshow", () => (key = newKey()));

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  forgetComplaints();
  if (!checkFields()) return showProblem("Correct the marked fields.");
  showProblem("");
  button.disabled = true;
  try {
    const job = await askServer("/api/v1/jobs", { method: "POST", body: new Blob([textOfBody()]), key });
    location.assign(`/jobs/${encodeURIComponent(job.job_id)}`);
  } catch (error) {
    showRefusal(error);
  } finally {
    button.disabled = false;
  }
});

// Before this script loads, the browser would put the form into the address.
button.disabled = false;
