// What the model decides about what is on the page, and how sure it is of every class.

import { make } from "./charts.js";
import { percentText } from "./words.js";

const MOST_CLASSES = 8;
const QUIET = 400;

function makeBar(name) {
  return make("div", { class: `bar ${name}` });
}

/** The panel of the decision. */
export class Decision {
  constructor(session) {
    this.session = session;
    this.frame = null;
    this.lines = new Map();
    this.says = make("p", { class: "says" });
    this.note = make("p", { class: "small" });
    this.bars = make("div", { class: "probabilities" });
    // Spoken once the values rest, since the sentence above changes with every move.
    this.spoken = make("p", { class: "unseen", "aria-live": "polite" });
    this.box = make("section", { class: "panel decision", "aria-label": "The model's decision" },
      make("h2", {}, "The model decides"), this.says, this.note, this.bars, this.spoken);
    for (const name of ["instance", "verdict", "target"]) session.on(name, () => this.update());
  }

  update() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const { session } = this;
    const { overview, instance, verdict, isEdited } = session;
    if (verdict === null) return;
    const name = overview.classes[verdict.label];
    const sure = percentText(verdict.probabilities[verdict.label]);
    this.says.replaceChildren(make("strong", {}, name), ` with ${sure}`);
    this.says.classList.toggle("moved", verdict.label !== instance.label);
    this.note.textContent = this.noteText();
    const classes = this.classesToShow();
    const isSame = classes.length === this.lines.size && classes.every((c) => this.lines.has(c));
    if (!isSame) this.build(classes);
    for (const [c, line] of this.lines) {
      const now = verdict.probabilities[c];
      line.before.style.width = `${100 * instance.probabilities[c]}%`;
      line.after.style.width = `${100 * now}%`;
      line.after.hidden = !isEdited;
      line.text.textContent = percentText(now);
      line.box.classList.toggle("wanted", c === session.wanted);
    }
    this.bars.dataset.tag = verdict.tag ?? 0;
    this.speak(`The model decides for ${name}, with ${sure}.`);
  }

  noteText() {
    const { overview, instance, verdict, isEdited } = this.session;
    const isMoved = verdict.label !== instance.label;
    if (isMoved) return `Your change did it: it was ${overview.classes[instance.label]}.`;
    if (isEdited) return "Changed by you; the gray bars show it as it was.";
    if (instance.truth < 0) return "";
    if (instance.truth === instance.label) return "The data say the same.";
    return `The data say ${overview.classes[instance.truth]}: the model is wrong here.`;
  }

  /** All classes in their order; of many the likeliest, now or before, and the one asked for. */
  classesToShow() {
    const { instance, verdict, wanted } = this.session;
    const all = verdict.probabilities.map((_, c) => c);
    if (all.length <= MOST_CLASSES) return all;
    const rank = (c) => (c === wanted
      ? 2
      : Math.max(verdict.probabilities[c], instance.probabilities[c]));
    const chosen = [...all].sort((a, b) => rank(b) - rank(a)).slice(0, MOST_CLASSES);
    return chosen.sort((a, b) => a - b);
  }

  build(classes) {
    this.lines.clear();
    const boxes = classes.map((c) => {
      const line = { before: makeBar("before"), after: makeBar("after"), text: make("span") };
      const name = make("span", { class: "label" }, this.session.overview.classes[c]);
      line.box = make("div", { class: "class", "data-class": c },
        make("div", { class: "caption" }, name, line.text),
        make("div", { class: "track" }, line.before, line.after));
      this.lines.set(c, line);
      return line.box;
    });
    const more = this.session.overview.classes.length - classes.length;
    if (more > 0) boxes.push(make("p", { class: "small" }, `and ${more} less likely classes`));
    this.bars.replaceChildren(...boxes);
  }

  speak(words) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.spoken.textContent !== words) this.spoken.textContent = words;
    }, QUIET);
  }
}
