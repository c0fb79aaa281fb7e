// Requests to the server. Every decision says which event it is based on, so that nobody overwrites what others decided.

export const state = {
  number: Number(document.body.dataset.number), // of the last event that this page has seen
  isReadOnly: document.body.dataset.readOnly === "yes",
};

// Note the number of an answer. Returns false for an answer that is older than one that this page has seen already: answers
// may overtake each other, and the newest one is shown.
export function isCurrent(number) {
  if (number < state.number) return false;
  state.number = number;
  return true;
}

// A function like `question`, whose answers have a number. Only the last question is answered, earlier ones give null. An answer
// that is older than what this page has seen, because a decision was made meanwhile, is asked for once more.
export function newest(question) {
  let asked = 0;
  return async (...values) => {
    const own = ++asked;
    let found = await question(...values);
    if (own === asked && !isCurrent(found.number)) found = await question(...values);
    if (own !== asked) return null;
    isCurrent(found.number);
    return found;
  };
}

export class Refused extends Error {
  constructor(status, { code = "error", text = "", facts = {} } = {}) {
    super(text || "The server did not answer.");
    this.status = status;
    this.code = code;
    this.facts = facts;
  }
}

async function answerOf(request) {
  let response;
  try {
    response = await request;
  } catch {
    throw new Refused(0, { code: "no-server", text: "The server does not answer. Start newkind review again." });
  }
  if (response.status === 403) {
    throw new Refused(403, { code: "no-access", text: "The server was restarted. Open the address that it printed." });
  }
  const isJson = (response.headers.get("content-type") || "").startsWith("application/json");
  const content = isJson ? await response.json() : {};
  if (!response.ok) throw new Refused(response.status, content);
  return content;
}

export function get(path, values = {}) {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value !== null));
  return answerOf(fetch(query.size ? `${path}?${query}` : path));
}

export function post(path, content = {}) {
  return answerOf(
    fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ based_on: state.number, ...content }),
    }),
  );
}

// Record a decision.
export async function decide(decision) {
  const done = await post("/api/decide", { decision });
  isCurrent(done.number);
  return done;
}

// Replace parts of the page, which the server renders, by their present state. Returns false if the page is not there any more.
export async function refreshParts(...selectors) {
  const response = await fetch(location.href);
  if (!response.ok) return false;
  const now = new DOMParser().parseFromString(await response.text(), "text/html");
  if (!isCurrent(Number(now.body.dataset.number))) return true;
  for (const selector of selectors) {
    const [old, fresh] = [document.querySelector(selector), now.querySelector(selector)];
    if (old && fresh) old.replaceWith(document.adoptNode(fresh));
    else if (old) old.replaceChildren();
  }
  return true;
}

export const thumbnail = (line) => `/thumb/${line}`;
export const plural = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

// An element with properties and children: make("p", { className: "fine" }, "text").
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// Parts of a name, between which a line may break, after _, / and dots.
export const breakable = (name) => name.split(/(?<=[_/.])(?=[\p{L}\p{N}_])/u).flatMap((part, i) => (i ? [make("wbr"), part] : [part]));
