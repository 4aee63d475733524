// The conversation on the page: rows that appear and change, scrolling, what is done to a message.

import { settle, useCards } from "./cards.js";
import { reply, useComposer, write } from "./composer.js";
import { element, morph } from "./morph.js";
import { $, page, post } from "./talk.js";

const scroll = $("scroll");
const rows = $("rows");
const where = new URLSearchParams({ person: page.person, chat: page.chat });
const NEAR_PX = 48;
let stuck = true;

// -- scrolling: it follows the end only while the person is there --------------------------------------------------------

const atEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR_PX;

function toEnd() {
  stuck = true;
  scroll.scrollTop = scroll.scrollHeight;
  $("jump").hidden = true;
}

scroll.addEventListener("scroll", () => {
  stuck = atEnd();
  if (stuck) $("jump").hidden = true;
});
rows.addEventListener("toggle", () => (stuck = atEnd()), true);
new ResizeObserver(() => stuck && toEnd()).observe(rows);
new ResizeObserver(() => stuck && toEnd()).observe(scroll);
$("jump").addEventListener("click", toEnd);

// -- times in the browser's zone -----------------------------------------------------------------------------------------

function localTimes(root) {
  const language = page.language === "zh" ? "zh-CN" : "en-GB";
  for (const time of root.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const today = at.toDateString() === new Date().toDateString();
    const clock = { hour: "2-digit", minute: "2-digit" };
    const day = { year: "numeric", month: "2-digit", day: "2-digit" };
    if (time.classList.contains("moment")) {
      const format = time.dataset.format ?? "";
      time.textContent = at.toLocaleString(language, /time|timezone/.test(format) ? { ...day, ...clock } : day);
    } else {
      time.textContent = at.toLocaleString(language, today ? clock : { month: "2-digit", day: "2-digit", ...clock });
      time.title = at.toLocaleString(language);
    }
  }
}

// -- rows ----------------------------------------------------------------------------------------------------------------

const rowOf = (id) => rows.querySelector(`[data-message="${CSS.escape(id)}"]`);

function drawn(root) {
  localTimes(root);
  for (const row of root.matches("[data-message]") ? [root] : root.querySelectorAll("[data-message]")) settle(row);
}

async function redraw() {
  const answer = await fetch(`/sandbox/page/conversation?${where}`).catch(() => null);
  if (!answer?.ok) return;
  const fresh = element("<ol></ol>");
  fresh.innerHTML = await answer.text();
  for (const name of rows.getAttributeNames()) fresh.setAttribute(name, rows.getAttribute(name));
  morph(rows, fresh);
  drawn(rows);
}

async function show(change) {
  const held = rowOf(change.message_id);
  if (held) {
    drawn(morph(held, element(change.html)));
  } else if (page.mode === "topic") {
    await redraw();
  } else {
    const row = element(change.html);
    row.classList.add("new");
    rows.append(row);
    drawn(row);
  }
  inList(change);
  if (held) return;
  if (change.mine && page.mode === "topic") rowOf(change.message_id)?.scrollIntoView({ block: "nearest" });
  else if (change.mine || stuck) toEnd();
  else $("jump").hidden = false;
}

// -- the list of chats -----------------------------------------------------------------------------------------------------

const unreadKey = `unread:${page.person}`;
const unread = new Set(JSON.parse(sessionStorage.getItem(unreadKey) ?? "[]"));

function inList(change) {
  const line = document.querySelector(`.chat-line[data-chat="${CSS.escape(change.chat_id)}"]`);
  if (!line) return;
  line.querySelector(".chat-last").textContent = change.last;
  line.querySelector("time").dateTime = new Date(change.at_ms).toISOString();
  localTimes(line);
}

function markUnread() {
  unread.delete(page.chat);
  sessionStorage.setItem(unreadKey, JSON.stringify([...unread]));
  for (const line of document.querySelectorAll(".chat-line")) line.querySelector(".unread").hidden = !unread.has(line.dataset.chat);
}

// -- live ------------------------------------------------------------------------------------------------------------------

function listen() {
  const source = new EventSource(`/sandbox/page/live?${where}`);
  let work = Promise.resolve(); // rows are shown one after the other, in the order told
  source.addEventListener("open", () => {
    $("state").hidden = true;
    document.body.dataset.live = "yes";
    work = work.then(redraw); // what happened while nobody listened
  });
  source.addEventListener("error", () => ($("state").hidden = false));
  source.addEventListener("row", (event) => (work = work.then(() => show(JSON.parse(event.data)))));
  source.addEventListener("bot", (event) => ($("offline").hidden = JSON.parse(event.data).connected));
  source.addEventListener("other", (event) => {
    const change = JSON.parse(event.data);
    inList(change);
    unread.add(change.chat_id);
    markUnread();
  });
}

// -- what is done to a message -----------------------------------------------------------------------------------------------

function onTool(button) {
  const row = button.closest("[data-message]");
  const what = button.dataset.tool;
  const id = button.dataset.replyTo ?? row.dataset.message;
  if (what === "recall") return post("recall", { message_id: id }).catch(() => {});
  const target = rowOf(id);
  const body = target.querySelector(".bubble, .carded, .pictured");
  const thread = target.closest("[data-thread]")?.dataset.thread;
  const line = (body?.innerText ?? "").trim().split("\n")[0].slice(0, 60);
  return reply({ id, name: target.dataset.author, line, newTopic: what === "topic", thread });
}

rows.addEventListener("click", (event) => {
  const tool = event.target.closest("[data-tool]");
  if (tool) return onTool(tool);
  const mark = event.target.closest("[data-react]");
  if (mark) {
    mark.closest("details")?.removeAttribute("open");
    const message_id = mark.closest("[data-message]").dataset.message;
    return post("react", { message_id, emoji: mark.dataset.react }).catch(() => {});
  }
  const quote = event.target.closest("[data-goto]");
  if (quote) {
    const target = rowOf(quote.dataset.goto);
    target?.scrollIntoView({ block: "center", behavior: "smooth" });
    target?.classList.add("found");
    setTimeout(() => target?.classList.remove("found"), 1600);
    return;
  }
  // Without a mouse there is no hovering: a touch on a message shows its tools.
  if (!matchMedia("(hover: none)").matches) return;
  const row = event.target.closest(".row");
  for (const picked of rows.querySelectorAll(".picked")) if (picked !== row) picked.classList.remove("picked");
  const own = "a, button, input, select, textarea, summary, label, .container, .card[data-url]";
  if (row && !event.target.closest(own)) row.classList.toggle("picked");
});
document.addEventListener("click", (event) => {
  const example = event.target.closest("[data-example]");
  if (example) write(example.dataset.example).catch(() => {});
});
$("to-list").addEventListener("click", () => {
  $("app").classList.add("listing");
  document.querySelector(".chat-line[aria-current]")?.focus();
});
document.querySelector(".chat-line[aria-current]")?.addEventListener("click", (event) => {
  if (!$("app").classList.contains("listing")) return;
  event.preventDefault();
  $("app").classList.remove("listing");
});

useCards(rows);
useComposer();
drawn(document.body);
markUnread();
toEnd();
listen();
