// The card of one column: a control, the values of the reference behind it, and its limits.

import { clamp, make } from "./charts.js";
import { makeNumberField, showNumber } from "./controls.js";
import { cellText } from "./words.js";

const WIDTH = 240;
const HEIGHT = 48;
const WAYS = [
  ["", "may rise or fall"],
  ["increasing", "may only rise"],
  ["decreasing", "may only fall"],
];

/** The bars of a distribution, as tall as the card. */
function makeBars({ counts }) {
  const most = Math.max(...counts, 1);
  const width = WIDTH / counts.length;
  return counts.map((count, i) => {
    const height = (HEIGHT - 2) * (count / most);
    const place = { x: i * width + 0.5, width: Math.max(width - 1, 0.5), y: HEIGHT - height };
    return make("rect", { class: "count", ...place, height });
  });
}

/** Check boxes that keep a column, or let it go one way only. */
export function makeKeepBox(name, session, columns) {
  const onchange = (event) => session.limit(({ frozen }) => {
    for (const j of columns) frozen[0][j] = event.target.checked;
  });
  return make("input", { type: "checkbox", "aria-label": `${name} must stay`, onchange });
}

export class Column {
  constructor(session, j) {
    this.session = session;
    this.j = j;
    this.column = session.overview.columns[j];
    this.name = this.column.name;
    this.isFixed = this.column.kind === "frozen";
    this.text = make("span", { class: "value" });
    this.curve = make("path", { class: "profile" });
    this.was = make("line", { class: "was", y1: 0, y2: HEIGHT });
    this.now = make("line", { class: "now", y1: 0, y2: HEIGHT });
    this.plot = make("svg", {
      class: "spark",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    }, ...makeBars(this.column.histogram), this.curve, this.was, this.now);
    const parts = this.isFixed ? [] : [this.plot, this.makeControl(), this.makeLimits()];
    this.box = make("div", { class: "column", "data-column": j },
      make("div", { class: "caption" }, make("strong", {}, this.name), this.text), ...parts);
  }

  /** Whether values are points on a line, not options. */
  get isNumber() {
    return this.column.kind === "number" || this.column.kind === "integer";
  }

  /** Whether values can rise and fall. */
  get isOrdered() {
    return this.isNumber || this.column.kind === "ordered";
  }

  get value() {
    return this.session.values[0][this.j];
  }

  makeControl() {
    const { column } = this;
    const control = make("div", { class: "control" });
    if (this.isNumber) control.append(...this.makeNumber());
    else if (column.kind === "boolean") control.append(this.makeSwitch());
    else control.append(this.makeSelect());
    if (column.missing) {
      this.gap = make("input", {
        type: "checkbox",
        onchange: (event) => this.set(event.target.checked ? null : this.typical()),
      });
      control.append(make("label", {}, this.gap, "missing"));
    }
    return control;
  }

  typical() {
    const { column } = this;
    const known = this.session.original[0][this.j];
    if (known !== null) return known;
    return this.isNumber ? this.round((column.low + column.high) / 2) : 0;
  }

  makeNumber() {
    const { column } = this;
    const { low, high } = column;
    const step = column.kind === "integer" ? 1 : column.step ?? "any";
    this.slider = make("input", {
      type: "range", min: low, max: high, step: step === "any" ? (high - low) / 200 || 1 : step,
      "aria-label": this.name,
      oninput: () => this.sketch(Number(this.slider.value)),
      onchange: () => this.session.settle(),
    });
    this.field = make("input", {
      type: "number", step, "aria-label": `${this.name}, as a number`,
      onchange: () => { if (this.field.value !== "") this.set(Number(this.field.value)); },
    });
    return [this.slider, this.field];
  }

  makeSwitch() {
    this.tick = make("input", {
      type: "checkbox", "aria-label": this.name,
      onchange: (event) => this.set(event.target.checked ? 1 : 0),
    });
    return make("label", {}, this.tick, cellText(this.column, 1));
  }

  makeSelect() {
    const texts = this.column.options ?? [];
    const options = texts.map((text, i) => make("option", { value: i }, text));
    this.select = make("select", {
      "aria-label": this.name,
      onchange: (event) => this.set(Number(event.target.value)),
    }, ...options);
    return this.select;
  }

