// What was found: the ways side by side, and the chosen one in full.

import { Refusal, Gone, api } from "./api.js";
import { make } from "./charts.js";
import { makeExports } from "./exports.js";
import { partsOf } from "./parts.js";
import { toPlanes } from "./planes.js";
import { percentText } from "./words.js";

const MOST_CLASSES = 5;

/**
 * The answer to an explanation; `pictures` draws a way small and in full, `askForFront` asks for
 * ways from the smallest to the most believable (null where no method can).
 */
export class Alternatives {
  constructor(session, pictures, askForFront) {
    this.session = session;
    this.askForFront = askForFront;
    this.pictures = pictures;
    this.box = make("section", { class: "answer", "aria-label": "The answer", hidden: true });
    session.on("answer", () => this.fill());
  }

  fill() {
    const { answer, overview } = this.session;
    this.box.hidden = answer === null;
    this.box.replaceChildren();
    if (answer === null) return;
    this.ways = (answer.alternatives ?? []).map((way, number) => ({
      ...way,
      number,
      after: toPlanes(way.values, overview.shape),
      mask: toPlanes(way.changed, overview.shape),
    }));
    this.ways.sort((a, b) => a.distance - b.distance);
    const heading = make("h2", { tabindex: -1 }, "What would change the decision");
    const isReached = this.ways.some((way) => way.valid);
    const parts = [heading, isReached ? make("p", {}, this.summaryText()) : null];
    this.slider = null;
    this.cards = null;
    if (this.ways.length > 1) parts.push(answer.front ? this.makeFront() : null, this.makeCards());
    if (isReached && !answer.front && this.askForFront !== null) {
      parts.push(make("button", { type: "button", onclick: this.askForFront },
        "Show ways from the smallest to the most believable"));
    }
    this.detail = make("div", { class: "way" });
    this.box.append(...parts.filter((part) => part !== null), this.detail);
    if (this.ways.length > 0) this.choose(0);
    heading.focus({ preventScroll: true });
    if (heading.getBoundingClientRect().top > innerHeight * 0.8) {
      const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
      this.box.scrollIntoView({ behavior: isCalm ? "auto" : "smooth", block: "nearest" });
    }
  }

  summaryText() {
    const { answer, overview } = this.session;
    const reached = this.ways.filter((way) => way.valid).length;
    const wanted = overview.classes[this.ways[0].target];
    const left = answer.front ? "the smallest change first" : "each enough by itself";
    if (reached === 1) return `There is a way to make the model decide for ${wanted}:`;
    return `There are ${reached} ways to make the model decide for ${wanted}, ${left}:`;
  }

  /** A slider along the ways, which are sorted from the smallest change. */
  makeFront() {
    this.slider = make("input", {
      type: "range",
      min: 0,
      max: this.ways.length - 1,
      step: 1,
      "aria-label": "From the smaller change to the more believable one",
      oninput: () => this.choose(Number(this.slider.value)),
    });
    this.slider.value = 0;
    return make("div", { class: "front" },
      make("span", {}, "smaller change"), this.slider, make("span", {}, "more believable"));
  }

  makeCards() {
    const { answer } = this.session;
    this.cards = this.ways.map((way, at) => make("button", {
      type: "button",
      class: way.valid ? "card" : "card failed",
      "aria-pressed": "false",
      onclick: () => this.choose(at),
    },
    make("span", { class: "caption" }, `Way ${at + 1}`, make("span", {}, this.probabilityOf(way))),
    this.pictures.small(answer.before.values, way),
    make("span", { class: "small" }, way.changed_text)));
    return make("div", { class: "cards" }, ...this.cards);
  }

  probabilityOf(way) {
    const name = this.session.overview.classes[way.label];
    return `${name}: ${percentText(way.probabilities[way.label])}`;
  }

  choose(at) {
    const way = this.ways[at];
    this.cards?.forEach((card, i) => card.setAttribute("aria-pressed", String(i === at)));
    if (this.slider) {
      this.slider.value = at;
      this.slider.setAttribute("aria-valuetext", `way ${at + 1} of ${this.ways.length}`);
    }
    this.detail.replaceChildren(...this.makeDetail(way).filter((part) => part !== null));
    this.pictures.afterShown?.();
  }

