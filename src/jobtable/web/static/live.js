// Live events of the page's topics, from the stream that all tabs share.
import { tellOld } from "./server.js";
import { join } from "./stream.js";

function showState(state) {
  for (const place of document.querySelectorAll("[data-live-state]")) {
    place.dataset.state = state;
    place.querySelector("[data-live-name]").textContent = state;
  }
  tellOld("stream", state === "lost");
}

function streamOfItsOwn() {
  const { port1, port2 } = new MessageChannel();
  join(port2);
  return port1;
}

function withStream(use) {
  if (!("SharedWorker" in window)) return use(streamOfItsOwn());
  const worker = new SharedWorker(new URL("./stream.js", import.meta.url), { type: "module" });
  worker.addEventListener("error", () => use(streamOfItsOwn()));
  use(worker.port);
}

export function watch(topics, handlers) {
  let port;
  let wasReady = false;
  const tellWhatIsShown = () => port.postMessage(document.hidden ? [] : topics);
  withStream((given) => {
    port = given;
    port.onmessage = ({ data: { name, data } }) => {
      if (name === "lost") return showState("lost");
      if (name !== "ready") return handlers[name]?.(data);
      showState("live");
      // Read again what changed while no stream was open; at first, that is since the page was rendered.
      handlers.reload?.({ isFirst: !wasReady });
      wasReady = true;
    };
    tellWhatIsShown();
  });
  document.addEventListener("visibilitychange", tellWhatIsShown);
  addEventListener("pagehide", () => port.postMessage([]));
  addEventListener("pageshow", (event) => event.persisted && tellWhatIsShown());
}
