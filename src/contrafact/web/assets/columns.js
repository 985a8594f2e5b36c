// The part of the page for rows: a card for every column, with a control and its distribution.

import { make } from "./charts.js";
import { Column } from "./column.js";
import { ColumnGroup } from "./column_group.js";
import { partsOf } from "./parts.js";
import { Profiles } from "./profiles.js";

/** Cards on the page at once; the others are found by name. */
const MOST_CARDS = 60;
const MANY = 16;

function makeCard(session, part) {
  return part.isGroup ? new ColumnGroup(session, part) : new Column(session, part.members[0]);
}

export class ColumnsEditor {
  constructor(session) {
    this.session = session;
    this.cards = partsOf(session.overview.columns).map((part) => makeCard(session, part));
    this.profiles = new Profiles(session, this.cards.filter((card) => card.column !== undefined));
    this.grid = make("div", { class: "columns" });
    const legend = make("div", { class: "tools legend" },
      make("span", {}, make("span", { class: "swatch before" }), " how common"),
      make("span", {}, make("span", { class: "swatch guide" }), " how sure the model would be of ",
        this.wanted = make("strong")),
      make("span", {}, make("span", { class: "swatch after" }), " now"));
    const search = make("input", {
      type: "search", placeholder: "find a column …", "aria-label": "Find columns",
      oninput: (event) => this.arrange(event.target.value),
    });
    this.more = make("p", { class: "small" });
    const finding = this.cards.length > MANY ? make("div", { class: "choices" }, search) : null;
    this.box = make("div", { class: "editor" }, legend, finding, this.grid, this.more);
    this.arrange("");
    for (const name of ["values", "limits"]) session.on(name, () => this.update());
    for (const name of ["verdict", "target"]) session.on(name, () => this.nameWanted());
  }

  arrange(words) {
    const wanted = words.trim().toLowerCase();
    const found = this.cards.filter((card) => card.name.toLowerCase().includes(wanted));
    this.grid.replaceChildren(...found.slice(0, MOST_CARDS).map((card) => card.box));
    const hidden = found.length - MOST_CARDS;
    this.more.textContent = hidden > 0 ? `and ${hidden} more columns; find them by name` : "";
    this.profiles.watch(this.grid);
  }

  nameWanted() {
    const { overview, wanted } = this.session;
    this.wanted.textContent = overview.classes[wanted] ?? "";
  }

  update() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      for (const card of this.cards) card.update();
    });
  }
}
