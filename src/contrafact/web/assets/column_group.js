// The card of columns that stand for one choice, of which exactly one holds.

import { make } from "./charts.js";
import { makeKeepBox } from "./column.js";
import { heldMember, memberText, partText } from "./parts.js";

export class ColumnGroup {
  constructor(session, part) {
    this.session = session;
    this.part = part;
    this.name = part.name;
    const { columns } = session.overview;
    this.text = make("span", { class: "value" });
    this.select = make("select", {
      "aria-label": part.name,
      onchange: (event) => this.set(Number(event.target.value)),
    }, ...part.members.map((j) => make("option", { value: j }, memberText(columns, part, j))));
    this.keep = makeKeepBox(part.name, session, part.members);
    this.box = make("div", { class: "column", "data-group": part.name },
      make("div", { class: "caption" }, make("strong", {}, part.name), this.text),
      make("div", { class: "control" }, this.select),
      make("div", { class: "column-limits" }, make("label", {}, this.keep, "must stay")));
  }

  set(chosen) {
    this.session.edit((values) => {
      for (const j of this.part.members) values[0][j] = j === chosen ? 1 : 0;
    });
  }

  update() {
    const { session, part } = this;
    const { columns } = session.overview;
    const before = partText(columns, part, session.original[0]);
    const now = partText(columns, part, session.values[0]);
    this.select.value = heldMember(part, session.values[0]) ?? "";
    this.text.textContent = now === before ? now : `${before} → ${now}`;
    this.box.classList.toggle("edited", now !== before);
    this.keep.checked = part.members.every((j) => session.limits.frozen[0][j]);
  }
}
