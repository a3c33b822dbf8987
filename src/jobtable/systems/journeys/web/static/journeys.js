// Importing a journey's file.
import { askServer, toast } from "../server.js";

document.querySelector("[data-import]")?.addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  try {
    const made = await askServer("/api/v1/journey-imports", { method: "POST", body: file, type: "application/zip" });
    location.assign(`/journeys/${encodeURIComponent(made.journey_id)}`);
  } catch (error) {
    toast(error.message, true);
  }
  event.target.value = "";
});
