// Reads what a person filled in, in the shapes of card callbacks (cards/README.md, table "Callback").

/** The zone's distance to UTC on that day, as in "+0800". */
function offset(moment) {
  const minutes = -moment.getTimezoneOffset();
  const pad = (number) => String(number).padStart(2, "0");
  const size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${pad(Math.floor(size / 60))}${pad(size % 60)}`;
}

export const timezone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;
export const PICKERS = ["date_picker", "picker_time", "picker_datetime"];

/** The value of a field; undefined (a list: empty) when nothing was chosen. */
export function read(box) {
  const kind = box.dataset.field;
  const control = box.querySelector("input, textarea, select");
  if (kind === "input") return control.value;
  if (kind === "checker") return control.checked;
  if (kind.startsWith("multi_select")) return ticked(box);
  if (kind === "select_img") return box.querySelector("input[type=checkbox]") ? ticked(box) : ticked(box)[0];
  const value = control?.value;
  if (!value) return undefined;
  if (kind === "date_picker") return `${value} ${offset(new Date(`${value}T00:00`))}`;
  if (kind === "picker_time") return `${value} ${offset(new Date())}`;
  if (kind === "picker_datetime") return `${value.replace("T", " ")} ${offset(new Date(value))}`;
  return value;
}

const ticked = (box) => [...box.querySelectorAll("input:checked")].map((input) => input.value);

const missing = (box) => {
  const value = read(box);
  return value === undefined || value === "" || value === false || (Array.isArray(value) && !value.length);
};

/** Marks required fields that are empty and moves the focus to the first; true when nothing is missing. */
export function complete(form) {
  const empty = [];
  for (const box of form.querySelectorAll("[data-field]")) {
    const wrong = box.hasAttribute("data-required") && missing(box);
    complain(box, wrong);
    if (wrong) empty.push(box);
  }
  empty[0]?.querySelector("input, textarea, select, summary")?.focus();
  return !empty.length;
}

/** Shows or hides a field's complaint. */
export function complain(box, wrong) {
  box.querySelector(".field-error").hidden = !wrong;
  const control = box.querySelector("input, textarea, select, summary");
  if (wrong) control?.setAttribute("aria-invalid", "true");
  else control?.removeAttribute("aria-invalid");
}

/** form_value: name to value. What was left empty is left out, but inputs, checkers and lists always answer. */
export function gather(form) {
  const found = {};
  for (const box of form.querySelectorAll("[data-field]")) {
    const value = read(box);
    if (box.dataset.name && value !== undefined) found[box.dataset.name] = value;
  }
  return found;
}

/** Writes the chosen texts into the closed multi-selects, and takes the hint off filled pickers. */
export function showChoices(root) {
  for (const picker of root.querySelectorAll(".picker")) picker.toggleAttribute("data-filled", Boolean(picker.querySelector("input").value));
  for (const details of root.querySelectorAll(".multi")) {
    const names = [...details.querySelectorAll("input:checked")].map((input) => input.parentElement.textContent.trim());
    const shown = details.querySelector(".multi-shown");
    shown.textContent = names.join(", ") || details.querySelector("summary").dataset.hint;
    shown.classList.toggle("unset", !names.length);
  }
}
