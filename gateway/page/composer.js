// The field at the bottom: growing text, sending, and completion of slash commands.

import { element } from "./dom.js";

export class Composer {
  commands = [];
  matches = [];
  chosen = 0;
  busy = false;

  constructor(form, { say, stop }) {
    this.form = form;
    this.input = form.querySelector("#input");
    this.sendButton = form.querySelector("#send");
    this.stopButton = form.querySelector("#stop");
    this.popup = form.querySelector("#commands");
    this.say = say;
    this.stopButton.addEventListener("click", stop);
    for (const button of [this.sendButton, this.stopButton]) {
      button.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus, and a phone its keyboard
    }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.input.addEventListener("input", () => this.changed());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => this.close());
  }

  get text() {
    return this.input.value;
  }

  set text(value) {
    this.input.value = value;
    this.changed();
    this.close();
  }

  /** Offers to stop while an answer is in the making; with nothing to send, in the place of the button that sends. */
  working(is) {
    this.busy = is;
    const leaves = is ? this.sendButton : this.stopButton;
    const focused = document.activeElement === leaves;
    this.stopButton.hidden = !is;
    this.sendButton.hidden = is && this.text.trim() === "";
    if (focused && leaves.hidden) this.input.focus();
  }

  submit() {
    const text = this.text.trim();
    if (!text) return;
    this.text = "";
    this.say(text);
  }

  changed() {
    this.sendButton.disabled = this.text.trim() === "";
    this.working(this.busy);
    this.input.style.height = "auto";
    this.input.style.height = this.input.scrollHeight + "px";
    const typed = /^\/([a-z0-9_-]*)$/i.exec(this.text);
    this.matches = typed ? this.commands.filter((c) => c.name.startsWith(typed[1].toLowerCase())) : [];
    this.chosen = 0;
    this.draw();
  }

  draw() {
    this.popup.hidden = this.matches.length === 0;
    this.popup.replaceChildren(...this.matches.map((c, i) => {
      const item = element("li");
      item.id = "command-" + i;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", i === this.chosen);
      const verb = element("span", "verb", "/" + c.name);
      if (c.args) verb.append(element("span", "args", " " + c.args));
      item.append(verb, element("span", "about", c.description));
      item.addEventListener("pointerdown", (event) => {
        event.preventDefault(); // the field keeps the focus
        this.complete(c);
      });
      return item;
    }));
    if (this.popup.hidden) this.input.removeAttribute("aria-activedescendant");
    else {
      this.input.setAttribute("aria-activedescendant", "command-" + this.chosen);
      this.popup.children[this.chosen]?.scrollIntoView({ block: "nearest" });
    }
  }

  close() {
    this.matches = [];
    this.draw();
  }

  complete(command) {
    this.text = `/${command.name}` + (command.args ? " " : "");
    this.input.focus();
  }

  key(event) {
    if (event.isComposing) return;
    if (this.matches.length > 0 && this.popupKey(event)) {
      event.preventDefault();
      return;
    }
    if (event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.altKey) {
      event.preventDefault();
      this.submit();
    }
  }

  /** Handles a key while the list is open; false leaves it to the field. */
  popupKey(event) {
    const n = this.matches.length;
    switch (event.key) {
      case "ArrowDown":
        this.chosen = (this.chosen + 1) % n;
        break;
      case "ArrowUp":
        this.chosen = (this.chosen + n - 1) % n;
        break;
      case "Escape":
        this.close();
        return true;
      case "Enter":
        if (event.shiftKey || this.text.toLowerCase() === "/" + this.matches[this.chosen].name) return false;
        this.complete(this.matches[this.chosen]);
        return true;
      case "Tab":
        this.complete(this.matches[this.chosen]);
        return true;
      default:
        return false;
    }
    this.draw();
    return true;
  }
}
