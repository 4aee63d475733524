// The page's words to the server and to the person: JSON posts, toasts, questions.

export const page = JSON.parse(document.body.dataset.page);
export const $ = (id) => document.getElementById(id);

/** POST JSON; returns the answer. A failure is shown as a toast and rejected. */
export async function post(what, body) {
  return answered(
    await reach(`/sandbox/page/${what}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ person: page.person, ...body }),
    }),
  );
}

/** POST a multipart form. */
export async function upload(form) {
  return answered(await reach("/sandbox/page/upload", { method: "POST", body: form }));
}

async function reach(address, options) {
  try {
    return await fetch(address, options);
  } catch (error) {
    toast("error", page.labels.cannot_reach);
    throw error;
  }
}

async function answered(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) {
    const sentence = body.error ?? `HTTP ${response.status}`;
    toast("error", sentence);
    throw new Error(sentence);
  }
  return body;
}

const TOAST_MS = 3500;
const TOAST_TYPES = ["info", "success", "error", "warning"];

/** A short notice at the top of the page. */
export function toast(type, text) {
  const notice = document.createElement("div");
  notice.className = `toast ${TOAST_TYPES.includes(type) ? type : "info"}`;
  notice.textContent = text;
  $("toasts").append(notice);
  setTimeout(() => notice.classList.add("leaving"), TOAST_MS);
  setTimeout(() => notice.remove(), TOAST_MS + 300);
}

/** A toast as a bot answers it: type, content, i18n. */
export function botToast(answer) {
  if (!answer || typeof answer !== "object") return;
  const locale = page.language === "zh" ? "zh_cn" : "en_us";
  const text = answer.i18n?.[locale] ?? answer.content;
  if (text) toast(answer.type, String(text));
}

/** Ask before doing; true when the person agrees. */
export function ask(question) {
  const dialog = $("ask");
  $("ask-title").textContent = question.title;
  $("ask-text").textContent = question.text;
  dialog.returnValue = "no";
  dialog.showModal();
  $("ask-yes").focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
