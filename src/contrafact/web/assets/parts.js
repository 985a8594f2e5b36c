// The parts of a row: a column each, or columns that stand for one choice together.

import { cellText } from "./words.js";

/** Parts in their order, as { name, members }. */
export function partsOf(columns) {
  const groups = new Map();
  const parts = [];
  columns.forEach(({ name, group }, j) => {
    if (group && groups.has(group)) groups.get(group).members.push(j);
    else {
      const part = { name: group || name, members: [j], isGroup: Boolean(group) };
      parts.push(part);
      if (group) groups.set(group, part);
    }
  });
  return parts;
}

/** What a column of a group stands for: its name without what all of the group begin with. */
export function memberText(columns, part, j) {
  const { name } = columns[j];
  if (!name.startsWith(part.name)) return name;
  return name.slice(part.name.length).replace(/^[_ =:.-]+/, "") || name;
}

/** The column of a group that holds; undefined where none does. */
export function heldMember(part, row) {
  return part.members.find((j) => row[j] === 1);
}

/** The value of a part as a person reads it. */
export function partText(columns, part, row) {
  if (!part.isGroup) return cellText(columns[part.members[0]], row[part.members[0]]);
  const held = heldMember(part, row);
  return held === undefined ? "none" : memberText(columns, part, held);
}
