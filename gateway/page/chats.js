// The list of chats.

import { element, place } from "./dom.js";

export class Chats {
  rows = new Map(); // session id → what place knows

  constructor(list, open) {
    this.list = list;
    list.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) open(button.dataset.id);
    });
  }

  /** Shows chats: {id, title, current, unread, working}. */
  draw(chats) {
    place(this.list, this.rows, chats.map((c) => ({
      key: c.id,
      version: JSON.stringify(c),
      make: () => {
        const item = element("li");
        const button = element("button");
        button.type = "button";
        button.dataset.id = c.id;
        const name = element("span", "name");
        name.dir = "auto";
        button.append(name, element("span", "mark"));
        item.append(button);
        show(item, c);
        return item;
      },
      update: (item) => show(item, c),
    })));
  }
}

function show(item, { title, current, unread, working }) {
  const button = item.firstChild;
  const [name, mark] = button.children;
  button.setAttribute("aria-current", current);
  button.title = title;
  name.textContent = title || "New chat";
  name.classList.toggle("unread", unread);
  mark.hidden = !unread && !working;
  mark.classList.toggle("busy", !unread && working);
  mark.replaceChildren(element("span", "unseen", unread ? "unread" : "working"));
  return true;
}
