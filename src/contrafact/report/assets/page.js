// The page: a table of instances beside the chosen one. Texts come finished in the payload.

const data = JSON.parse(document.getElementById("payload").textContent);
const state = {
  at: 0,
  method: 0,
  alternative: 0,
  view: null,
  scale: 1,
  show: { changed: true, saliency: true, guide: false, limits: true, all: false },
  sort: { key: null, descending: false },
  search: "",
  filter: "all",
};
/** One row of a table needs no list to choose from. */
const isAlone = data.modality === "table" && data.instances.length === 1;
const FILTERS = ["all", "reached", "not reached", "already"];
const NOT_ASKED = "not asked";
/** Channels drawn unless all are asked for. */
const MOST_CHANNELS = 8;

/** The answer of a method about an instance that is on show; undefined where it was not asked. */
function answerOf(instance, method = state.method) {
  const answers = instance.answers[method];
  return answers[Math.min(state.alternative, answers.length - 1)];
}

function outcomeOf(answer) {
  return answer === undefined ? NOT_ASKED : answer.outcome;
}

/** Why there is no counterfactual to choose; empty where there is one. */
function failureOf(answer) {
  const outcome = outcomeOf(answer);
  return ["not reached", NOT_ASKED].includes(outcome) ? outcome : "";
}

// --- the table of instances ---------------------------------------------------------------------

const COLUMNS = {
  row: {
    title: "row",
    sortValue: (instance) => instance.source,
    text: (instance) => instance.name,
  },
  label: {
    title: "now",
    sortValue: (instance) => answerOf(instance)?.label ?? -1,
    text: (instance) => data.classes[answerOf(instance)?.label] ?? "–",
  },
  target: {
    title: "asked for",
    sortValue: (instance) => answerOf(instance)?.target ?? -1,
    text: (instance) => data.classes[answerOf(instance)?.target] ?? "–",
  },
  outcome: {
    title: "outcome",
    sortValue: (instance) => outcomeOf(answerOf(instance)),
    text: (instance) => outcomeOf(answerOf(instance)),
  },
  changed: {
    title: "changed",
    sortValue: (instance) => answerOf(instance)?.changed ?? 2,
    text: (instance) => answerOf(instance)?.changed_text ?? "–",
  },
};

function matches(instance, words) {
  if (state.filter !== "all" && outcomeOf(answerOf(instance)) !== state.filter) return false;
  const texts = Object.values(COLUMNS).map((column) => column.text(instance));
  const all = texts.join(" ").toLowerCase();
  return words.every((word) => all.includes(word));
}

/** Positions of the instances that search and filter let through, sorted. */
function listedPositions() {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const { sortValue } = COLUMNS[state.sort.key];
  const direction = state.sort.descending ? -1 : 1;
  const compare = (a, b) => {
    const left = sortValue(data.instances[a]);
    const right = sortValue(data.instances[b]);
    if (left < right) return -direction;
    if (left > right) return direction;
    return (a - b) * direction;
  };
  const positions = data.instances.map((_, at) => at);
  return positions.filter((at) => matches(data.instances[at], words)).sort(compare);
}

const tableBody = make("tbody");
const headings = Object.entries(COLUMNS).map(([key, column]) =>
  make("th", { scope: "col", "aria-sort": "none" },
    make("button", { type: "button", onclick: () => sortBy(key) }, column.title)));
const count = make("p", { class: "small", role: "status" });

function makeList() {
  const search = make("input", {
    type: "search",
    placeholder: "find a row, a class …",
    "aria-label": "Find instances",
    oninput: (event) => { state.search = event.target.value; fillList(); },
  });
  const filter = make("select", {
    "aria-label": "Which instances",
    onchange: (event) => { state.filter = event.target.value; fillList(); },
  }, ...FILTERS.map((word) => make("option", { value: word }, word)));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...headings)), tableBody);
  return make("div", {},
    make("div", { class: "choices" }, search, filter),
    make("div", { class: "wide instances", onkeydown: walkList }, table),
    count);
}

function sortBy(key) {
  state.sort = { key, descending: state.sort.key === key && !state.sort.descending };
  const order = state.sort.descending ? "descending" : "ascending";
  Object.keys(COLUMNS).forEach((column, i) => {
    headings[i].setAttribute("aria-sort", column === key ? order : "none");
  });
  fillList();
}

