// Creates a token. Its text is only in the response, and is shown until you leave the page.
import { refreshRegions } from "./regions.js";
import { askServer, toast } from "./server.js";

const form = document.querySelector("[data-new-token]");
const button = form.querySelector("button");
const place = document.querySelector("[data-secret]");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { name, role, days } = Object.fromEntries(new FormData(form));
  const body = { name, role, expires_in_seconds: days ? Number(days) * 86400 : null };
  button.disabled = true;
  try {
    const made = await askServer("/api/v1/tokens", { method: "POST", body });
    place.querySelector("[data-secret-text]").textContent = made.token;
    place.querySelector("[data-copy]").dataset.copy = made.token;
    place.hidden = false;
    form.reset();
    await refreshRegions();
  } catch (error) {
    toast(error.message, true);
  } finally {
    button.disabled = false;
  }
});

// Before this script loads, the browser would put the form into the address.
button.disabled = false;
