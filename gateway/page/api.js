// Requests to the bot, and the stream of changes.

/** Thrown when the browser is not signed in (any more). */
export class SignedOut extends Error {}

/** Thrown with the bot's own words when it refuses a request; retry tells whether to try again. */
export class Refused extends Error {
  constructor(message, retry) {
    super(message);
    this.retry = retry;
  }
}

/** Thrown when there is no answer. */
export class Unreachable extends Refused {
  constructor() {
    super("The bot cannot be reached.", true);
  }
}

async function request(method, path, body) {
  const options = { method, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) {
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Unreachable();
  }
  if (response.status === 401) throw new SignedOut();
  if (response.status === 204) return null;
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(answer.error || "The bot refused the request.", response.status >= 500);
  return answer;
}

const at = (id) => `/api/sessions/${encodeURIComponent(id)}/messages`;

export const sessions = async () => (await request("GET", "/api/sessions")).sessions;
export const newSession = async () => (await request("POST", "/api/sessions")).id;
export const messages = (id) => request("GET", at(id));
export const post = (id, message) => request("POST", at(id), message);
export const commands = async () => (await request("GET", "/api/commands")).commands;
export const status = (id) => request("GET", `/status?session=${encodeURIComponent(id)}`);
export const signIn = (token) => request("POST", "/login", { token });

/** A random id; it makes a repeated post harmless. */
export function randomID() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
}

const hiddenFor = 5 * 60 * 1000;

/**
 * Follows the changes until the page is closed. After an interruption it continues behind the last
 * change it saw. A page that stays hidden lets go of its connection and takes it up again later.
 */
export function follow({ change, connected, lost }) {
  let source = null;
  let last = "";
  let wait = 1000;
  let timer = 0;

  function open() {
    clearTimeout(timer);
    source?.close();
    source = new EventSource("/api/events" + (last ? `?after=${encodeURIComponent(last)}` : ""));
    source.onopen = () => {
      wait = 1000;
      connected();
    };
    source.onmessage = (message) => {
      last = message.lastEventId;
      change(JSON.parse(message.data));
    };
    source.onerror = () => {
      lost();
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      timer = setTimeout(open, wait);
      wait = Math.min(wait * 2, 30000);
    };
  }

  let sleep = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(sleep);
    if (document.hidden) {
      sleep = setTimeout(() => {
        clearTimeout(timer);
        source?.close();
        source = null;
      }, hiddenFor);
    } else if (!source || source.readyState === EventSource.CLOSED) {
      open();
    }
  });
  open();
}