function makeLine(at) {
  const instance = data.instances[at];
  const [first, ...others] = Object.values(COLUMNS).map((column) => column.text(instance));
  const isCurrent = at === state.at;
  const attributes = {
    "data-at": at,
    "aria-current": isCurrent ? "true" : null,
    class: outcomeOf(answerOf(instance)) === "not reached" ? "bad" : null,
    onclick: () => choose(at),
  };
  const button = make("button", { type: "button", tabindex: isCurrent ? 0 : -1 }, first);
  return make("tr", attributes,
    make("th", { scope: "row" }, button),
    ...others.map((text) => make("td", { title: text }, text)));
}

function fillList() {
  const positions = listedPositions();
  tableBody.replaceChildren(...positions.map(makeLine));
  // Something in the list must be reachable by the tab key, whatever the filter hides.
  if (!tableBody.querySelector('button[tabindex="0"]')) {
    tableBody.querySelector("button")?.setAttribute("tabindex", "0");
  }
  const total = data.instances.length;
  count.textContent = positions.length === total ? "" : `${positions.length} of ${total} instances`;
}

/** Arrow keys in the list: up, down, first, last. */
function walkList(event) {
  const lines = [...tableBody.children];
  const here = lines.findIndex((line) => line.contains(document.activeElement));
  if (here < 0) return;
  const goals = { ArrowUp: here - 1, ArrowDown: here + 1, Home: 0, End: lines.length - 1 };
  const goal = goals[plainKey(event)];
  if (goal === undefined) return;
  event.preventDefault();
  const line = lines[clamp(goal, 0, lines.length - 1)];
  choose(Number(line.dataset.at));
  line.querySelector("button").focus({ preventScroll: true });
}

function step(by) {
  const order = listedPositions();
  const next = order[clamp(order.indexOf(state.at) + by, 0, order.length - 1)];
  if (next !== undefined) choose(next);
}

/** Scroll the list to a line, and nothing else. */
function scrollListTo(line) {
  const box = line.closest(".instances");
  const top = line.offsetTop;
  const bottom = top + line.offsetHeight;
  const head = box.querySelector("thead").offsetHeight;
  if (top - head < box.scrollTop) box.scrollTop = top - head;
  else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
}

function choose(at) {
  state.at = at;
  state.alternative = 0;
  for (const line of tableBody.children) {
    const isCurrent = Number(line.dataset.at) === at;
    if (isCurrent) line.setAttribute("aria-current", "true");
    else line.removeAttribute("aria-current");
    line.querySelector("button").setAttribute("tabindex", isCurrent ? 0 : -1);
    if (isCurrent) scrollListTo(line);
  }
  show();
}

// --- the chosen instance ------------------------------------------------------------------------

const detail = make("article", { class: "detail", "aria-label": "The chosen instance" });
let redraw = () => {};

/** A group of radio buttons drawn as pills; nothing where there is no choice. */
function makeChoice(name, options, current, onchange) {
  if (options.length < 2) return null;
  const pills = options.map(({ text, failure }, i) => {
    const input = make("input", {
      type: "radio",
      name,
      value: i,
      checked: i === current,
      "aria-label": failure ? `${text}, ${failure}` : null,
      onchange: () => onchange(i),
    });
    const pill = make("span", { title: text }, text);
    return make("label", { class: failure ? "pick failed" : "pick" }, input, pill);
  });
  return make("fieldset", {}, make("legend", {}, name), ...pills);
}

function makeMethodChoice(instance) {
  const options = data.methods.map((text, method) => {
    const answer = answerOf(instance, method);
    return { text, failure: failureOf(answer) };
  });
  return makeChoice("method", options, state.method, (method) => {
    state.method = method;
    state.alternative = 0;
    fillList();
    show();
  });
}

function makeAlternativeChoice(instance) {
  const answers = instance.answers[state.method];
  const options = answers.map((answer, i) => ({ text: String(i + 1), failure: failureOf(answer) }));
  const current = Math.min(state.alternative, answers.length - 1);
  return makeChoice("alternative", options, current, (alternative) => {
    state.alternative = alternative;
    show();
  });
}

/** A check box that redraws. */
function makeToggle(key, words, swatch) {
  const onchange = (event) => { state.show[key] = event.target.checked; redraw(); };
  return make("label", {},
    make("input", { type: "checkbox", checked: state.show[key], onchange }),
    swatch ? make("span", { class: `swatch ${swatch}` }) : null,
    words);
}

/** What the two colors stand for. */
function makeLegend(answer) {
  const after = answer.valid ? "after" : "missed";
  return [
    make("span", {}, make("span", { class: "swatch before" }), " before"),
    make("span", {}, make("span", { class: `swatch ${after}` }), ` ${answer.legend}`),
  ];
}

