// One stream of events for all tabs, because a stream occupies one of the six connections that a browser opens to a server.
// It runs as a shared worker, or in the page if the browser has none.

const mostTopics = 20; // per stream, at most, on the server
const pauseMilliseconds = 5000;
const events = ["changes", "overview", "reload"];

const viewers = new Map(); // the port of each visible tab, and its topics
let source;
let watched = new Set();
let state;
let again;

function stateFor(topics) {
  return topics.every((topic) => watched.has(topic)) ? state : "lost";
}

function tellState() {
  for (const [port, topics] of viewers) if (state) port.postMessage({ name: stateFor(topics) });
}

// The topic of an event has its id as in keys.
function topicOf(name, data) {
  return name === "changes" ? data.topic.replaceAll("%23", "#").replaceAll("%25", "%") : name;
}

function pass(name, data) {
  const topic = topicOf(name, data);
  for (const [port, topics] of viewers) {
    if (name === "reload" || topics.includes(topic)) port.postMessage({ name, data });
  }
}

function close() {
  clearTimeout(again);
  source?.close();
  source = state = undefined;
  watched.clear();
}

// The browser reconnects by itself after a lost connection, but not after a refusal.
function tryAgainLater(topics) {
  for (const port of viewers.keys()) port.postMessage({ name: "refused" });
  again = setTimeout(() => open(topics), pauseMilliseconds);
}

function open(topics) {
  close();
  watched = new Set(topics);
  const query = topics.map((topic) => `topic=${encodeURIComponent(topic)}`).join("&");
  source = new EventSource(`/api/v1/live?${query}`);
  source.addEventListener("ready", () => {
    state = "ready";
    tellState();
  });
  source.addEventListener("error", () => {
    state = "lost";
    tellState();
    if (source.readyState === EventSource.CLOSED) tryAgainLater(topics);
  });
  for (const name of events) source.addEventListener(name, (event) => pass(name, JSON.parse(event.data)));
}

// A stream may have more topics than needed; it is reopened only for a missing one.
function follow() {
  const wanted = [...new Set([...viewers.values()].flat())];
  if (!wanted.length) close();
  else if (!wanted.every((topic) => watched.has(topic))) open(wanted.slice(-mostTopics));
}

function look(port, topics) {
  viewers.delete(port);
  if (topics.length) viewers.set(port, topics);
  follow();
  if (state && topics.length) port.postMessage({ name: stateFor(topics) });
}

// A tab sends the topics that it shows, and none while it is hidden.
export function join(port) {
  port.onmessage = (event) => look(port, event.data);
  port.addEventListener("close", () => look(port, []));
}

if ("SharedWorkerGlobalScope" in globalThis) globalThis.onconnect = (event) => join(event.ports[0]);
