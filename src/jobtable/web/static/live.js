// Live events. One connection for the page; the browser opens it again by itself when it is lost.

function showState(state) {
  const place = document.querySelector("[data-live-state]");
  if (!place) return;
  place.dataset.state = state;
  place.querySelector("[data-live-name]").textContent = state;
}

export function watch(topics, handlers) {
  const query = topics.map((topic) => `topic=${encodeURIComponent(topic)}`).join("&");
  const source = new EventSource(`/api/v1/live?${query}`);
  let wasReady = false;
  source.addEventListener("ready", () => {
    showState("live");
    // What happened while nobody listened must be read again.
    if (wasReady) handlers.reload?.();
    wasReady = true;
  });
  source.addEventListener("error", () => showState("lost"));
  for (const [name, handle] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  }
  addEventListener("pagehide", () => source.close());
}
