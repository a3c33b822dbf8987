// One stream of events for all tabs: a stream holds a connection for good, and a browser keeps only six to a server.
// It runs as a shared worker; where a browser has none, in the page itself.

const mostTopics = 20; // that the server takes for one stream
const pauseMilliseconds = 5000;
const events = ["changes", "overview", "reload"];

const viewers = new Map(); // the port of each tab that is looked at, and its topics
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

// The topic of an event has its id as keys have it.
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

// The browser tries again by itself after a lost connection, but not after an answer that is a refusal.
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

// A stream may have more topics than are looked at: it is opened again only for one that it has not.
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

// A tab sends the topics that it shows, and none when it is not looked at.
export function join(port) {
  port.onmessage = (event) => look(port, event.data);
  port.addEventListener("close", () => look(port, []));
}

if ("SharedWorkerGlobalScope" in globalThis) globalThis.onconnect = (event) => join(event.ports[0]);
