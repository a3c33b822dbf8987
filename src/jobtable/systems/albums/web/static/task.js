// Sends the albums of a validation task as the person corrected them.
import { askServer, toast } from "../server.js";

const number = (text) => (text === "" ? null : Number(text));

const form = document.querySelector("[data-task]");
const button = form.querySelector("button");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const albums = [...form.querySelectorAll("[data-album]")]
    .filter((album) => album.querySelector('[name="keep"]').checked)
    .map((album) => ({
      album_index: Number(album.dataset.album),
      album_name: album.querySelector('[name="album_name"]').value,
      artist: album.querySelector('[name="artist"]').value,
      year: Number(album.querySelector('[name="year"]').value),
      year_validated: true,
      price_estimate: number(album.querySelector('[name="price_estimate"]').value),
      price_confidence: number(album.querySelector('[name="price_confidence"]').value),
    }));
  button.disabled = true;
  try {
    await askServer(form.dataset.task, { method: "POST", body: { albums } });
    location.assign(form.dataset.then);
  } catch (error) {
    toast(error.message, true);
    button.disabled = false;
  }
});

// Disabled until now, because without this script the browser would submit the form itself.
if (button) button.disabled = false;
