// Changes a piece of the page into its newer drawing, keeping every node that stays: what a person has typed, unfolded,
// focused or paged to is theirs and is not touched.

const template = document.createElement("template");

/** The first element of some HTML of ours. */
export function element(html) {
  template.innerHTML = html;
  return template.content.firstElementChild;
}

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.dataset.key : undefined);
const alike = (a, b) => a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

/** Make `from` look like `to`; returns the node that stands there now. */
export function morph(from, to) {
  if (!alike(from, to)) {
    from.replaceWith(to);
    return to;
  }
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return from;
  }
  // The page has written local times over the server's.
  if (from.nodeName === "TIME" && from.dateTime === to.dateTime) return from;
  attributes(from, to);
  children(from, to);
  return from;
}

function attributes(from, to) {
  const unfolding = from.nodeName === "DETAILS" && from.dataset.expanded === to.dataset.expanded;
  const isOurs = (name) =>
    (name === "open" && unfolding) ||
    (name === "aria-busy" && from.nodeName !== "ARTICLE") ||
    (name === "hidden" && (from.dataset.page !== undefined || from.classList.contains("field-error"))) ||
    name === "aria-invalid" ||
    name.startsWith("data-ui-");
  for (const { name, value } of [...to.attributes]) {
    if (isOurs(name) || from.getAttribute(name) === value) continue;
    if (name === "class" && from.classList.contains("picked")) {
      from.className = `${value} picked`;
      continue;
    }
    from.setAttribute(name, value);
    if (name === "value" && from.nodeName === "INPUT" && from.type !== "checkbox" && from.type !== "radio") from.value = value;
  }
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !isOurs(name)) from.removeAttribute(name);
  }
}

function children(from, to) {
  const wanted = new Set([...to.children].map(keyOf).filter(Boolean));
  const held = new Map();
  for (const child of from.children) if (keyOf(child) && !held.has(keyOf(child))) held.set(keyOf(child), child);
  let cursor = from.firstChild;
  for (const next of [...to.childNodes]) {
    while (cursor && keyOf(cursor) && !wanted.has(keyOf(cursor))) {
      const gone = cursor;
      cursor = cursor.nextSibling;
      gone.remove();
    }
    const key = keyOf(next);
    const match = key ? held.get(key) : cursor && alike(cursor, next) ? cursor : null;
    held.delete(key);
    if (!match || !alike(match, next)) {
      from.insertBefore(next, cursor);
      continue;
    }
    if (match === cursor) cursor = cursor.nextSibling;
    else from.insertBefore(match, cursor);
    morph(match, next);
  }
  while (cursor) {
    const gone = cursor;
    cursor = cursor.nextSibling;
    gone.remove();
  }
}