  makeDetail(way) {
    const { answer } = this.session;
    const why = make("div", { class: "why" });
    const take = () => {
      this.session.edit((values) => values.splice(0, values.length, ...way.after));
      document.querySelector(".stage").scrollIntoView({ block: "nearest" });
    };
    const button = (words, onclick) => make("button", { type: "button", onclick }, words);
    return [
      make("p", { class: way.valid ? "told" : "told bad" }, way.sentence),
      way.note ? make("p", { class: "small" }, way.note) : null,
      this.pictures.full(answer.before.values, way),
      make("div", { class: "facts" },
        make("div", {}, make("h3", {}, "How sure the model is"), ...this.makeProbabilities(way)),
        make("div", {}, make("h3", {}, "What was kept"), ...this.makeKept(way))),
      make("div", { class: "tools" },
        way.valid ? button("Why is it not smaller?", () => this.explainSize(way, why)) : null,
        button("Take it into the editor", take)),
      why,
      makeExports(answer.job, way.number),
    ];
  }

  makeProbabilities(way) {
    const { overview, answer } = this.session;
    const before = answer.before.probabilities;
    const most = (c) => Math.max(way.probabilities[c], before[c]);
    const classes = overview.classes.map((_, c) => c);
    const likely = classes.sort((a, b) => most(b) - most(a)).slice(0, MOST_CLASSES);
    const bar = (share, name) => {
      const one = make("div", { class: `bar ${name}` });
      one.style.width = `${100 * share}%`;
      return one;
    };
    return likely.map((c) => make("div", { class: "class" }, overview.classes[c],
      make("div", { class: "bars" },
        bar(before[c], "before"), make("span", {}, percentText(before[c])),
        bar(way.probabilities[c], way.valid ? "after" : "missed"),
        make("span", {}, percentText(way.probabilities[c])))));
  }

  makeKept(way) {
    const { kind, names, columns } = this.session.overview;
    const noun = { series: "points", image: "pixels" }[kind] ?? "columns";
    const cells = {
      series: () => way.mask.flat(),
      image: () => way.mask[0].map((_, pixel) => way.mask.some((plane) => plane[pixel])),
    }[kind]?.() ?? partsOf(columns).map(({ members }) => members.some((j) => way.mask[0][j]));
    const kept = cells.filter((isChanged) => !isChanged).length.toLocaleString("en");
    const all = cells.length.toLocaleString("en");
    const lines = [`${kept} of ${all} ${noun} are exactly as they were.`];
    if (kind === "series" && names.length > 1) {
      const still = names.filter((_, c) => !way.mask[c].some(Boolean));
      if (still.length > 0) lines.push(`Channels that stay as a whole: ${still.join(", ")}.`);
    }
    if (way.votes_text) lines.push(way.votes_text);
    return lines.map((text) => make("p", {}, text));
  }

  /** What the model decides without one part of the change. */
  makePart({ stays, sentence, words, label, probability }) {
    const decided = make("strong", {}, this.session.overview.classes[label]);
    return make("li", { class: stays ? "" : "needed", title: sentence },
      make("span", {}, `Without the change ${words} the model decides for `, decided,
        stays ? " all the same." : ": it is needed."),
      make("span", { class: "number" }, percentText(probability)));
  }

  /** Tell what happens when each part of the change is given back. */
  async explainSize(way, place) {
    place.replaceChildren(make("p", { class: "small" }, "Asking the model …"));
    try {
      const { parts } = await api.why(this.session.answer.job, way.number);
      const wanted = this.session.overview.classes[way.target];
      place.replaceChildren(
        make("h3", {}, "Why is it not smaller?"),
        make("p", { class: "small" }, "Each line puts one part back as it was, and asks the model "
          + `again. The number is how sure it then is of ${wanted}.`),
        parts.length > 0
          ? make("ul", { class: "parts" }, ...parts.map((part) => this.makePart(part)))
          : make("p", {}, "There is nothing that could be put back."));
    } catch (error) {
      if (!(error instanceof Refusal || error instanceof Gone)) throw error;
      place.replaceChildren(make("p", { class: "bad" }, error.message));
    }
  }
}
