// The card of columns that stand for one choice, of which exactly one holds.

import { make } from "./charts.js";
import { makeKeepBox } from "./column.js";

export class ColumnGroup {
  constructor(session, name, members) {
    this.session = session;
    this.name = name;
    this.members = members;
    this.text = make("span", { class: "value" });
    this.build();
  }

  build() {
    const { session, name, members } = this;
    this.select = make("select", {
      "aria-label": name,
      onchange: (event) => this.set(Number(event.target.value)),
    });
    this.keep = makeKeepBox(name, session, members);
    this.box = make("div", { class: "column", "data-group": name },
      make("div", { class: "caption" }, make("strong", {}, name), this.text),
      make("div", { class: "control" }, this.select),
      make("div", { class: "column-limits" }, make("label", {}, this.keep, "must stay")));
  }

  set(chosen) {
    this.session.edit((values) => {
      for (const j of this.members) values[0][j] = j === chosen ? 1 : 0;
    });
  }

  /** What a member stands for: its name without what all members begin with. */
  optionOf(j) {
    const { name } = this.session.overview.columns[j];
    const rest = name.startsWith(this.name) ? name.slice(this.name.length).replace(/^[_ =:.-]+/, "") : "";
    return rest || name;
  }

  update() {
    const { session, members } = this;
    if (this.select.childElementCount !== members.length) {
      this.select.replaceChildren(...members.map((j) => make("option", { value: j }, this.optionOf(j))));
    }
    const held = (values) => members.find((j) => values[0][j] === 1);
    const now = held(session.values);
    const before = held(session.original);
    const textOf = (j) => (j === undefined ? "none" : this.optionOf(j));
    this.select.value = now ?? "";
    this.text.textContent = now === before ? textOf(now) : `${textOf(before)} → ${textOf(now)}`;
    this.box.classList.toggle("edited", now !== before);
    this.keep.checked = members.every((j) => session.limits.frozen[0][j]);
  }
}
