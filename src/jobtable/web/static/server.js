// Requests to the server, and messages about their outcome.
import { hasTyped } from "./typed.js";

// If something was typed, stay: leaving the page to log in would lose it.
function checkLogin(isOver) {
  const mustStay = isOver && hasTyped();
  document.querySelector("[data-logged-out]").hidden = !mustStay;
  if (!isOver) return;
  if (!mustStay) location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
  throw new Error("You are logged out.");
}

export async function reach(path, options) {
  const answer = await fetch(path, options).catch(() => {
    throw new Error("The server does not respond.");
  });
  const isLogin = answer.redirected && new URL(answer.url).pathname === "/login"; // a redirect instead of a page
  checkLogin(isLogin || answer.status === 401);
  return answer;
}

// The sentence of an API problem. The hint about something missing names an API route, so it is omitted.
export const sentenceOf = ({ detail, title, hint, kind }) => (detail && hint && !kind ? `${detail}; ${hint}` : detail ?? title);

function refusal(answer, data) {
  const error = new Error((data && sentenceOf(data)) ?? `The server responded with status ${answer.status}.`);
  error.places = data?.errors; // the invalid parts of the request
  return error;
}

export async function askServer(path, { method = "GET", body, type = "application/json", key } = {}) {
  const headers = { Accept: "application/json" };
  if (key) headers["Idempotency-Key"] = key;
  if (body !== undefined) headers["Content-Type"] = type;
  const sent = body instanceof Blob || body === undefined ? body : JSON.stringify(body);
  const answer = await reach(path, { method, headers, body: sent });
  const text = await answer.text();
  // A proxy may respond instead of the server, in its own words.
  const isOwn = answer.headers.get("Content-Type")?.includes("json") ?? false;
  const data = isOwn && text ? JSON.parse(text) : null;
  if (!answer.ok || (text && !isOwn)) throw refusal(answer, data);
  return data;
}

export function toast(text, isProblem = false) {
  const shown = document.createElement("div");
  shown.className = isProblem ? "toast toast-problem" : "toast";
  shown.textContent = text;
  document.querySelector("[data-toasts]").append(shown);
  setTimeout(() => shown.remove(), isProblem ? 9000 : 2500);
}

const oldParts = new Set();

// The page may be out of date while any part of it could not be fetched.
export function tellOld(part, isOld) {
  if (isOld) oldParts.add(part);
  else oldParts.delete(part);
  document.querySelector("[data-lost]").hidden = oldParts.size === 0;
}
