// The chat page of one bot and its owner. Everything comes from the bot itself.

import * as api from "./api.js";
import { Chats } from "./chats.js";
import { Composer } from "./composer.js";
import { element } from "./dom.js";
import { describe, summary } from "./status.js";
import { Store } from "./store.js";
import { View } from "./view.js";

const $ = (id) => document.getElementById(id);
const store = new Store();
const view = new View($("log"), $("scroller"), { say: press, retry: deliver, edit });
const composer = new Composer($("composer"), { say, stop: () => say("/stop", "Stop") });
const chats = new Chats($("sessions"), open);
const phone = matchMedia("(max-width: 760px)");

let status = null;
let online = false;
let trouble = ""; // why something is not shown, in the bot's words

// Drawing

let drawing = false;

function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    drawSessions();
    const room = store.room(store.current);
    view.draw(store.current, room, working(room));
    composer.working(working(room));
    $("title").textContent = store.sessions.get(store.current)?.title || "New chat";
    $("to-end").hidden = view.following;
    drawStatus();
    drawBanner();
  });
}

// nobody can tell what a bot does that cannot be reached
const working = (room) => online && room.working();

function drawSessions() {
  const list = store.list().map((s) => ({
    id: s.id, title: s.title, current: s.id === store.current, unread: store.unread(s), working: working(store.room(s.id)),
  }));
  chats.draw(list);
  const unread = list.filter((c) => c.unread).length;
  $("unread-badge").hidden = unread === 0;
  $("open-drawer").setAttribute("aria-label", unread ? `Chats, ${unread} unread` : "Chats");
  document.title = (unread ? `(${unread}) ` : "") + "Understudy";
}

let described = null;

function drawStatus() {
  const now = online ? status : null;
  const { state, text, more } = online && !status ? { state: "", text: "connecting…" } : summary(now);
  const pill = $("pill");
  pill.dataset.state = state;
  pill.title = [now?.model?.selected, more].filter(Boolean).join(" · ") || "Status";
  pill.setAttribute("aria-label", `Status: ${text} ${more || ""}`.trim());
  $("pill-text").textContent = text;
  if (more) $("pill-text").append(element("span", "more", " " + more));
  if ($("status").open && described !== now) {
    described = now;
    describe($("status-body"), now);
  }
}

// The line above the field. A short interruption is not worth one.
const worthTelling = 1500;
let away = 0; // since when the bot cannot be reached, 0 = it can

function drawBanner() {
  const gone = away && Date.now() - away > worthTelling;
  const text = gone ? "The bot cannot be reached. This page keeps trying, and will send what you write." : trouble;
  if ($("banner").textContent !== text) $("banner").textContent = text;
}

function announce(message) {
  if (message.own || message.session !== store.current) return;
  const html = element("div");
  html.innerHTML = message.html;
  $("live").textContent = html.textContent.slice(0, 600);
}

// Sessions

async function open(id) {
  store.room(store.current).draft = composer.text;
  store.current = id;
  history.replaceState(null, "", "#" + id);
  drawer(false);
  const room = store.room(id);
  composer.text = room.draft;
  store.see(id);
  draw();
  if (!phone.matches) $("input").focus();
  await load(id);
  refreshStatus();
}

async function load(id) {
  await guarded(async () => {
    const snapshot = await api.messages(id);
    store.room(id).load(snapshot);
    store.see(id);
    trouble = "";
  });
  draw();
}

async function newChat() {
  const empty = store.room(store.current);
  if (store.current && empty.loaded && empty.messages.length + empty.pending.length === 0) {
    drawer(false);
    $("input").focus();
    return;
  }
  await guarded(async () => open(await api.newSession()));
}

// starts over with what the bot has; the ids and revisions of another process mean nothing in this one
async function reload() {
  await guarded(async () => {
    const [list, commands] = await Promise.all([api.sessions(), api.commands()]);
    store.setSessions(list);
    composer.commands = commands;
    for (const room of store.rooms.values()) room.forget();
    trouble = "";
    $("app").hidden = false;
    $("sign-in").hidden = true;
    if (store.current) await load(store.current);
    else {
      const wanted = location.hash.slice(1);
      await open(/^[a-z0-9-]{1,64}$/.test(wanted) ? wanted : list[0]?.id || (await api.newSession()));
    }
  });
  refreshStatus();
  draw();
}

// Messages

function say(text, label) {
  const pending = { id: api.randomID(), text, label, session: store.current, since: Date.now(), failed: "", unsent: false, again: false };
  store.room(store.current).pending.push(pending);
  draw();
  requestAnimationFrame(() => view.toEnd());
  deliver(pending);
}

/** Says what a button stands for. The button may vanish, so the keyboard goes on in the field. */
function press(text, label) {
  say(text, label);
  if (!phone.matches) $("input").focus();
}

const tries = 3;
const keepsTrying = 5 * 60 * 1000; // what was written longer ago is only sent when the person wants it

