// What happens when a person uses a card: presses, choices, forms, tables' pages, pictures, code.

import { PICKERS, complain, complete, gather, read, showChoices, timezone } from "./forms.js";
import { $, ask, botToast, page, post, toast } from "./talk.js";

const OWN_WORK = "a, input, textarea, select, label, summary, [data-zoom], [data-copy], [data-turn], .input-send";
const busy = new WeakSet();

/** Tell the bot about a use of a control and show what it answers. `place` shows that we wait. */
async function act(place, action) {
  if (busy.has(place)) return;
  busy.add(place);
  place.setAttribute("aria-busy", "true");
  const message_id = place.closest("[data-message]").dataset.message;
  try {
    botToast((await post("click", { message_id, action })).toast);
  } catch {
    // Told as a toast already.
  } finally {
    busy.delete(place);
    place.removeAttribute("aria-busy");
  }
}

async function press(place) {
  if (place.dataset.disabled !== undefined) {
    if (place.dataset.disabled) toast("info", place.dataset.disabled);
    return;
  }
  const form = place.closest("form.card-form");
  const submits = place.dataset.formAction === "submit";
  if (submits && !complete(form)) {
    toast("warning", page.labels.required);
    return;
  }
  if (place.dataset.confirm && !(await ask(JSON.parse(place.dataset.confirm)))) return;
  if (place.dataset.url) window.open(place.dataset.url, "_blank", "noopener,noreferrer");
  if (place.dataset.formAction === "reset") {
    form.reset();
    form.querySelectorAll("[data-field]").forEach((box) => complain(box, false));
    showChoices(form);
    return;
  }
  if (!place.dataset.action) return;
  const action = JSON.parse(place.dataset.action);
  if (action.tag === "button") action.timezone = timezone();
  if (submits) action.form_value = gather(form);
  if (place.dataset.option !== undefined) action.option = place.dataset.option;
  await act(place, action);
}

/** A control that stands alone tells the bot as soon as it is used. */
async function choose(box) {
  if (!box.dataset.action) return;
  const value = read(box);
  if (value === undefined) return;
  if (box.dataset.confirm && !(await ask(JSON.parse(box.dataset.confirm)))) return;
  const action = JSON.parse(box.dataset.action);
  if (action.tag === "input") action.input_value = value;
  else if (action.tag === "checker") action.checked = value;
  else if (Array.isArray(value)) action.options = value;
  else action.option = value;
  if (PICKERS.includes(action.tag)) action.timezone = timezone();
  await act(box, action);
}

/** Turn a table's page by `step`; 0 shows the page it is on again (after a newer drawing). */
export function turn(table, step) {
  const bar = table.querySelector(".pages");
  if (!bar) return;
  const last = Number(bar.dataset.pages) - 1;
  const now = Math.min(last, Math.max(0, Number(table.dataset.uiPage ?? 0) + step));
  table.dataset.uiPage = now;
  for (const row of table.querySelectorAll("tr[data-page]")) row.hidden = Number(row.dataset.page) !== now;
  bar.querySelector(".page-now").textContent = `${now + 1} / ${last + 1}`;
  for (const button of bar.querySelectorAll("[data-turn]")) button.disabled = button.dataset.turn === "-1" ? now === 0 : now === last;
}

/** After a row was drawn (again): what only the browser knows. */
export function settle(row) {
  showChoices(row);
  for (const table of row.querySelectorAll(".table")) turn(table, 0);
}

function onClick(event) {
  const target = event.target;
  const zoom = target.closest("[data-zoom]");
  if (zoom) {
    $("viewer-image").src = zoom.dataset.zoom;
    $("viewer").showModal();
    return;
  }
  const copy = target.closest("[data-copy]");
  if (copy) {
    navigator.clipboard?.writeText(copy.closest(".md-code").querySelector("code").textContent);
    toast("success", page.labels.copied);
    return;
  }
  const turner = target.closest("[data-turn]");
  if (turner) return turn(turner.closest(".table"), Number(turner.dataset.turn));
  const send = target.closest(".input-send");
  if (send) return choose(send.closest("[data-field]"));
  const place = target.closest(".card .btn, .card [role=menuitem], .card .container, .card");
  if (!place) return;
  const own = target.closest(OWN_WORK);
  if (own && own !== place && place.contains(own)) return;
  if (place.matches("summary")) return;
  if (place.matches("[role=menuitem]")) place.closest("details").open = false;
  press(place);
}

/** Wires everything inside `rows`. */
export function useCards(rows) {
  rows.addEventListener("click", onClick);
  rows.addEventListener(
    "toggle",
    (event) => {
      if (event.target.open && event.target.matches(".menu, .multi")) {
        event.target.querySelector(".menu-list").scrollIntoView({ block: "nearest" });
      }
    },
    true,
  );
  rows.addEventListener("submit", (event) => event.preventDefault());
  // While typing, not on leaving the field: nothing may move under the pointer that is about to press.
  rows.addEventListener("input", (event) => {
    const box = event.target.closest("[data-field]");
    if (box) complain(box, false);
  });
  rows.addEventListener("change", (event) => {
    const box = event.target.closest("[data-field]");
    if (!box) return;
    showChoices(box);
    if (box.dataset.field !== "input") choose(box);
  });
  rows.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) {
      if (event.key === " " && event.target.matches(".container")) {
        event.preventDefault();
        press(event.target);
      }
      return;
    }
    if (event.target.matches(".container")) press(event.target);
    const box = event.target.closest("[data-field=input]");
    if (!box || event.target.nodeName !== "INPUT") return;
    event.preventDefault();
    choose(box);
  });
  document.addEventListener("click", (event) => {
    // Open menus close when the person looks elsewhere.
    for (const menu of document.querySelectorAll("details.menu[open], details.multi[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = event.target.closest?.("details.menu[open], details.multi[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}
