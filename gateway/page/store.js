// What the page knows: sessions, their messages, and who waits for what.

const fadesAfter = 15000; // without any sign for so long, nobody is shown as working

export class Store {
  sessions = new Map(); // id → {id, title, updatedAt, busy}
  rooms = new Map(); // id → Room
  current = "";

  room(id) {
    if (!this.rooms.has(id)) this.rooms.set(id, new Room());
    return this.rooms.get(id);
  }

  setSessions(list) {
    this.sessions = new Map(list.map((s) => [s.id, s]));
    for (const s of list) {
      if (s.busy) this.room(s.id).sign();
      if (!read("seen:" + s.id)) this.see(s.id); // a browser that is new here has missed nothing
    }
  }

  /** The sessions, the latest first; the current one is shown even while it is empty. */
  list() {
    const all = [...this.sessions.values()];
    if (this.current && !this.sessions.has(this.current)) all.push({ id: this.current, title: "", updatedAt: new Date().toISOString() });
    return all.sort((a, b) => Date.parse(b.updatedAt) - Date.parse(a.updatedAt));
  }

  /** Applies one change from the stream. */
  apply(change) {
    const room = this.room(change.session);
    switch (change.type) {
      case "message":
        room.put(change.message);
        // A growing answer is a sign of work; its last form may come after "done", and is none.
        room.sign(change.message.own || (change.message.class === "assistant" && room.working()));
        this.touch(change.session, change.message);
        break;
      case "delete":
        room.remove(change.id);
        break;
      case "typing":
        room.sign();
        break;
      case "done":
        room.rest();
        break;
    }
  }

  touch(id, message) {
    const s = this.sessions.get(id) || { id, title: "", updatedAt: message.at };
    if (!s.title && message.own && !message.text.startsWith("/")) s.title = title(message.text);
    if (Date.parse(message.at) > Date.parse(s.updatedAt)) s.updatedAt = message.at;
    this.sessions.set(id, s);
    if (id === this.current && !document.hidden) this.see(id);
  }

  see(id) {
    const s = this.sessions.get(id);
    if (s) write("seen:" + id, s.updatedAt);
  }

  unread(session) {
    if (session.id === this.current && !document.hidden) return false;
    const seen = read("seen:" + session.id);
    return !seen || Date.parse(seen) < Date.parse(session.updatedAt);
  }
}

function title(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 60 ? line.slice(0, 59) + "…" : line;
}

class Room {
  loaded = false;
  messages = []; // as the bot knows them, in order
  pending = []; // ours that the bot has not confirmed: {id, text, failed}
  draft = "";
  lastSign = 0;
  gone = new Set();

  put(message) {
    if (this.gone.has(message.id)) return;
    const i = this.messages.findIndex((m) => m.id === message.id);
    if (i < 0) this.messages.push(message);
    else if (this.messages[i].rev <= message.rev) this.messages[i] = message;
    if (message.post) this.pending = this.pending.filter((p) => p.id !== message.post);
  }

  remove(id) {
    this.gone.add(id);
    this.messages = this.messages.filter((m) => m.id !== id);
  }

  /** Begins again, as before the first snapshot; what the bot has not confirmed and the draft stay. */
  forget() {
    this.loaded = false;
    this.messages = [];
    this.gone.clear();
  }

  /** Takes a snapshot; what happened after it was taken stays. */
  load({ messages, cursor, session }) {
    const later = this.messages.filter((m) => m.rev > cursor);
    this.messages = [];
    for (const m of [...messages, ...later]) this.put(m);
    this.loaded = true;
    if (session.busy) this.sign();
    else if (later.length === 0) this.rest();
  }

  sign(is = true) {
    if (is) this.lastSign = Date.now();
  }

  rest() {
    this.lastSign = 0;
  }

  working() {
    return this.lastSign > 0 && Date.now() - this.lastSign < fadesAfter;
  }
}

// Storage may be forbidden; then everything counts as read.
function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return new Date().toISOString();
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // nothing to do: the mark is a convenience
  }
}