  makeLimits() {
    const { session, name, j } = this;
    this.keep = makeKeepBox(name, session, [j]);
    const parts = [make("label", {}, this.keep, "must stay")];
    const usual = session.overview.methods.find((method) => method.default);
    if (usual?.limits.includes("increasing") && this.isOrdered) {
      this.way = make("select", {
        "aria-label": `${name}: which way it may change`,
        onchange: (event) => this.direct(event.target.value),
      }, ...WAYS.map(([value, words]) => make("option", { value }, words)));
      parts.push(this.way);
    }
    if (this.isNumber) {
      const bound = (key, words) => makeNumberField(`${name} ${words}`, words,
        (value) => session.limit((limits) => { limits[key][j] = value; }));
      this.lower = bound("lower", "at least");
      this.upper = bound("upper", "at most");
      parts.push(make("span", { class: "pair" }, this.lower, this.upper));
    }
    return make("div", { class: "column-limits" }, ...parts);
  }

  direct(way) {
    this.session.limit((limits) => {
      for (const key of ["increasing", "decreasing"]) {
        limits[key].delete(this.name);
        if (way === key) limits[key].add(this.name);
      }
    });
  }

  round(value) {
    return this.column.kind === "integer" ? Math.round(value) : value;
  }

  /** A number of the slider's own steps, without the digits that binary fractions add. */
  sketch(value) {
    const values = [this.session.values[0].slice()];
    values[0][this.j] = this.round(Number(value.toPrecision(10)));
    this.session.sketch(values);
  }

  set(value) {
    const rounded = value === null ? null : this.round(value);
    this.session.edit((values) => { values[0][this.j] = rounded; });
  }

  update() {
    const { column, value, session } = this;
    const before = session.original[0][this.j];
    const isKnown = value !== null;
    const text = cellText(column, value);
    const shown = this.isFixed ? session.instance.texts?.[this.j] ?? text : text;
    this.text.textContent = value === before ? shown : `${cellText(column, before)} → ${shown}`;
    this.box.classList.toggle("edited", value !== before);
    if (this.isFixed) return;
    if (this.slider) {
      if (isKnown) this.slider.value = value;
      this.slider.setAttribute("aria-valuetext", shown);
      showNumber(this.field, value);
    }
    if (this.tick) this.tick.checked = value === 1;
    if (this.select) this.select.selectedIndex = isKnown ? value : -1;
    if (this.gap) this.gap.checked = !isKnown;
    this.place(this.was, before);
    this.place(this.now, value);
    this.showLimits(session.limits);
  }

  showLimits(limits) {
    this.keep.checked = limits.frozen[0][this.j];
    if (this.way) {
      const way = ["increasing", "decreasing"].find((key) => limits[key].has(this.name));
      this.way.value = way ?? "";
    }
    for (const key of ["lower", "upper"]) {
      if (this[key]) showNumber(this[key], limits[key][this.j]);
    }
  }

  /** The horizontal place of a value in the card. */
  positionOf(value) {
    const { low, high, histogram } = this.column;
    if (!this.isNumber) return ((value + 0.5) / histogram.counts.length) * WIDTH;
    return high > low ? clamp((value - low) / (high - low), 0, 1) * WIDTH : WIDTH / 2;
  }

  place(line, value) {
    line.setAttribute("visibility", value === null ? "hidden" : "visible");
    if (value === null) return;
    line.setAttribute("x1", this.positionOf(value));
    line.setAttribute("x2", this.positionOf(value));
  }

  /** Draw the probability along the column: [value, probability] in order. */
  showProfile(points) {
    const height = (p) => (HEIGHT - 2 - p * (HEIGHT - 4)).toFixed(1);
    if (this.isNumber) {
      const path = points.map(([value, p]) => `${this.positionOf(value).toFixed(1)} ${height(p)}`);
      this.curve.setAttribute("d", `M${path.join("L")}`);
      return;
    }
    const half = (0.4 * WIDTH) / this.column.histogram.counts.length;
    const dashes = points.map(([value, p]) =>
      `M${(this.positionOf(value) - half).toFixed(1)} ${height(p)}h${(2 * half).toFixed(1)}`);
    this.curve.setAttribute("d", dashes.join(""));
  }
}
