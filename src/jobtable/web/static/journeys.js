// Importing a journey's file.
import { toast } from "./server.js";

document.querySelector("[data-import]")?.addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  const headers = { "Content-Type": "application/zip", Accept: "application/json" };
  const answer = await fetch("/api/v1/journey-imports", { method: "POST", headers, body: file });
  const data = await answer.json();
  if (answer.ok) location.assign(`/journeys/${encodeURIComponent(data.journey_id)}`);
  else toast(data.detail ?? data.title, true);
  event.target.value = "";
});
