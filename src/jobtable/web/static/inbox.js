// Keys of the inbox: j and k move over the tasks, a accepts, r rejects, x ticks, Enter opens. Everything works without.
import { refreshRegions } from "./regions.js";
import { askServer, toast } from "./server.js";

const rows = () => [...document.querySelectorAll("[data-row]")];
let at; // the link of the row where the person is: rows come and go

const linkOf = (row) => row.querySelector("a.job-link");
const current = () => rows().find((row) => linkOf(row).getAttribute("href") === at);

function go(row) {
  for (const each of rows()) delete each.dataset.at;
  at = row && linkOf(row).getAttribute("href");
  if (!row) return;
  row.dataset.at = "";
  linkOf(row).focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function move(steps) {
  const all = rows();
  const place = all.indexOf(current());
  go(all[Math.min(Math.max(place + steps, 0), all.length - 1)]);
}

async function close(verb) {
  const row = current();
  if (!row?.dataset.task || (verb === "accept" && row.dataset.kind !== "proposal")) return;
  const all = rows();
  const next = all[all.indexOf(row) + 1] ?? all[all.indexOf(row) - 1];
  try {
    const body = verb === "reject" ? {} : undefined;
    await askServer(`/api/v1/inbox/${encodeURIComponent(row.dataset.task)}/${verb}`, { method: "POST", body });
    go(next);
    toast(verb === "accept" ? "Accepted" : "Rejected");
  } catch (error) {
    toast(error.message, true);
  }
  await refreshRegions();
  go(current());
}

const keysOfList = {
  j: () => move(1),
  k: () => move(-1),
  a: () => close("accept"),
  r: () => close("reject"),
  x: () => current()?.querySelector('[name="task"]')?.click(),
};

function press(key) {
  const button = document.querySelector(`[data-key="${key}"]`);
  const folded = button?.closest("details:not([open])");
  if (folded) {
    folded.open = true;
    button.form.querySelector("textarea").focus();
  } else button?.click();
}

const isTyping = ({ target }) => target.matches("input:not([type=checkbox]), textarea, select");

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
  if (document.querySelector("[data-inbox]") && keysOfList[event.key]) keysOfList[event.key]();
  else if (["a", "r"].includes(event.key)) press(event.key);
  else return;
  event.preventDefault();
});
