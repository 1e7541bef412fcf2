// The chat page of one bot and its owner. Everything comes from the bot itself.

import * as api from "./api.js";
import { Composer } from "./composer.js";
import { describe, summary } from "./status.js";
import { Store } from "./store.js";
import { element, View } from "./view.js";

const $ = (id) => document.getElementById(id);
const store = new Store();
const view = new View($("log"), $("scroller"), { say, retry: deliver });
const composer = new Composer($("composer"), { say, stop: () => say("/stop") });
const phone = matchMedia("(max-width: 760px)");

let status = null;
let online = false;

// Drawing

let drawing = false;

function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    drawSessions();
    const room = store.room(store.current);
    view.draw(store.current, room);
    composer.working(room.working());
    $("title").textContent = store.sessions.get(store.current)?.title || "New chat";
    $("to-end").hidden = view.atEnd();
    drawStatus();
  });
}

function drawSessions() {
  let unread = 0;
  const items = store.list().map((s) => {
    const item = element("li");
    const button = element("button");
    button.type = "button";
    button.setAttribute("aria-current", s.id === store.current);
    button.dataset.id = s.id;
    const name = element("span", "name", s.title || "New chat");
    button.append(name);
    if (store.unread(s)) {
      unread++;
      name.classList.add("unread");
      const mark = element("span", "mark");
      mark.append(element("span", "unseen", "unread"));
      button.append(mark);
    } else if (store.room(s.id).working()) {
      button.append(element("span", "mark busy"));
    }
    button.addEventListener("click", () => open(s.id));
    item.append(button);
    return item;
  });
  const focused = document.activeElement?.dataset?.id;
  $("sessions").replaceChildren(...items);
  if (focused) $("sessions").querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  $("unread-badge").hidden = unread === 0;
  document.title = (unread ? `(${unread}) ` : "") + "Understudy";
}

function drawStatus() {
  const { state, text, instead } = summary(online ? status : null);
  const pill = $("pill");
  pill.dataset.state = state;
  $("pill-text").textContent = online && !status ? "connecting…" : text;
  if (instead && online) $("pill-text").append(element("span", "instead", instead));
  pill.title = status?.model?.selected ? `Selected: ${status.model.selected}` : "Status";
  if ($("status").open) describe($("status-body"), online ? status : null);
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

function say(text) {
  const pending = { id: api.randomID(), text, failed: "" };
  const session = store.current;
  store.room(session).pending.push(pending);
  draw();
  requestAnimationFrame(() => view.toEnd());
  deliver(pending, session);
}

const tries = 3;

async function deliver(pending, session = store.current) {
  const room = store.room(session);
  pending.failed = "";
  room.sign();
  draw();
  for (let n = 1; ; n++) {
    try {
      const message = await api.post(session, { id: pending.id, text: pending.text });
      store.room(session).put(message);
      store.touch(session, message);
      break;
    } catch (error) {
      if (error instanceof api.SignedOut) signedOut();
      if (error.retry && n < tries) {
        await new Promise((done) => setTimeout(done, n * 1500));
        continue;
      }
      pending.failed = error instanceof api.SignedOut ? "Not signed in." : error.message;
      room.rest();
      break;
    }
  }
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
    else if (error instanceof api.Refused) online = false;
    else throw error;
  }
}

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
  document.body.classList.toggle("drawer", open && phone.matches);
  $("scrim").hidden = !(open && phone.matches);
  $("open-drawer").setAttribute("aria-expanded", open && phone.matches);
  if (open) $("new-chat").focus();
}

$("open-drawer").addEventListener("click", () => drawer(true));
$("close-drawer").addEventListener("click", () => drawer(false));
$("scrim").addEventListener("click", () => drawer(false));
$("new-chat").addEventListener("click", newChat);
$("to-end").addEventListener("click", () => view.toEnd());
$("scroller").addEventListener("scroll", () => ($("to-end").hidden = view.atEnd()), { passive: true });
$("pill").addEventListener("click", () => {
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
    draw();
  },
  lost() {
    online = false;
    guarded(async () => void (await api.commands())); // finds out whether we are signed out
    draw();
  },
  change(event) {
    if (event.type === "reset") {
      reload();
      return;
    }
    store.apply(event);
    if (event.type === "done") {
      setTimeout(() => { // the answer's last form follows in a moment
        const last = store.room(event.session).messages.at(-1);
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
