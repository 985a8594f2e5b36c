// The instances to choose from: only the lines in sight exist, so that many are as quick as few.

import { clamp, make, plainKey } from "./charts.js";
import { articleOf, countText, nameOf, nounOf, percentText } from "./words.js";

const LINE_HEIGHT = 40;
const PATIENCE = 80;

/** The list with its search and filters; `onChoose` hears the index of an instance. */
export class InstanceList {
  constructor(overview, onChoose) {
    this.onChoose = onChoose;
    this.at = 0;
    this.asked = { words: "", label: "", order: "all" };
    this.lines = make("div", { class: "lines" });
    this.scroller = make("div", {
      class: "scroller",
      tabindex: 0,
      role: "listbox",
      "aria-label": "Instances",
      onscroll: () => this.drawLines(),
      onkeydown: (event) => this.onKey(event),
    }, this.lines);
    this.count = make("p", { class: "small", role: "status" });
    this.box = make("nav", { class: "list", "aria-label": "Choose an instance" });
    new ResizeObserver(() => this.drawLines()).observe(this.scroller);
    this.load(overview);
  }

  /** Take over an overview; search, filters and the chosen instance stay. */
  load(overview) {
    this.overview = overview;
    const { label } = overview.instances;
    this.texts = label.map((c, i) => `${nameOf(overview, i)} ${overview.classes[c]}`.toLowerCase());
    this.box.replaceChildren(
      make("h2", {}, `Choose ${articleOf(nounOf(overview))}`),
      make("div", { class: "choices" }, ...this.makeFilters()), this.scroller, this.count);
    this.fill();
  }

  makeFilters() {
    const { overview, asked } = this;
    const change = (key) => (event) => {
      asked[key] = event.target.value;
      this.scroller.scrollTop = 0;
      this.fill();
    };
    const option = (value, text) =>
      make("option", { value, selected: asked.order === value }, text);
    const search = make("input", {
      type: "search",
      placeholder: "find …",
      "aria-label": "Find by name or class",
      oninput: change("words"),
    });
    const classes = make("select", { "aria-label": "Decided for", onchange: change("label") },
      make("option", { value: "" }, "every decision"),
      ...overview.classes.map((name, c) => make("option", { value: c }, name)));
    const order = make("select", {
      "aria-label": "Which and in which order",
      onchange: change("order"),
    },
      option("all", "all, in order"),
      option("unsure", "least sure first"),
      overview.instances.truth ? option("wrong", "wrong decisions") : null);
    search.value = asked.words;
    classes.value = asked.label;
    return [search, classes, order];
  }

  /** Find what search and filters let through, and draw it. */
  fill() {
    const { overview, asked, texts } = this;
    const { label, p } = overview.instances;
    const words = asked.words.toLowerCase().split(/\s+/).filter(Boolean);
    const isWanted = (i) =>
      (asked.label === "" || label[i] === Number(asked.label))
      && (asked.order !== "wrong" || this.isWrong(i))
      && words.every((word) => texts[i].includes(word));
    this.order = label.map((_, i) => i).filter(isWanted);
    if (asked.order === "unsure") this.order.sort((a, b) => p[a] - p[b] || a - b);
    this.lines.style.height = `${this.order.length * LINE_HEIGHT}px`;
    const total = label.length;
    this.count.textContent = this.order.length === total
      ? countText(total, "instance")
      : `${this.order.length.toLocaleString("en")} of ${countText(total, "instance")}`;
    this.drawLines();
  }

  /** Whether the model decides otherwise than the data say; -1 is unknown. */
  isWrong(index) {
    const { label, truth } = this.overview.instances;
    const isKnown = truth !== null && truth[index] >= 0 && label[index] >= 0;
    return isKnown && truth[index] !== label[index];
  }

  drawLines() {
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(Math.floor(scrollTop / LINE_HEIGHT) - 4, 0);
    const last = Math.ceil((scrollTop + clientHeight) / LINE_HEIGHT) + 4;
    const shown = this.order.slice(first, last);
    this.lines.replaceChildren(...shown.map((index, k) => this.makeLine(index, first + k)));
    const isShown = shown.includes(this.at);
    if (isShown) this.scroller.setAttribute("aria-activedescendant", `instance-${this.at}`);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  makeLine(index, place) {
    const { overview } = this;
    const { label, truth, p } = overview.instances;
    const isWrong = this.isWrong(index);
    const decision = (overview.classes[label[index]] ?? "…") + (isWrong ? " ✗" : "");
    const bar = make("span", { class: "sure" }, make("span", { class: isWrong ? "wrong" : "" }));
    bar.firstChild.style.width = `${100 * p[index]}%`;
    const line = make("div", {
      class: isWrong ? "line wrong" : "line",
      id: `instance-${index}`,
      role: "option",
      "aria-selected": index === this.at ? "true" : "false",
      "aria-setsize": this.order.length,
      "aria-posinset": place + 1,
      title: isWrong ? `The data say ${overview.classes[truth[index]]}` : null,
      onclick: () => this.choose(index),
    },
    make("span", { class: "who" }, nameOf(overview, index)),
    make("span", { class: "what" }, decision),
    make("span", { class: "number" }, label[index] < 0 ? "" : percentText(p[index])),
    bar);
    line.style.transform = `translateY(${place * LINE_HEIGHT}px)`;
    return line;
  }

  onKey(event) {
    const here = this.order.indexOf(this.at);
    const page = Math.max(Math.floor(this.scroller.clientHeight / LINE_HEIGHT) - 1, 1);
    const goal = {
      ArrowUp: here - 1,
      ArrowDown: here + 1,
      PageUp: here - page,
      PageDown: here + page,
      Home: 0,
      End: this.order.length - 1,
    }[plainKey(event)];
    if (goal === undefined || this.order.length === 0) return;
    event.preventDefault();
    this.choose(this.order[clamp(goal, 0, this.order.length - 1)]);
  }

  /** Go to the next or the previous one of those that are listed. */
  step(by) {
    const here = this.order.indexOf(this.at);
    const next = this.order[clamp(here + by, 0, this.order.length - 1)];
    if (next !== undefined) this.choose(next);
  }

  /** Mark an instance and, once no other follows at once, tell that it was chosen. */
  choose(index) {
    this.at = index;
    const top = this.order.indexOf(index) * LINE_HEIGHT;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + LINE_HEIGHT > scrollTop + clientHeight) {
      this.scroller.scrollTop = top + LINE_HEIGHT - clientHeight;
    }
    this.drawLines();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.onChoose(index), PATIENCE);
  }
}
