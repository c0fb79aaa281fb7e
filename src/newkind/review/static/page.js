// What every page has: messages, undo and redo, help, and news about decisions made elsewhere.

import { decide, get, isCurrent, make, post, Refused, state } from "./api.js";
import { onKey, showHelp } from "./keys.js";
import { showRefit } from "./refit.js";

const POLL_SECONDS = 4;
const UNREAD_SECONDS = 1;
const EVERYWHERE = { isEverywhere: true };
const page = { refresh: async () => location.reload(), isBusy: () => false };

// `refresh` shows the present state of the page; `isBusy` says whether that would lose something, such as a selection.
export function setUpPage(actions) {
  Object.assign(page, actions);
}

// Load what the page shows, and say that it is complete. A message of the page before that nobody could read yet is shown again.
export async function startPage(load = async () => {}) {
  await load();
  document.getElementById("main").ariaBusy = "false";
  const text = sessionStorage.getItem("told");
  sessionStorage.removeItem("told");
  if (text) tell(text);
}

const last = { text: "", time: 0 };
window.addEventListener("pagehide", () => {
  if (last.text && Date.now() - last.time < 1000 * UNREAD_SECONDS) sessionStorage.setItem("told", last.text);
});

// Show a message, in place of the last one; an empty one only removes the last one.
export function tell(text, kind = "done") {
  const place = document.getElementById("messages");
  place.replaceChildren();
  if (!text) return;
  const line = make("p", { className: kind, textContent: text });
  place.append(line);
  Object.assign(last, { text: kind === "done" ? text : "", time: Date.now() });
  setTimeout(() => line.remove(), kind === "done" ? 6000 : 15000);
}

function tellStale(text) {
  const place = document.getElementById("stale");
  const button = make("button", { type: "button", textContent: "Refresh" });
  button.addEventListener("click", refreshPage);
  place.replaceChildren(make("span", { textContent: text }), button);
  place.hidden = false;
}

export async function refreshPage() {
  document.getElementById("stale").hidden = true;
  await page.refresh();
}

// Run an action; what goes wrong is told in the page. Returns whether it succeeded.
export async function attempt(action) {
  try {
    await action();
    return true;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.code === "stale") tellStale(error.message);
    else tell(error.message, "failed");
    return false;
  }
}

// Show the new state, then tell what was done: whoever reads the message can decide about what is shown.
async function showDone(text) {
  try {
    await refreshPage();
  } finally {
    tell(text);
  }
}

// Record a decision, show the new state, and tell what was done.
export async function carryOut(decision) {
  return attempt(async () => {
    const done = await decide(decision);
    await showDone(done.text);
  });
}

// Undo or redo an event; 0 stands for the last one.
export async function undoOrRedo(kind, event = 0) {
  return attempt(async () => {
    const done = await post(`/api/${kind}`, { event });
    isCurrent(done.number);
    await showDone(done.text);
  });
}

async function lookForNews() {
  if (document.hidden) return;
  const seen = state.number;
  let news;
  try {
    news = await get("/api/state");
  } catch (error) {
    if (error instanceof Refused) tell(error.message, "failed");
    return;
  }
  if (state.number !== seen || news.number === seen) return; // this page was faster, or there is no news
  if (page.isBusy() || document.querySelector("dialog[open]")) {
    tellStale("Decisions were made in another window.");
  } else {
    await refreshPage();
    tell("Decisions were made in another window. This page is up to date.");
  }
}

onKey("?", "Show this help", showHelp, EVERYWHERE);
if (!state.isReadOnly) {
  onKey(["u", "z"], "Undo", () => undoOrRedo("undo"), EVERYWHERE);
  onKey("U", "Redo", () => undoOrRedo("redo"), EVERYWHERE);
  onKey("F", "Refit the model", () => attempt(showRefit), EVERYWHERE);
}
onKey("/", "Search images and categories", () => document.querySelector("#search input").focus(), EVERYWHERE);
onKey("q", "Go to the queue", () => location.assign("/"), EVERYWHERE);
onKey("c", "Go to the categories", () => location.assign("/categories"), EVERYWHERE);
onKey("m", "Go to the map", () => location.assign("/map"), EVERYWHERE);
onKey("h", "Go to the history", () => location.assign("/history"), EVERYWHERE);
document.getElementById("undo")?.addEventListener("click", () => undoOrRedo("undo"));
document.getElementById("help").addEventListener("click", showHelp);
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-refit]")) attempt(showRefit);
});
document.addEventListener("visibilitychange", lookForNews);
setInterval(lookForNews, 1000 * POLL_SECONDS);
