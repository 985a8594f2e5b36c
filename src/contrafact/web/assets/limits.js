// What may change: what must stay as it is, and bounds for the rest.

import { make, numberText } from "./charts.js";
import { makeNumberField, showNumber } from "./controls.js";
import { partsOf } from "./parts.js";
import { anyTrue, fromPlanes } from "./planes.js";
import { freeLimits } from "./state.js";
import { countText } from "./words.js";

const SUMMARIES = {
  series: "Select a stretch in the chart to say that it must stay. The small triangles at the "
    + "right of the chart, or the fields here, bound the values.",
  image: "Paint over what must stay with “must stay”.",
  row: "Tick “must stay” beside a column, or bound its values.",
};

/** The limits as the server wants them; null where there is none at all. */
export function limitsToSend({ limits, overview }) {
  return {
    frozen: anyTrue(limits.frozen) ? fromPlanes(limits.frozen, overview.shape) : null,
    lower: limits.lower,
    upper: limits.upper,
    max_step: limits.maxStep.some((value) => value !== null) ? limits.maxStep : null,
    increasing: [...limits.increasing],
    decreasing: [...limits.decreasing],
    max_changed: limits.maxChanged,
  };
}

/** How many points, pixels or parts of a row must stay, and of how many. */
function countKept(frozen, columns) {
  const cells = columns
    ? partsOf(columns).map(({ members }) => members.every((j) => frozen[0][j]))
    : frozen.flat();
  return [cells.filter(Boolean).length, cells.length];
}

/** The limits in a few words. */
export function limitWords({ limits, overview }) {
  const words = [];
  const [kept, all] = countKept(limits.frozen, overview.columns);
  if (kept === all) words.push("everything must stay");
  else if (kept > 0 && overview.columns) words.push(`${countText(kept, "column")} must stay`);
  else if (kept > 0) words.push(`${numberText((100 * kept) / all, 2)} % must stay`);
  const bounds = [...limits.lower, ...limits.upper].filter((value) => value !== null).length;
  if (bounds > 0) words.push(countText(bounds, "bound"));
  if (limits.maxStep.some((value) => value !== null)) words.push("steps limited");
  const directions = limits.increasing.size + limits.decreasing.size;
  if (directions > 0) words.push(countText(directions, "direction"));
  if (limits.maxChanged !== null) {
    words.push(`at most ${countText(limits.maxChanged, "column")}`);
  }
  return words.length > 0 ? words.join(", ") : `every ${wholeOf(overview)} may change`;
}

function wholeOf({ kind }) {
  return { series: "point", image: "pixel" }[kind] ?? "column";
}

/** The fold of the limits; `editor` draws the channels that are chosen here. */
export class Limits {
  constructor(session, editor) {
    this.session = session;
    this.editor = editor;
    this.kind = session.overview.kind === "table" ? "row" : session.overview.kind;
    this.words = make("span", { class: "small" });
    /** What brings each control up to date; controls stay, so that none loses the focus. */
    this.showings = [];
    const clear = () => {
      session.limits = freeLimits(session.overview);
      session.emit("limits");
    };
    this.box = make("details", { class: "limits" },
      make("summary", {}, "What may change? ", this.words),
      make("p", { class: "small" }, SUMMARIES[this.kind]),
      this.kind === "row" ? this.makeMostChanged() : this.makeTable(),
      make("button", { type: "button", onclick: clear }, "Everything may change"));
    session.on("limits", () => this.update());
    this.update();
  }

  update() {
    this.words.textContent = `(${limitWords(this.session)})`;
    for (const show of this.showings) show(this.session.limits);
  }

  /** A field that shows and sets one of the limits. */
  makeField(label, hint, read, write) {
    const field = makeNumberField(label, hint,
      (value) => this.session.limit((limits) => write(limits, value)));
    this.showings.push((limits) => showNumber(field, read(limits)));
    return field;
  }

  makeMostChanged() {
    const field = this.makeField("most columns to change", "any number",
      (limits) => limits.maxChanged, (limits, value) => { limits.maxChanged = value; });
    field.min = 1;
    field.step = 1;
    return make("label", { class: "field" }, "Columns that change, at most ", field);
  }

  makeTable() {
    const { overview } = this.session;
    const isSeries = this.kind === "series";
    const several = overview.names.length > 1;
    const head = [
      several ? "channel" : null,
      several && isSeries ? "shown" : null,
      several ? "may change" : null,
      "at least",
      "at most",
      isSeries ? "largest step" : null,
    ].filter((text) => text !== null);
    const cells = head.map((text) => make("th", { scope: "col" }, text));
    return make("div", { class: "wide limit-table" },
      make("table", {},
        make("thead", {}, make("tr", {}, ...cells)),
        make("tbody", {}, ...overview.names.map((name, c) => this.makeLine(name, c)))));
  }

  makeLine(name, c) {
    const { session } = this;
    const { overview } = session;
    const isSeries = this.kind === "series";
    const several = overview.names.length > 1;
    const [low, high] = overview.range[c];
    const cell = (...content) => make("td", {}, ...content);
    const number = (key, words, hint) => cell(this.makeField(`${name}: ${words}`, hint,
      (limits) => limits[key][c], (limits, value) => { limits[key][c] = value; }));
    const box = (words, isOn, onchange) => {
      const tick = make("input", { type: "checkbox", "aria-label": `${name}: ${words}`, onchange });
      this.showings.push((limits) => { tick.checked = isOn(limits); });
      return cell(tick);
    };
    const allow = (event) => session.limit(({ frozen }) => frozen[c].fill(!event.target.checked));
    const show = (event) => this.editor.showChannel(c, event.target.checked);
    return make("tr", {}, ...[
      several ? make("th", { scope: "row" }, name) : null,
      several && isSeries ? box("shown", () => this.editor.shown[c], show) : null,
      several ? box("may change", ({ frozen }) => !frozen[c].every(Boolean), allow) : null,
      number("lower", "at least", numberText(low, 3)),
      number("upper", "at most", numberText(high, 3)),
      isSeries ? number("maxStep", "largest step from one point to the next", "any") : null,
    ].filter((part) => part !== null));
  }
}