function makeHeader(words) {
  const heading = make("h3", {}, words);
  if (isAlone) return make("header", {}, heading);
  return make("header", {}, heading,
    make("div", { class: "steps" },
      make("button", { type: "button", onclick: () => step(-1) }, "← previous"),
      make("button", { type: "button", onclick: () => step(1) }, "next →")));
}

/** What is said and shown of an answer; the picture is drawn into `stage` later. */
function makeAnswer(answer, stage) {
  if (answer === undefined) {
    return [make("p", { class: "told" }, "This method was not asked about this instance.")];
  }
  return [
    make("p", { class: answer.valid ? "told" : "told bad" }, answer.sentence),
    answer.note ? make("p", { class: answer.valid ? "small" : null }, answer.note) : null,
    ...answer.broken.map((words) => make("p", { class: "bad" }, words)),
    stage,
    make("div", { class: "facts" },
      make("div", {},
        make("h4", {}, "Model's probabilities"),
        make("div", { class: "tools" }, ...makeLegend(answer)),
        ...makeProbabilities(answer)),
      make("div", {}, make("h4", {}, "Metrics"), makeScores(answer))),
  ];
}

function show() {
  const instance = data.instances[state.at];
  if (instance === undefined) {
    detail.replaceChildren(make("p", {}, "There is nothing to show."));
    return;
  }
  const answer = answerOf(instance);
  const stage = make("div");
  const restoreFocus = rememberFocus();
  const sheet = instance.sheets[state.method];
  const parts = sheet ? [
    makeHeader(instance.name),
    makeMethodChoice(instance),
    ...makeSheet(sheet, brokenBy(instance)),
  ] : [
    makeHeader(answer?.headline ?? instance.name),
    makeMethodChoice(instance),
    makeAlternativeChoice(instance),
    ...makeAnswer(answer, stage),
  ];
  detail.replaceChildren(...parts.filter((part) => part !== null));
  redraw = () => {};
  if (answer !== undefined && !sheet) draw(stage, instance, answer);
  restoreFocus();
  history.replaceState(null, "", `#row=${instance.source}&method=${state.method}`);
}

/** The constraints that some option of a row breaks. */
function brokenBy(instance) {
  return [...new Set(instance.answers[state.method].flatMap((answer) => answer.broken))];
}

/** Rebuilding takes the focused control away: return what focuses the one that replaces it. */
function rememberFocus() {
  const focused = document.activeElement;
  if (!detail.contains(focused)) return () => {};
  const { name, value, textContent } = focused;
  const isSame = (control) =>
    control.name === name && control.value === value && control.textContent === textContent;
  return () => [...detail.querySelectorAll("input, button")].find(isSame)?.focus();
}

function makeBar(share, name) {
  const bar = make("div", { class: `bar ${name}` });
  bar.style.width = `${100 * share}%`;
  return bar;
}

function makeProbabilities(answer) {
  const after = answer.valid ? "after" : "missed";
  const lines = answer.probabilities.map((line) =>
    make("div", { class: "class" }, data.classes[line.class],
      make("div", { class: "bars" },
        makeBar(line.before, "before"),
        make("span", {}, line.before_text),
        makeBar(line.after, after),
        make("span", {}, line.after_text))));
  if (answer.more_classes) lines.push(make("p", { class: "small" }, answer.more_classes));
  return lines;
}

function makeScores(answer) {
  const lines = data.metrics.map(({ label, meaning }, i) =>
    make("tr", { title: meaning },
      make("th", { scope: "row" }, label),
      make("td", { class: "number" }, answer.scores[i])));
  return make("table", {}, make("tbody", {}, ...lines));
}

// --- the picture --------------------------------------------------------------------------------

/** Everything that can be drawn of an answer. */
function unpackScene(instance, answer) {
  const size = data.shape.reduce((a, b) => a * b, 1);
  const maskOf = (text) => splitChannels(unpackBits(text, size), data.shape);
  const scene = {
    names: data.names,
    failed: !answer.valid,
    legend: answer.legend,
    difference: answer.difference,
    frozen: data.limits.frozen && maskOf(data.limits.frozen),
    lower: data.limits.lower && splitChannels(data.limits.lower, data.shape),
    upper: data.limits.upper && splitChannels(data.limits.upper, data.shape),
  };
  if (data.modality === "row") return { ...scene, before: instance.x, features: answer.features };
  const before = unpackValues(instance.x);
  const changed = maskOf(answer.mask);
  return {
    ...scene,
    before,
    changed,
    after: unpackChanged(answer.x, before, changed),
    guide: unpackValues(data.guides[answer.guide]),
    saliency: unpackValues(answer.saliency),
  };
}

