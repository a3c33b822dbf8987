// Live regions: the page is fetched again, and only the differences in its regions change. Everything else keeps
// its focus, selection, scrolling, typed text and opened parts.
import { reach, tellOld } from "./server.js";
import { isEdited } from "./typed.js";

const longestMilliseconds = 30000; // a page that takes longer is given up
const pauseMilliseconds = 5000;

const naming = ["id", "data-job", "data-act", "data-send", "href", "name"];

// What identifies an element whose position or text has changed.
function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return undefined;
  const attribute = naming.find((name) => node.hasAttribute(name));
  if (attribute) return `${attribute} ${node.getAttribute(attribute)}`;
  return ["TR", "LI"].includes(node.tagName) ? node.querySelector("a[href]")?.getAttribute("href") : undefined;
}

// Added by a script, not sent by the server.
const isDrawn = (node) => node.dataset?.drawn !== undefined;
const isSame = (one, other) => one.nodeName === other.nodeName && keyOf(one) === keyOf(other);

function findSame(nodes, wanted) {
  for (const node of nodes) if (isSame(node, wanted)) return node;
  return undefined;
}

function isOfThePerson(element, attribute) {
  return (attribute === "open" && element.tagName === "DETAILS") || (attribute === "tabindex" && element === document.activeElement);
}

function updateAttributes(shown, fresh) {
  for (const { name, value } of fresh.attributes) if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
  for (const { name } of [...shown.attributes]) {
    if (!fresh.hasAttribute(name) && !isOfThePerson(shown, name)) shown.removeAttribute(name);
  }
}

function updateChildren(shown, fresh) {
  const left = new Set([...shown.childNodes].filter((node) => !isDrawn(node)));
  const pairs = [...fresh.childNodes].map((node) => {
    const match = findSame(left, node);
    left.delete(match);
    return [match, node];
  });
  for (const node of left) node.remove();
  let place = shown.firstChild;
  for (const [match, node] of pairs) {
    if (match === undefined) shown.insertBefore(node, place);
    else if (match === place) place = place.nextSibling;
    else shown.insertBefore(match, place);
    if (match) update(match, node);
  }
}

function update(shown, fresh) {
  if (shown.isEqualNode(fresh)) return;
  if (shown.nodeType !== Node.ELEMENT_NODE) {
    shown.data = fresh.data;
    return;
  }
  updateAttributes(shown, fresh);
  updateChildren(shown, fresh);
}

// If the focused element is gone, focus its nearest remaining ancestor.
function focusAgain(region, active, key, around) {
  const same = active.isConnected ? active : key && [...region.querySelectorAll("*")].find((each) => keyOf(each) === key);
  const place = same || around.find((each) => each.isConnected);
  if (!same) place.tabIndex = -1;
  place.focus({ preventScroll: true });
}

function updateRegion(region, fresh) {
  const active = document.activeElement;
  const hasFocus = region !== active && region.contains(active);
  if (hasFocus && isEdited(active)) return;
  const key = keyOf(active);
  const around = [];
  for (let each = active; hasFocus && each !== region; each = each.parentElement) around.push(each.parentElement);
  updateChildren(region, fresh);
  if (hasFocus && document.activeElement !== active) focusAgain(region, active, key, around);
}

export async function fetchPage(address) {
  const answer = await reach(address, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(longestMilliseconds) });
  document.querySelector("[data-gone]").hidden = answer.status !== 404;
  if (answer.status >= 500 || answer.status === 429) throw new Error(`The server responded with status ${answer.status}.`);
  return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : undefined;
}

// A hidden tab reads everything when it becomes visible.
export function tryAgainLater(work) {
  setTimeout(() => document.hidden || work(), pauseMilliseconds);
}

// An event is sent only once, so a page that could not be fetched is fetched until it succeeds.
async function fetchThisPage() {
  try {
    const page = await fetchPage(location.href);
    tellOld("page", false);
    return page;
  } catch {
    tellOld("page", true);
    tryAgainLater(refreshSoon);
    return undefined;
  }
}

// The response to a button and a live event may both report a deletion; only one of them leaves the page.
let isLeaving = false;
export function leaveFor(path) {
  if (isLeaving) return;
  isLeaving = true;
  location.assign(path);
}
// The browser may show a cached page again without loading it.
addEventListener("pageshow", () => (isLeaving = false));

async function refresh() {
  if (isLeaving) return; // its subject was just deleted from this page
  const askedAt = performance.now();
  const fresh = await fetchThisPage();
  if (!fresh) return;
  for (const region of document.querySelectorAll("[data-region]")) {
    const other = fresh.querySelector(`[data-region="${region.dataset.region}"]`);
    if (other) updateRegion(region, other);
  }
  document.dispatchEvent(new CustomEvent("regions", { detail: { askedAt } }));
}

// One fetch at a time: requests during a fetch share the next one.
let current;
let next;
export function refreshRegions() {
  if (current) return (next ??= current.then(refreshRegions));
  next = undefined;
  current = refresh().finally(() => (current = undefined));
  return current;
}

export function showRegion(name, html) {
  const region = document.querySelector(`[data-region="${name}"]`);
  if (region) updateRegion(region, new DOMParser().parseFromString(html, "text/html").body);
}

let refreshTimer;
export function refreshSoon() {
  // All viewers get an event at once; random delays spread the load of the server.
  refreshTimer ??= setTimeout(() => {
    refreshTimer = undefined;
    refreshRegions();
  }, 700 + Math.random() * 1300);
}

// A page that is being fetched may predate this event and would undo it, so it is fetched once more.
export function refreshIfUnderWay() {
  if (current) refreshSoon();
}
