// One row of a table: what it is now, and the options side by side. Texts come finished.

/** A line of the sheet: its name, its value now, and one cell per option. */
function sheetLine(name, now, cells, kind = "") {
  return make("tr", { class: kind || null },
    make("th", { scope: "row" }, name),
    make("td", {}, now),
    ...cells);
}

function sheetTable(label, head, lines) {
  const cells = head.map((text) => make("th", { scope: "col" }, text));
  return make("div", { class: "wide", role: "region", "aria-label": label, tabindex: 0 },
    make("table", { class: "sheet" },
      make("thead", {}, make("tr", {}, ...cells)),
      make("tbody", {}, ...lines)));
}

function optionCell({ text, changed }) {
  return make("td", { class: changed ? "moved" : "missing" }, text);
}

/** The columns that some option changes, under what the model says. */
function makeOptions(sheet) {
  const says = sheet.verdict.cells.map(({ text, good }) =>
    make("td", { class: good ? "moved" : "bad" }, text));
  const lines = sheet.lines.map((line) =>
    sheetLine(line.name, line.now, line.cells.map(optionCell)));
  return sheetTable("Now and the options", ["", "now", ...sheet.options], [
    sheetLine("the model says", sheet.verdict.now, says, "says"),
    ...lines,
  ]);
}

function makeFold(title, ...content) {
  return make("details", {}, make("summary", {}, title), ...content);
}

/** What no option changes: what was asked to stay at once, the rest folded. */
function makeStays(sheet) {
  const parts = [];
  if (sheet.frozen) parts.push(make("p", {}, sheet.frozen));
  if (sheet.limits) parts.push(make("p", {}, sheet.limits));
  if (sheet.stays) {
    const lines = sheet.unchanged.map(({ name, now, why }) =>
      sheetLine(name, now, [make("td", { class: "missing" }, why)]));
    parts.push(makeFold(sheet.stays, sheetTable("What stays", ["", "now", ""], lines)));
  }
  return parts;
}

function makeFigures(sheet) {
  const lines = sheet.figures.map(({ name, now, cells }) =>
    sheetLine(name, now, cells.map((text) => make("td", {}, text))));
  return makeFold("Probabilities and metrics",
    sheetTable("Probabilities and metrics", ["", "now", ...sheet.options], lines));
}

function makeSheet(sheet, broken) {
  return [
    make("p", { class: "told" }, sheet.lead),
    ...broken.map((words) => make("p", { class: "bad" }, words)),
    sheet.lines.length > 0 ? makeOptions(sheet) : null,
    ...sheet.notes.map(({ text, bad }) => make("p", { class: bad ? "bad" : "small" }, text)),
    ...makeStays(sheet),
    sheet.lines.length > 0
      ? makeFold("In words", make("ul", {}, ...sheet.words.map((words) => make("li", {}, words))))
      : null,
    makeFigures(sheet),
    sheet.lines.length > 0 ? make("p", { class: "small" }, sheet.caution) : null,
  ];
}
