// Draws one conversation. Rows are kept by message id and only drawn again when they changed.

import { fill } from "./body.js";
import { element, place } from "./dom.js";

const icons = {
  notice: '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M10 3.5a6.5 6.5 0 100 13 6.5 6.5 0 000-13zM10 9.3v3.6M10 6.8v.1"/></svg>',
  error: '<svg viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="7.5"/><path d="M10 6.2v4.6M10 13.7v.1"/></svg>',
};

const looks = { notice: "notice", error: "failure", command: "command" }; // everything else is an answer
const few = 12; // buttons that may all be shown at once
const names = { notice: "Notice", error: "Error", command: "Reply to a command", heartbeat: "Heartbeat", cron: "Scheduled" };

export class View {
  rows = new Map(); // what place knows
  shown = ""; // session id
  following = true; // the newest message stays in sight

  constructor(log, scroller, { say, retry, edit }) {
    this.log = log;
    this.scroller = scroller;
    this.say = say;
    this.retry = retry;
    this.edit = edit;
    scroller.addEventListener("scroll", () => (this.following = this.atEnd()), { passive: true });
    // A field that grows, or the keyboard of a phone, takes away from the bottom.
    new ResizeObserver(() => this.following && this.toEnd()).observe(scroller);
  }

  atEnd() {
    return this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight < 80;
  }

  toEnd() {
    this.following = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  draw(id, room, working) {
    const follow = this.shown !== id || this.following;
    if (this.shown !== id) {
      this.rows.clear();
      this.log.replaceChildren();
      this.shown = id;
    }
    const last = room.messages.at(-1);
    const growing = working && last?.class === "assistant" ? last.id : "";
    const wanted = [];
    let day = new Date().toDateString();
    for (const m of room.messages) {
      const its = new Date(m.at).toDateString();
      if (its !== day) wanted.push({ key: "day " + its, version: new Date().toDateString(), make: () => divider(m.at) });
      day = its;
      wanted.push({
        key: m.id, version: `${m.rev} ${m.id === growing}`,
        make: () => this.message(m, m.id === growing), update: (row) => this.again(row, m, m.id === growing),
      });
    }
    for (const p of room.pending) {
      wanted.push({ key: "p" + p.id, version: `${p.failed} ${p.unsent}`, make: () => this.pending(p) });
    }
    if (working && !growing) wanted.push({ key: "working", version: "", make: dots });
    if (room.loaded && wanted.length === 0) wanted.push({ key: "welcome", version: "", make: () => this.welcome() });
    place(this.log, this.rows, wanted);
    if (follow) this.toEnd();
  }

  message(m, growing) {
    if (m.own) return own(m);
    const row = element("article", "row " + (looks[m.class] || "answer"));
    row.dataset.class = m.class;
    row.title = when(m.at);
    row.setAttribute("aria-label", names[m.class] || "Answer");
    const signed = /^\p{Extended_Pictographic}/u.test(m.text); // many texts bring their own sign
    if (icons[m.class] && !signed) row.innerHTML = icons[m.class];
    if (m.class === "heartbeat" || m.class === "cron") row.append(element("span", "label", `${names[m.class]} · ${time(m.at)}`));
    row.append(element("div", "body"));
    this.again(row, m, growing);
    return row;
  }

  /** Brings the row of a message up to date; false when it looks different now. */
  again(row, m, growing) {
    const body = row.lastElementChild;
    if (m.own || row.dataset.class !== m.class || !body) return false;
    row.classList.toggle("growing", growing);
    body.querySelector(":scope > .choices")?.remove();
    fill(body, m.html);
    if (m.buttons?.length) body.append(this.choices(m.buttons));
    return true;
  }

  /** Buttons that send a command. Those of one group stand together under its name; of many, only the group that counts is open. */
  choices(buttons) {
    const box = element("div", "choices");
    const groups = Map.groupBy(buttons, (b) => b.group || "");
    for (const [name, list] of groups) {
      const set = element("div", "set");
      set.append(...list.map((b) => this.choice(b, groups.size > 1 ? name : "")));
      if (groups.size > 1 && name && buttons.length > few) {
        const group = element("details", "group");
        group.open = list.some((b) => b.chosen);
        group.append(element("summary", "", `${name} · ${list.length}`), set);
        box.append(group);
      } else {
        if (groups.size > 1 && name) box.append(element("div", "group", name));
        box.append(set);
      }
    }
    return box;
  }

  choice(b, group) {
    const named = group && b.label.startsWith(group + "/"); // its name stands above already
    const button = element("button", b.chosen ? "chosen" : "", named ? b.label.slice(group.length + 1) : b.label);
    button.type = "button";
    if (b.chosen) button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => this.say(b.command, b.label));
    return button;
  }

  pending(p) {
    const row = own(p);
    row.classList.add(p.failed ? "failed" : "sending");
    if (p.unsent) row.append(element("span", "unsent", "Waits for the bot."));
    if (!p.failed) return row;
    const box = element("div", "remedies");
    box.append(element("span", "", p.failed));
    for (const [text, act] of [["Send again", () => this.retry(p)], ["Edit", () => this.edit(p)]]) {
      const button = element("button", "", text);
      button.type = "button";
      button.addEventListener("click", act);
      box.append(button);
    }
    row.append(box);
    return row;
  }

  welcome() {
    const box = element("div", "welcome");
    const image = element("img");
    Object.assign(image, { src: "/icon.svg", alt: "", width: 48, height: 48 });
    box.append(image, element("h2", "", "What can I do for you?"),
      element("p", "", "If a model fails, an understudy answers and says so. The conversation goes on."),
      this.choices(["/help", "/status", "/model"].map((c) => ({label: c, command: c}))));
    return box;
  }
}

/** What the person at the page said, or which button they pressed. */
function own(m) {
  const row = element("article", "row own" + (m.label && m.label !== m.text ? " pressed" : ""));
  row.setAttribute("aria-label", "You");
  if (m.at) row.title = when(m.at);
  const text = element("span", "", m.label || m.text);
  row.append(text);
  return row;
}

function divider(at) {
  const yesterday = new Date();
  yesterday.setDate(yesterday.getDate() - 1);
  const day = new Date(at);
  let text = day.toLocaleDateString([], { weekday: "long", day: "numeric", month: "long", year: "numeric" });
  if (day.toDateString() === yesterday.toDateString()) text = "Yesterday";
  if (day.toDateString() === new Date().toDateString()) text = "Today";
  return element("h2", "day", text);
}

function dots() {
  const row = element("div", "row answer");
  const box = element("div", "working");
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", "The bot is working on an answer");
  box.append(element("i"), element("i"), element("i"));
  row.append(box);
  return row;
}

function time(at) {
  return new Date(at).toLocaleTimeString([], { timeStyle: "short" });
}

function when(at) {
  return new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}
