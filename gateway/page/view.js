// Draws one conversation. Rows are kept by message id and only drawn again when they changed.

const icons = {
  notice: '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M10 3.5a6.5 6.5 0 100 13 6.5 6.5 0 000-13zM10 9.3v3.6M10 6.8v.1"/></svg>',
  failure: '<svg viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="7.5"/><path d="M10 6.2v4.6M10 13.7v.1"/></svg>',
};

const labels = { heartbeat: "Heartbeat", cron: "Scheduled" };

export function element(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

export class View {
  rows = new Map(); // key → {element, version}

  constructor(log, scroller, { say, retry }) {
    this.log = log;
    this.scroller = scroller;
    this.say = say;
    this.retry = retry;
    this.shown = "";
  }

  atEnd() {
    return this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight < 80;
  }

  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  draw(id, room) {
    const follow = this.shown !== id || this.atEnd();
    if (this.shown !== id) {
      this.rows.clear();
      this.log.replaceChildren();
      this.shown = id;
    }
    const working = room.working();
    const last = room.messages.at(-1);
    const growing = working && last?.class === "assistant" ? last.id : "";
    const wanted = [
      ...room.messages.map((m) => ({ key: m.id, version: `${m.rev}${m.id === growing}`, make: () => this.message(m, m.id === growing) })),
      ...room.pending.map((p) => ({ key: "p" + p.id, version: `${p.failed || ""}`, make: () => this.pending(p) })),
    ];
    if (working && !growing) wanted.push({ key: "working", version: "", make: dots });
    if (room.loaded && wanted.length === 0) wanted.push({ key: "welcome", version: "", make: () => this.welcome() });
    this.place(wanted);
    if (follow) this.toEnd();
  }

  place(wanted) {
    const keys = new Set(wanted.map((w) => w.key));
    for (const [key, row] of this.rows) {
      if (keys.has(key)) continue;
      row.element.remove();
      this.rows.delete(key);
    }
    let before = this.log.firstChild;
    for (const w of wanted) {
      let row = this.rows.get(w.key);
      if (!row || row.version !== w.version) {
        const fresh = { element: w.make(), version: w.version };
        if (row) {
          if (before === row.element) before = fresh.element;
          row.element.replaceWith(fresh.element);
        }
        row = fresh;
        this.rows.set(w.key, row);
      }
      if (row.element === before) before = before.nextSibling;
      else this.log.insertBefore(row.element, before);
    }
  }

  message(m, growing) {
    if (m.own) {
      const own = element("div", "row own", m.text);
      own.title = when(m.at);
      return own;
    }
    const row = element("article", "row");
    row.title = when(m.at);
    // The bot renders the Markdown and escapes everything else (channels/web).
    const body = element("div", "body");
    body.innerHTML = m.html;
    dress(body);
    switch (m.class) {
      case "notice":
        row.classList.add("notice");
        if (!/^\p{Extended_Pictographic}/u.test(m.text)) row.innerHTML = icons.notice; // most bring their own sign
        break;
      case "error":
        row.classList.add("failure");
        row.innerHTML = icons.failure;
        break;
      case "command":
        row.classList.add("command");
        break;
      default:
        row.classList.add("answer");
        if (labels[m.class]) row.append(element("span", "label", labels[m.class]));
    }
    row.classList.toggle("growing", growing);
    row.append(body);
    if (m.buttons?.length) body.append(this.choices(m.buttons));
    return row;
  }

  /** Buttons that send a command; those of one group stand together under its name. */
  choices(buttons) {
    const box = element("div", "choices");
    const named = new Set(buttons.map((b) => b.group || "")).size > 1;
    let group;
    for (const b of buttons) {
      if (named && (b.group || "") !== group) {
        group = b.group || "";
        if (group) box.append(element("div", "group", group));
      }
      const button = element("button", b.chosen ? "chosen" : "", b.label);
      button.type = "button";
      if (b.chosen) button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => this.say(b.command));
      box.append(button);
    }
    return box;
  }

  pending(p) {
    const own = element("div", "row own " + (p.failed ? "failed" : "sending"), p.text);
    if (p.failed) {
      const again = element("button", "retry", p.failed + " Send again");
      again.type = "button";
      again.addEventListener("click", () => this.retry(p));
      own.append(again);
    }
    return own;
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

function dots() {
  const row = element("div", "row answer");
  row.setAttribute("aria-label", "The bot is working on an answer");
  const box = element("div", "working");
  box.append(element("i"), element("i"), element("i"));
  row.append(box);
  return row;
}

/** Gives code blocks a copy button, and wide tables a place to scroll. */
function dress(body) {
  for (const pre of body.querySelectorAll("pre")) {
    const box = element("div", "block");
    const bar = element("div", "bar");
    const language = /language-([\w+#.-]+)/.exec(pre.firstElementChild?.className || "");
    const copy = element("button", "copy", "Copy");
    copy.type = "button";
    copy.addEventListener("click", async () => {
      copy.textContent = (await toClipboard(pre.textContent)) ? "Copied" : "Press Ctrl+C";
      setTimeout(() => (copy.textContent = "Copy"), 1600);
    });
    bar.append(element("span", "", language ? language[1] : ""), copy);
    pre.replaceWith(box);
    pre.tabIndex = 0; // a scrolling region can be reached by keyboard
    box.append(bar, pre);
  }
  for (const table of body.querySelectorAll("table")) {
    const box = element("div", "wide");
    table.replaceWith(box);
    box.append(table);
  }
}

async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Not a secure context: the old way.
    const area = element("textarea", "unseen");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function when(at) {
  return new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}
