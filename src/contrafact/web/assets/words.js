// Short texts that several parts of the page write.

import { numberText } from "./charts.js";

const NOUNS = { series: "series", image: "image", row: "row", table: "row" };

/** What one instance is called. */
export function nounOf(overview) {
  return NOUNS[overview.kind] ?? "instance";
}

/** A noun with its article. */
export function articleOf(noun) {
  return `${/^[aeiou]/.test(noun) ? "an" : "a"} ${noun}`;
}

/** A probability in percent, never rounded to 0 or 100. */
export function percentText(p) {
  if (p === null || !Number.isFinite(p)) return "unknown";
  if (p > 0 && p < 0.005) return "<1 %";
  if (p < 1 && p > 0.995) return ">99 %";
  return `${Math.round(100 * p)} %`;
}

export function nameOf(overview, index) {
  return overview.instances.names?.[index] ?? `${nounOf(overview)} ${index}`;
}

/** A value of a column as a person reads it. */
export function cellText(column, value) {
  if (value === null || value === undefined) return "missing";
  if (column?.options) return column.options[value] ?? String(value);
  if (column?.kind === "boolean") return value ? "yes" : "no";
  const decimals = column?.step ? Math.max(Math.round(-Math.log10(column.step)), 0) : 0;
  return decimals > 0 && decimals < 6 ? value.toFixed(decimals) : numberText(value);
}

export function countText(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
