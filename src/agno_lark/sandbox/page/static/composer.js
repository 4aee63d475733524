// Writing: text, mentions, replies, pictures and files.

import { $, page, post, toast, upload } from "./talk.js";

const text = $("text");
const list = $("mention-list");
let replying = null;

function grow() {
  text.style.height = "auto";
  text.style.height = `${Math.min(text.scrollHeight, 180)}px`;
  $("send").disabled = !text.value.trim();
}

/** Send a message; the text stays when it could not be sent. */
export async function write(words) {
  const about = replying ? { reply_to: replying.id, new_topic: replying.newTopic } : {};
  await post("write", { chat: page.chat, text: words, ...about });
  reply(null);
}

async function submit() {
  const words = text.value.trim();
  if (!words || text.readOnly) return;
  text.readOnly = true;
  try {
    await write(words);
    text.value = "";
  } catch {
    // Told as a toast already.
  } finally {
    text.readOnly = false;
    grow();
    text.focus();
  }
}

/** What the next message answers: {id, name, line, newTopic, thread}, or null. */
export function reply(target) {
  replying = target;
  $("replying").hidden = !target;
  if (!target) return;
  const name = page.labels.replies_to.replace("{name}", target.name);
  $("replying-text").textContent = target.newTopic ? `${page.labels.open_topic}: ${target.line}` : `${name}: ${target.line}`;
  text.focus();
}

async function send(files) {
  for (const file of files) {
    if (file.size > page.largest) {
      toast("error", page.labels.too_large);
      continue;
    }
    const form = new FormData();
    form.set("person", page.person);
    form.set("chat", page.chat);
    form.set("thread", replying?.thread ?? "");
    form.set("file", file, file.name || "image.png");
    await upload(form).catch(() => {});
  }
  reply(null);
}

// -- mentions ----------------------------------------------------------------------------------------------------------

let chosen = 0;
let at = null;

/** The `@word` before the caret: {start, word}, or null. */
function mentionBeforeCaret() {
  const before = text.value.slice(0, text.selectionStart);
  const found = /(^|\s|[\u3000-\u9fff\uff00-\uffef])@([^@\n]{0,20})$/.exec(before);
  return found ? { start: before.length - found[2].length - 1, word: found[2].toLowerCase() } : null;
}

function offer() {
  at = mentionBeforeCaret();
  const names = at ? page.mentions.filter((name) => name.toLowerCase().startsWith(at.word)) : [];
  list.replaceChildren(
    ...names.map((name, index) => {
      const option = document.createElement("div");
      option.id = `mention-${index}`;
      option.role = "option";
      option.textContent = name;
      option.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        take(name);
      });
      return option;
    }),
  );
  list.hidden = !names.length;
  point(0);
}

function point(index) {
  const options = [...list.children];
  if (!options.length) return text.removeAttribute("aria-activedescendant");
  chosen = (index + options.length) % options.length;
  options.forEach((option, place) => option.setAttribute("aria-selected", String(place === chosen)));
  text.setAttribute("aria-activedescendant", `mention-${chosen}`);
}

function take(name) {
  const end = text.selectionStart;
  text.setRangeText(`@${name} `, at.start, end, "end");
  close();
  grow();
  text.focus();
}

function close() {
  list.hidden = true;
  list.replaceChildren();
  text.removeAttribute("aria-activedescendant");
}

function onKey(event) {
  if (event.isComposing || event.keyCode === 229) return; // an input method is still choosing characters
  if (!list.hidden) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      return point(chosen + step);
    }
    if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      return take(list.children[chosen].textContent);
    }
    if (event.key === "Escape") return close();
  }
  if (event.key === "Escape" && replying) return reply(null);
  if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    submit();
  }
}

/** Wires the composer. */
export function useComposer() {
  text.addEventListener("input", () => {
    grow();
    offer();
  });
  text.addEventListener("keydown", onKey);
  text.addEventListener("blur", close);
  text.addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    send(files);
  });
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  $("reply-cancel").addEventListener("click", () => reply(null));
  $("attach").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", async () => {
    await send([...$("file").files]);
    $("file").value = "";
  });
  $("mention")?.addEventListener("click", () => {
    const before = text.value.slice(0, text.selectionStart);
    text.setRangeText(before && !/\s$/.test(before) ? " @" : "@", text.selectionStart, text.selectionEnd, "end");
    text.focus();
    offer();
  });
  const main = document.querySelector(".main");
  main.addEventListener("dragover", (event) => event.preventDefault());
  main.addEventListener("drop", (event) => {
    event.preventDefault();
    send([...event.dataTransfer.files]);
  });
  grow();
  if (matchMedia("(hover: hover)").matches) text.focus();
}
