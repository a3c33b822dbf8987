// Asking the server, and telling the person how it went.

export async function askServer(path, { method = "GET", body } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await answer.text();
  const data = text ? JSON.parse(text) : null;
  if (!answer.ok) throw new Error(data?.detail ?? data?.title ?? `The server answered ${answer.status}.`);
  return data;
}

export function toast(text, isProblem = false) {
  const shown = document.createElement("div");
  shown.className = isProblem ? "toast toast-problem" : "toast";
  shown.textContent = text;
  document.querySelector("[data-toasts]").append(shown);
  setTimeout(() => shown.remove(), isProblem ? 9000 : 2500);
}
