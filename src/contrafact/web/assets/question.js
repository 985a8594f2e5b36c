// The question: which decision is wanted, and how to look for the way there.

import { make } from "./charts.js";
import { makeNumberField, showNumber } from "./controls.js";

const MODES = [
  ["different", "different ones"],
  ["front", "from smaller to more believable"],
];
const LEVELS = {
  smallest: "nothing more (smallest)",
  steady: "noise (steady)",
  lasting: "noise and retrained models (lasting)",
};
const USUAL_COUNT = 3;

/** A label with its control. */
function field(words, control) {
  return make("label", { class: "field" }, make("span", {}, words), control);
}

export class Question {
  constructor(session, onAsk) {
    this.session = session;
    this.choice = {
      method: null, level: null, k: Math.min(USUAL_COUNT, session.overview.max_k),
      confidence: null, calls: null, seconds: null, front: false,
    };
    this.target = make("select", { onchange: () => this.chooseTarget() });
    this.ask = make("button", { type: "button", class: "main", onclick: onAsk },
      "What would change the decision?");
    this.details = make("details", {}, make("summary", {}, "How to search"), this.makeFields());
    this.box = make("section", { class: "panel question", "aria-label": "Ask" },
      field("It should decide for", this.target), this.ask);
    for (const name of ["instance", "verdict"]) session.on(name, () => this.fillTargets());
  }

  /** The choices as the server wants them. */
  toSend() {
    return { ...this.choice, target: this.session.target };
  }

  /** Ask for ways from the smallest to the most believable. */
  wantFront() {
    this.choice.front = true;
    this.mode.value = "front";
  }

  chooseTarget() {
    const { value } = this.target;
    this.session.setTarget(value === "" ? null : Number(value));
  }

  fillTargets() {
    const { overview, target, verdict } = this.session;
    if (verdict === null) return;
    const key = JSON.stringify([verdict.label, target, this.session.wanted]);
    if (key === this.drawnTargets) return;
    this.drawnTargets = key;
    const others = overview.classes.map((_, c) => c).filter((c) => c !== verdict.label);
    const options = others.map((c) => make("option", { value: c }, overview.classes[c]));
    if (others.length > 1) {
      const likeliest = overview.classes[this.session.wanted];
      options.unshift(make("option", { value: "" }, `the next likely: ${likeliest}`));
    }
    this.target.replaceChildren(...options);
    if (target !== null && target !== verdict.label) this.target.value = target;
    this.target.disabled = others.length < 2;
  }

  makeFields() {
    const { overview } = this.session;
    const { choice } = this;
    const method = overview.methods.find((each) => each.default) ?? overview.methods[0];
    const usual = method ? `usual (${method.name})` : "usual";
    const methods = make("select", { onchange: (event) => this.chooseMethod(event.target.value) },
      make("option", { value: "" }, usual),
      ...overview.methods.map((each) => make("option", { value: each.name }, each.name)));
    this.does = make("p", { class: "small" });
    this.level = make("select", { onchange: () => { choice.level = this.level.value || null; } });
    this.levelField = field("It should withstand", this.level);
    const number = (key, words, hint, attributes = {}) => {
      const control = makeNumberField(words, hint, (value) => { choice[key] = value; });
      showNumber(control, choice[key]);
      for (const [name, value] of Object.entries(attributes)) control.setAttribute(name, value);
      return field(words, control);
    };
    this.mode = make("select", { onchange: () => { choice.front = this.mode.value === "front"; } },
      ...MODES.map(([value, words]) => make("option", { value }, words)));
    const count = number("k", "Ways to show", "1", { min: 1, max: overview.max_k, step: 1 });
    count.querySelector("input").addEventListener("change", (event) => {
      const asked = Math.round(Number(event.target.value)) || 1;
      choice.k = Math.min(Math.max(asked, 1), overview.max_k);
      event.target.value = choice.k;
    });
    const fields = make("div", { class: "fields" },
      field("Method", methods), this.does, this.levelField, count, field("which are", this.mode),
      number("confidence", "At least this sure (0 to 1)", "just enough", { min: 0, max: 1 }),
      number("calls", "Ask the model at most … times", String(overview.max_calls), { min: 1 }),
      number("seconds", "Take at most … seconds", "as long as it takes", { min: 0.1 }));
    this.chooseMethod("");
    return fields;
  }

  chooseMethod(name) {
    const { methods } = this.session.overview;
    const method = methods.find((each) => (name ? each.name === name : each.default));
    this.choice.method = name || null;
    this.choice.level = null;
    this.does.textContent = method?.does ?? "";
    const levels = method?.levels ?? [];
    this.levelField.hidden = levels.length === 0;
    this.level.replaceChildren(make("option", { value: "" }, "usual"),
      ...levels.map((level) => make("option", { value: level }, LEVELS[level] ?? level)));
  }
}
