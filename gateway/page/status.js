// The pill in the header, and the panel behind it.

import { element } from "./dom.js";

const short = (model) => model.split("/").at(-1);

/** Returns the pill's state and text, and what a wide screen adds to it. A status of null means that the bot cannot be reached. */
export function summary(status) {
  if (!status) return { state: "bad", text: "not connected" };
  const { selected, active } = status.model;
  if (status.readiness === "starting" || status.readiness === "draining") return { state: "warn", text: status.readiness };
  if (active && active !== selected) return { state: "warn", text: short(active), more: `for ${short(selected)}` };
  if (!selected) return { state: "bad", text: status.readiness };
  const text = short(selected);
  if (status.readiness !== "ready") return { state: "bad", text, more: status.readiness };
  const more = outOfUse[status.model.credential];
  return more ? { state: "warn", text, more } : { state: "good", text };
}

const outOfUse = { resting: "is out of use", none: "has no credential" };

function fact(what, detail, state, mood) {
  const row = element("div", "fact");
  row.dataset.state = mood || "";
  const text = element("span", "what", what);
  if (detail) text.append(element("small", "", detail));
  if (mood) row.append(element("span", "dot"));
  row.append(text);
  if (state) row.append(element("span", "state", state));
  return row;
}

// how the selected model is: a mood and a detail
function condition(m) {
  if (m.active && m.active !== m.selected) return ["bad", m.reason];
  if (m.credential === "resting") return ["warn", "no credential can be used" + (m.until ? " " + until(m.until) : "")];
  if (m.credential === "none") return ["bad", "no credential is stored"];
  return ["good", ""];
}

function until(at) {
  const then = new Date(at);
  const sameDay = then.toDateString() === new Date().toDateString();
  return "until " + then.toLocaleString([], sameDay ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" });
}

const moods = { connected: "good", connecting: "warn", reconnecting: "warn", stopped: "bad" };

/** Fills the panel. */
export function describe(body, status) {
  if (!status) {
    body.replaceChildren(fact("The bot cannot be reached", "This page keeps trying.", "", "bad"));
    return;
  }
  const parts = [];
  const section = (title, rows) => rows.length && parts.push(element("h3", "", title), ...rows);
  const m = status.model;
  const models = [];
  if (m.active && m.active !== m.selected) models.push(fact(m.active, "", "answers now", "warn"));
  const [mood, detail] = condition(m);
  if (m.selected) models.push(fact(m.selected, detail, m.source || "selected", mood));
  for (const f of m.fallbacks || []) if (f !== m.active) models.push(fact(f, "", "understudy"));
  section("Model of this chat", models);
  section("Out of use for now", (status.profiles || []).map((p) =>
    fact(p.profile + (p.model ? " · " + p.model : ""), (p.reason || "").replaceAll("_", " "), until(p.until), p.state === "disabled" ? "bad" : "warn")));
  section("Channels", status.channels.map((c) =>
    fact(c.channel + (c.account ? " · " + c.account : ""), c.detail, c.state, moods[c.state] || "bad")));
  section("To look at", (status.problems || []).map((p) => fact(p.subject, p.detail, "", "bad")));
  section("Bot", [fact("Version " + (status.version || "unknown"), "", "since " +
    new Date(status.startedAt).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }))]);
  body.replaceChildren(...parts);
}
