// Swagger UI over the description of this server's own API. It sends requests with the login of the page.

const place = document.querySelector("[data-api-docs]");
const dark = matchMedia("(prefers-color-scheme: dark)");

function followTheme() {
  const chosen = document.documentElement.dataset.theme;
  document.documentElement.classList.toggle("dark-mode", chosen ? chosen === "dark" : dark.matches);
}

followTheme();
dark.addEventListener("change", followTheme);
new MutationObserver(followTheme).observe(document.documentElement, { attributeFilter: ["data-theme"] });

window.SwaggerUIBundle({
  domNode: place,
  url: place.dataset.apiDocs,
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
  filter: true,
  validatorUrl: null, // it would be another host
});
