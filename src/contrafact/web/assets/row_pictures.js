// Ways of a row: the columns that change, in small and as a table.

import { make } from "./charts.js";
import { partText, partsOf } from "./parts.js";

const MOST_SMALL = 4;

export class RowPictures {
  constructor(session) {
    this.columns = session.overview.columns;
  }

  /** What changes, as [name, before, after]. */
  changes(before, way) {
    const { columns } = this;
    const isChanged = ({ members }) => members.some((j) => way.mask[0][j]);
    return partsOf(columns).filter(isChanged).map((part) =>
      [part.name, partText(columns, part, before[0]), partText(columns, part, way.after[0])]);
  }

  small(before, way) {
    const changes = this.changes(before, way);
    const lines = changes.slice(0, MOST_SMALL).map(([name, was, is]) =>
      make("span", { class: "change-line" }, `${name}: ${was} → `, make("strong", {}, is)));
    const more = changes.length - MOST_SMALL;
    if (more > 0) lines.push(make("span", { class: "small" }, `and ${more} more columns`));
    return make("span", { class: "sparks" }, ...lines);
  }

  full(before, way) {
    const lines = this.changes(before, way).map(([name, was, is]) => make("tr", {},
      make("th", { scope: "row" }, name),
      make("td", {}, was),
      make("td", { class: way.valid ? "moved" : "bad" }, is)));
    if (lines.length === 0) return make("p", { class: "missing" }, "No column changes.");
    return make("div", { class: "wide fit" }, make("table", { class: "sheet" },
      make("thead", {}, make("tr", {},
        ...["", "now", "would have to be"].map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, ...lines)));
  }
}
