// What all parts of the page draw with.

export function element(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

/**
 * Makes the children of parent those that are wanted, in order: {key, version, make, update}. rows remembers what stands
 * there. What did not change is not touched, so that it keeps its focus, its selection and a click that has begun. update
 * may bring an element up to date and return true; else make replaces it.
 */
export function place(parent, rows, wanted) {
  const keys = new Set(wanted.map((w) => w.key));
  for (const [key, row] of rows) {
    if (keys.has(key)) continue;
    row.element.remove();
    rows.delete(key);
  }
  let before = parent.firstChild;
  for (const w of wanted) {
    let row = rows.get(w.key);
    if (row && row.version !== w.version && w.update?.(row.element)) row.version = w.version;
    if (!row || row.version !== w.version) {
      const fresh = { element: w.make(), version: w.version };
      if (row) {
        if (before === row.element) before = fresh.element;
        row.element.replaceWith(fresh.element);
      }
      row = fresh;
      rows.set(w.key, row);
    }
    if (row.element === before) before = before.nextSibling;
    else parent.insertBefore(row.element, before);
  }
}
