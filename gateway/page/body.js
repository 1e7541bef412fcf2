// The body of a message. The bot renders the Markdown and escapes everything else (channels/web).

import { element } from "./dom.js";

/**
 * Shows HTML in a body. Blocks at its beginning that it shows already stay as they are: while an answer grows, what is
 * read, selected or scrolled in it does not move.
 */
export function fill(body, html) {
  const template = element("template");
  template.innerHTML = html;
  const fresh = [...template.content.children];
  const old = body.blocks || [];
  let same = 0;
  while (same < Math.min(old.length, fresh.length) && old[same].source === fresh[same].outerHTML) same++;
  for (const block of old.slice(same)) block.element.remove();
  body.blocks = old.slice(0, same);
  for (const e of fresh.slice(same)) {
    const source = e.outerHTML;
    const shown = dress(e);
    body.append(shown);
    body.blocks.push({ source, element: shown });
  }
}

/** Gives code a copy button, wide tables a place to scroll, and every block the direction of its text. */
function dress(block) {
  const box = element("div");
  box.append(block);
  block.dir = "auto";
  for (const pre of box.querySelectorAll("pre")) pre.replaceWith(code(pre));
  for (const table of box.querySelectorAll("table")) {
    const wide = element("div", "wide");
    table.replaceWith(wide);
    wide.append(table);
    reachable(wide, "Table");
  }
  return box.firstChild;
}

function code(pre) {
  const box = element("div", "block");
  const bar = element("div", "bar");
  const language = /language-([\w+#.-]+)/.exec(pre.firstElementChild?.className || "")?.[1] || "";
  const copy = element("button", "copy", "Copy");
  copy.type = "button";
  copy.addEventListener("click", async () => {
    copy.textContent = (await toClipboard(pre.textContent)) ? "Copied" : "Press Ctrl+C";
    setTimeout(() => (copy.textContent = "Copy"), 1600);
  });
  const shown = pre.cloneNode(true);
  shown.dir = "ltr";
  reachable(shown, language ? "Code, " + language : "Code");
  bar.append(element("span", "", language), copy);
  box.append(bar, shown);
  return box;
}

/** Lets people scroll by keyboard. */
function reachable(region, name) {
  region.tabIndex = 0;
  region.setAttribute("role", "group");
  region.setAttribute("aria-label", name);
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