/** The scene without the layers that are switched off. */
function visibleScene(scene) {
  const limits = state.show.limits ? {} : { frozen: undefined, lower: undefined, upper: undefined };
  return {
    ...scene,
    ...(data.modality === "series" ? limits : {}),
    shaded: state.show.changed ? scene.changed : undefined,
    saliency: state.show.saliency ? scene.saliency : undefined,
    guide: state.show.guide ? scene.guide : undefined,
  };
}

function makeTools(scene, answer) {
  const isSeries = data.modality === "series";
  const tools = make("div", { class: "tools" });
  const hasLimits = Object.keys(data.limits).length > 0;
  const hasChannels = isSeries && data.names.length > 1;
  if (isSeries) {
    tools.append(...makeLegend(answer), makeToggle("changed", "changed stretches", "changed"));
  }
  if (scene.saliency) tools.append(makeToggle("saliency", "saliency", "weight"));
  if (scene.guide) tools.append(makeToggle("guide", "guide it followed", "guide"));
  if (isSeries && hasLimits) tools.append(makeToggle("limits", "constraints", "limit"));
  if (data.modality === "row" || hasChannels) tools.append(makeToggle("all", data.all_parts));
  if (data.modality === "image") {
    tools.append(makeResizeButton("larger", "+", 1.5), makeResizeButton("smaller", "−", 1 / 1.5));
  }
  return tools;
}

function makeResizeButton(label, sign, factor) {
  const onclick = () => { state.scale = clamp(state.scale * factor, 0.5, 4); redraw(); };
  return make("button", { type: "button", "aria-label": label, onclick }, sign);
}

function draw(stage, instance, answer) {
  if (instance.x === null) {
    stage.append(make("p", { class: "missing" }, "Not drawn, to keep this file small."));
    return;
  }
  const scene = unpackScene(instance, answer);
  const picture = make("div");
  const readout = make("output");
  const tell = (words) => { readout.textContent = words; };
  stage.append(makeTools(scene, answer), picture, readout);
  const drawings = { series: drawSeries, image: drawPixels, row: drawTable };
  redraw = () => drawings[data.modality](picture, visibleScene(scene), tell);
  redraw();
}

function drawSeries(picture, scene, tell) {
  const all = data.names.map((_, channel) => channel);
  const changed = all.filter((channel) => scene.changed[channel].some(Boolean));
  const chosen = (changed.length > 0 ? changed : all).slice(0, MOST_CHANNELS);
  const channels = state.show.all ? all : chosen;
  const chart = new SeriesChart({ ...scene, channels }, state.view, tell);
  const look = chart.look.bind(chart);
  // The stretch in view stays when the method or the instance is switched.
  chart.look = (start, stop) => { look(start, stop); state.view = chart.view; };
  const zoomIn = { type: "button", "aria-label": "zoom in", onclick: () => chart.zoom(0.6) };
  const zoomOut = { type: "button", "aria-label": "zoom out", onclick: () => chart.zoom(1 / 0.6) };
  const whole = { type: "button", onclick: () => chart.lookAtAll() };
  const buttons = make("div", { class: "tools" },
    make("button", zoomIn, "+"),
    make("button", zoomOut, "−"),
    make("button", whole, "whole"));
  picture.replaceChildren(buttons, chart.box);
  chart.draw();
}

function drawPixels(picture, scene, tell) {
  const [, , width] = data.shape;
  const scale = Math.max(Math.round((200 / width) * state.scale), 1);
  picture.replaceChildren(drawImage(scene, data.shape, scale, tell));
  tell("Point at a picture to read values.");
}

function drawTable(picture, scene) {
  picture.replaceChildren(drawFeatures(scene, data.names, state.show.all));
}

// --- the start ----------------------------------------------------------------------------------

/** A link may name row and method: #row=12&method=1; by default the first row that was reached. */
function followLink() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const method = Number(asked.get("method"));
  if (data.methods[method] !== undefined) state.method = method;
  const isNamed = (instance) => String(instance.source) === asked.get("row");
  const isReached = (instance) => outcomeOf(answerOf(instance)) === "reached";
  const named = data.instances.findIndex(isNamed);
  const reached = data.instances.findIndex(isReached);
  state.at = named >= 0 ? named : Math.max(reached, 0);
}

document.querySelector("header").append(makeThemeButton());
const list = makeList();
document.getElementById("explorer").append(isAlone
  ? detail
  : make("div", { class: "explorer" }, list, detail));
followLink();
sortBy("row");
choose(state.at);
addEventListener("hashchange", () => { followLink(); fillList(); choose(state.at); });
