// Asking the server, and telling the person how it went.
import { hasTyped } from "./typed.js";

// Who has typed something logs in beside it: it would be gone with the page.
function checkLogin(isOver) {
  const mustStay = isOver && hasTyped();
  document.querySelector("[data-logged-out]").hidden = !mustStay;
  if (!isOver) return;
  if (!mustStay) location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
  throw new Error("You are not logged in any more.");
}

export async function reach(path, options) {
  const answer = await fetch(path, options).catch(() => {
    throw new Error("The server does not answer.");
  });
  const isLogin = answer.redirected && new URL(answer.url).pathname === "/login"; // what is given instead of a page
  checkLogin(isLogin || answer.status === 401);
  return answer;
}

// What a problem of the API says to a person. Of something missing its hint names a route of the API.
export const sentenceOf = ({ detail, title, hint, kind }) => (detail && hint && !kind ? `${detail}; ${hint}` : detail ?? title);

function refusal(answer, data) {
  const error = new Error((data && sentenceOf(data)) ?? `The server answered ${answer.status}.`);
  error.places = data?.errors; // where the request is wrong
  return error;
}

export async function askServer(path, { method = "GET", body, type = "application/json", key } = {}) {
  const headers = { Accept: "application/json" };
  if (key) headers["Idempotency-Key"] = key;
  if (body !== undefined) headers["Content-Type"] = type;
  const sent = body instanceof Blob || body === undefined ? body : JSON.stringify(body);
  const answer = await reach(path, { method, headers, body: sent });
  const text = await answer.text();
  // What stands between may answer for the server, in its own words.
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

// What is shown may be old as long as any part of it could not be had.
export function tellOld(part, isOld) {
  if (isOld) oldParts.add(part);
  else oldParts.delete(part);
  document.querySelector("[data-lost]").hidden = oldParts.size === 0;
}
