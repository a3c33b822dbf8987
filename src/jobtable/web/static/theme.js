// Runs before the page is drawn, so that a chosen theme never flashes.
const chosen = localStorage.getItem("theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
