// Controls that several parts of the page have.

import { make } from "./charts.js";

/** A radio button drawn as a pill. */
export function makePill(group, value, words, onchange) {
  const input = make("input", { type: "radio", name: group, value, onchange });
  return make("label", { class: "pick" }, input, make("span", {}, words));
}

/** A field for a number that may be left empty. */
export function makeNumberField(label, placeholder, onchange) {
  const field = make("input", {
    type: "number",
    step: "any",
    "aria-label": label,
    placeholder,
    onchange: () => onchange(field.value === "" ? null : Number(field.value)),
  });
  return field;
}

/** Show a number in its field, unless somebody is typing there. */
export function showNumber(field, value) {
  if (document.activeElement !== field) field.value = value ?? "";
}