async function deliver(pending) {
  const room = store.room(pending.session);
  Object.assign(pending, { failed: "", unsent: false });
  if (online) room.sign();
  draw();
  for (let n = 1; ; n++) {
    try {
      const { id, text, label, again } = pending;
      pending.again = true;
      const message = await api.post(pending.session, { id, text, label, again });
      room.put(message);
      store.touch(pending.session, message);
      break;
    } catch (error) {
      if (error instanceof api.SignedOut) signedOut();
      if (error.retry && n < tries) {
        await new Promise((done) => setTimeout(done, n * 1500));
        continue;
      }
      if (error instanceof api.Unreachable && Date.now() - pending.since < keepsTrying) pending.unsent = true;
      else pending.failed = error instanceof api.SignedOut ? "Not signed in." : error.message;
      room.rest();
      break;
    }
  }
  draw();
}

/** Sends what could not be sent while the bot was away, in order. */
async function deliverUnsent() {
  for (const pending of [...store.rooms.values()].flatMap((room) => room.pending)) {
    if (!pending.unsent) continue;
    if (Date.now() - pending.since < keepsTrying) await deliver(pending);
    else Object.assign(pending, { unsent: false, failed: "The bot was away for a while." });
  }
  draw();
}

/** Takes a message that could not be sent back into the field. */
function edit(pending) {
  const room = store.room(pending.session);
  room.pending = room.pending.filter((p) => p !== pending);
  composer.text = [composer.text.trim(), pending.text].filter(Boolean).join("\n");
  $("input").focus();
  draw();
}

// Status

let statusTimer = 0;

async function refreshStatus() {
  clearTimeout(statusTimer);
  if (!document.hidden && store.current) {
    try {
      const id = store.current;
      const answer = await api.status(id);
      if (id === store.current) status = answer;
    } catch (error) {
      if (error instanceof api.SignedOut) signedOut();
      else status = null;
    }
    draw();
  }
  clearTimeout(statusTimer);
  statusTimer = setTimeout(refreshStatus, 15000);
}

// Signing in

function signedOut() {
  $("app").hidden = true;
  $("sign-in").hidden = false;
}

async function guarded(work) {
  try {
    await work();
  } catch (error) {
    if (error instanceof api.SignedOut) signedOut();
    else if (error instanceof api.Refused) {
      if (!(error instanceof api.Unreachable)) trouble = error.message;
      clearTimeout(reloadTimer);
      reloadTimer = setTimeout(reload, 5000);
    } else throw error;
  }
}

let reloadTimer = 0;

$("sign-in-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("sign-in-error").textContent = "";
  try {
    await api.signIn($("token").value.trim());
    location.reload();
  } catch (error) {
    $("sign-in-error").textContent = error instanceof api.SignedOut ? "That is not the token." : error.message;
  }
});

// Frame

function drawer(open) {
  open &&= phone.matches;
  const was = document.body.classList.contains("drawer");
  document.body.classList.toggle("drawer", open);
  $("scrim").hidden = !open;
  $("main").inert = open;
  $("open-drawer").setAttribute("aria-expanded", open);
  if (open) $("close-drawer").focus();
  else if (was) $("open-drawer").focus();
}

$("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the chat
  $("input").focus();
});

$("open-drawer").addEventListener("click", () => drawer(true));
$("close-drawer").addEventListener("click", () => drawer(false));
$("scrim").addEventListener("click", () => drawer(false));
$("new-chat").addEventListener("click", newChat);
$("to-end").addEventListener("click", () => view.toEnd());
$("scroller").addEventListener("scroll", () => ($("to-end").hidden = view.following), { passive: true });
$("pill").addEventListener("click", () => {
  described = undefined;
  $("status").showModal();
  drawStatus();
  refreshStatus();
});
$("close-status").addEventListener("click", () => $("status").close());
$("status").addEventListener("click", (event) => {
  if (event.target === $("status")) $("status").close();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") drawer(false);
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  store.see(store.current);
  refreshStatus();
  draw();
});
addEventListener("hashchange", () => {
  const id = location.hash.slice(1);
  if (/^[a-z0-9-]{1,64}$/.test(id) && id !== store.current) open(id);
});
phone.addEventListener("change", () => drawer(false));
setInterval(draw, 5000); // signs of work fade

api.follow({
  connected() {
    if (!online) refreshStatus();
    online = true;
    away = 0;
    deliverUnsent();
    draw();
  },
  async lost() {
    online = false;
    if (!away) setTimeout(draw, worthTelling + 50);
    away ||= Date.now();
    draw();
    try {
      await api.commands(); // finds out whether we are signed out
      $("app").hidden = false;
    } catch (error) {
      if (error instanceof api.SignedOut) signedOut();
    }
  },
  change(event) {
    if (event.type === "reset") {
      reload();
      return;
    }
    store.apply(event);
    if (event.type === "done") {
      setTimeout(() => { // the answer's last form follows in a moment
        const last = store.room(event.session).messages.findLast((m) => !m.own);
        if (last) announce(last);
        refreshStatus();
      }, 400);
    } else if (event.message && ["notice", "error", "command"].includes(event.message.class)) {
      announce(event.message);
      refreshStatus();
    }
    draw();
  },
});
