// What can be taken away: files, and the command and the Python line that give the same again.

import { Gone, Refusal, api } from "./api.js";
import { make } from "./charts.js";

const FILES = { report: "Report (HTML)", arrays: "Arrays (NPZ)", picture: "Picture (PNG)" };

function makeCode(title, text) {
  const copy = make("button", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      // Without the right to the clipboard the text is at least selected.
      getSelection().selectAllChildren(code);
    }
  });
  const code = make("pre", { tabindex: 0 }, text);
  return make("div", { class: "code" }, make("div", { class: "caption" }, title, copy), code);
}

/** The fold of the exports of one way. */
export function makeExports(job, number) {
  const links = Object.entries(FILES).map(([kind, words]) =>
    make("a", { class: "button", href: api.fileAddress(job, kind, number), download: "" }, words));
  const recipe = make("div", {});
  const fold = make("details", { class: "exports" },
    make("summary", {}, "Take it with you"),
    make("div", { class: "tools" }, ...links), recipe);
  fold.addEventListener("toggle", async () => {
    if (!fold.open || recipe.childElementCount > 0) return;
    try {
      const { command, python, note } = await api.recipe(job);
      recipe.replaceChildren(...[
        command ? makeCode("The same in a terminal", command) : null,
        python ? makeCode("The same in Python", python) : null,
        note ? make("p", { class: "small" }, note) : null,
      ].filter((part) => part !== null));
    } catch (error) {
      if (!(error instanceof Refusal || error instanceof Gone)) throw error;
      recipe.replaceChildren(make("p", { class: "bad" }, error.message));
    }
  });
  return fold;
}
