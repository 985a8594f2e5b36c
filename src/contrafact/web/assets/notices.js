// Messages above the page, one per subject, and what happens when the server is gone.

import { askHealth, onLost } from "./api.js";
import { make } from "./charts.js";

const PAUSE = 1000;
const notices = new Map();

/** Show a message about a subject in place of the one before; an empty one takes it away. */
export function showNotice(subject, words) {
  if ((notices.get(subject) ?? "") === words) return;
  notices.set(subject, words);
  const shown = [...notices].filter(([, text]) => text !== "");
  const makeOne = ([about, text]) => make("p", { class: "notice", "data-about": about }, text,
    make("button", { type: "button", onclick: () => showNotice(about, "") }, "Close"));
  document.getElementById("notices").replaceChildren(...shown.map(makeOne));
}

/** Wait for the server whenever it is lost; `onBack` hears which process answers now. */
export function watchServer(onBack) {
  let isWaiting = false;
  const wait = async () => {
    if (isWaiting) return;
    isWaiting = true;
    showNotice("server", "The server does not answer. What you did is kept here; the page goes on "
      + "as soon as the server is back.");
    let health = null;
    while (health === null) {
      await new Promise((resume) => setTimeout(resume, PAUSE));
      health = await askHealth();
    }
    isWaiting = false;
    showNotice("server", "");
    onBack(health.started);
  };
  onLost(wait);
  setInterval(async () => {
    if (document.hidden || isWaiting) return;
    const health = await askHealth();
    if (health === null) wait();
    else showNotice("busy", health.model === "ready" ? "" : `The model is ${health.model}.`);
  }, 5 * PAUSE);
}
