// The page: a table of instances beside the one that is looked at.

const data = JSON.parse(document.getElementById("payload").textContent);
const state = {
  at: 0, method: 0, alternative: 0, view: null, scale: 1,
  show: { changed: true, saliency: true, guide: false, limits: true, all: false },
  sort: { key: null, down: false }, find: "", only: "all",
};

function reached(answer) {
  if (answer === undefined) return "not asked";
  if (answer.status === "already_target") return "already";
  return answer.valid ? "reached" : "not reached";
}

/** Why there is no counterfactual to choose; empty where there is one. */
function failure(answer) {
  return reached(answer).startsWith("not") ? reached(answer) : "";
}

/** The answer of a method about an instance that is on show; undefined where it was not asked. */
function answerOf(instance, method = state.method) {
  const answers = instance.answers[method];
  return answers[Math.min(state.alternative, answers.length - 1)];
}

const COLUMNS = {
  row: { title: "row", value: (instance) => instance.source, text: (instance) => `row ${instance.source}` },
  label: {
    title: "now",
    value: (instance) => answerOf(instance)?.before.label ?? -1,
    text: (instance) => data.classes[answerOf(instance)?.before.label] ?? "–",
  },
  target: {
    title: "asked for",
    value: (instance) => answerOf(instance)?.target ?? -1,
    text: (instance) => data.classes[answerOf(instance)?.target] ?? "–",
  },
  status: { title: "outcome", value: (instance) => reached(answerOf(instance)), text: (instance) => reached(answerOf(instance)) },
  changed: {
    title: "changed",
    value: (instance) => answerOf(instance)?.changed ?? 2,
    text: (instance) => {
      const share = answerOf(instance)?.changed;
      if (share === undefined) return "–";
      return share > 0 && share < 0.01 ? "<1 %" : `${Math.round(100 * share)} %`;
    },
  },
};

/** Instances that the filter lets through, in the order of the sorted column. */
function chosen() {
  const words = state.find.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (instance) => Object.values(COLUMNS).map((column) => column.text(instance)).join(" ").toLowerCase();
  const { value } = COLUMNS[state.sort.key];
  const found = data.instances
    .map((instance, at) => ({ instance, at }))
    .filter(({ instance }) => state.only === "all" || reached(answerOf(instance)) === state.only)
    .filter(({ instance }) => words.every((word) => text(instance).includes(word)));
  found.sort((a, b) => {
    const [left, right] = [value(a.instance), value(b.instance)];
    return (left < right ? -1 : left > right ? 1 : a.at - b.at) * (state.sort.down ? -1 : 1);
  });
  return found;
}

const body = make("tbody");
const headings = Object.entries(COLUMNS).map(([key, column]) =>
  make("th", { scope: "col", "aria-sort": "none" },
    make("button", { type: "button", onclick: () => sortBy(key) }, column.title)));
const count = make("p", { class: "small", role: "status" });
const list = make("div", {},
  make("div", { class: "choices" },
    make("input", { type: "search", placeholder: "find a row, a class …", "aria-label": "Find instances", oninput: (event) => { state.find = event.target.value; fillList(); } }),
    make("select", { "aria-label": "Which instances", onchange: (event) => { state.only = event.target.value; fillList(); } },
      ...["all", "reached", "not reached", "already"].map((word) => make("option", { value: word }, word)))),
  make("div", { class: "wide instances", onkeydown: walk },
    make("table", {}, make("thead", {}, make("tr", {}, ...headings)), body)),
  count);

function sortBy(key) {
  state.sort = { key, down: state.sort.key === key && !state.sort.down };
  headings.forEach((heading, i) => {
    const mine = Object.keys(COLUMNS)[i] === key;
    heading.setAttribute("aria-sort", mine ? (state.sort.down ? "descending" : "ascending") : "none");
  });
  fillList();
}

function fillList() {
  const found = chosen();
  body.replaceChildren(...found.map(({ instance, at }) => {
    const [first, ...others] = Object.values(COLUMNS).map((column) => column.text(instance));
    const failed = reached(answerOf(instance)) === "not reached";
    return make("tr", { "data-at": at, "aria-current": at === state.at ? "true" : null, class: failed ? "bad" : null, onclick: () => choose(at) },
      make("th", { scope: "row" }, make("button", { type: "button", tabindex: at === state.at ? 0 : -1 }, first)),
      ...others.map((text) => make("td", { title: text }, text)));
  }));
  // Something in the list must be reachable by the tab key, whatever the filter hides.
  if (!body.querySelector('button[tabindex="0"]')) body.querySelector("button")?.setAttribute("tabindex", "0");
  count.textContent = found.length === data.instances.length ? "" : `${found.length} of ${data.instances.length} instances`;
}

/** Arrow keys in the list: up, down, first, last. */
function walk(event) {
  const lines = [...body.children];
  const here = lines.findIndex((line) => line.contains(document.activeElement));
  if (here < 0) return;
  const to = { ArrowUp: here - 1, ArrowDown: here + 1, Home: 0, End: lines.length - 1 }[plainKey(event)];
  if (to === undefined) return;
  event.preventDefault();
  const line = lines[Math.min(Math.max(to, 0), lines.length - 1)];
  choose(Number(line.dataset.at));
  line.querySelector("button").focus({ preventScroll: true });
}

function step(by) {
  const order = chosen().map(({ at }) => at);
  const here = order.indexOf(state.at);
  const next = order[Math.min(Math.max(here + by, 0), order.length - 1)];
  if (next !== undefined) choose(next);
}

/** Scroll the list to a line, and nothing else. */
function intoView(line) {
  const box = line.closest(".instances");
  const [top, head] = [line.offsetTop, box.querySelector("thead").offsetHeight];
  if (top - head < box.scrollTop) box.scrollTop = top - head;
  else if (top + line.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + line.offsetHeight - box.clientHeight;
}

function choose(at) {
  Object.assign(state, { at, alternative: 0 });
  for (const line of body.children) {
    const mine = Number(line.dataset.at) === at;
    if (mine) line.setAttribute("aria-current", "true");
    else line.removeAttribute("aria-current");
    line.querySelector("button").setAttribute("tabindex", mine ? 0 : -1);
    if (mine) intoView(line);
  }
  show();
}

/** A group of radio buttons drawn as pills; nothing where there is no choice. */
function pick(legend, name, options, current, onchange) {
  if (options.length < 2) return null;
  return make("fieldset", {}, make("legend", {}, legend), ...options.map(({ text, failed }, i) =>
    make("label", { class: failed ? "pick failed" : "pick" },
      make("input", { type: "radio", name, value: i, checked: i === current, "aria-label": failed ? `${text}, ${failed}` : null, onchange: () => onchange(i) }),
      make("span", { title: text }, text))));
}

/** A check box that redraws. */
function toggle(key, words, swatch) {
  const onchange = (event) => { state.show[key] = event.target.checked; redraw(); };
  return make("label", {}, make("input", { type: "checkbox", checked: state.show[key], onchange }),
    swatch ? make("span", { class: `swatch ${swatch}` }) : null, words);
}

/** What the two colors stand for. */
function legend(answer) {
  return [
    make("span", {}, make("span", { class: "swatch before" }), " before"),
    make("span", {}, make("span", { class: `swatch ${answer.valid ? "after" : "missed"}` }), answer.valid ? " after" : " best attempt"),
  ];
}

const detail = make("article", { class: "detail", "aria-label": "The chosen instance" });
let redraw = () => {};

/** The class before → after. */
function outcome(answer) {
  const [before, after, wanted] = [answer.before.label, answer.label, answer.target].map((c) => data.classes[c]);
  if (answer.status === "already_target") return `already ${before}`;
  const still = before === after ? "still " : "";
  const now = answer.proba.includes(null) ? "no answer" : still + after;
  return `${before} → ${now}${answer.valid ? "" : `, wanted ${wanted}`}`;
}

function show() {
  const instance = data.instances[state.at];
  if (instance === undefined) return detail.replaceChildren(make("p", {}, "There is nothing to show."));
  const answer = answerOf(instance);
  const answers = instance.answers[state.method];
  const head = `row ${instance.source}${answer === undefined ? "" : `: ${outcome(answer)}`}`;
  const picture = make("div");
  const focus = detail.contains(document.activeElement) ? document.activeElement : null;
  const kept = focus && { name: focus.name, value: focus.value, text: focus.textContent };
  detail.replaceChildren(...[
    make("header", {}, make("h3", {}, head),
      make("div", { class: "steps" },
        make("button", { type: "button", onclick: () => step(-1) }, "← previous"),
        make("button", { type: "button", onclick: () => step(1) }, "next →"))),
    pick("method", "method", data.methods.map((text, m) => ({ text, failed: failure(answerOf(instance, m)) })),
      state.method, (m) => { Object.assign(state, { method: m, alternative: 0 }); fillList(); show(); }),
    pick("alternative", "alternative", answers.map((one, i) => ({ text: String(i + 1), failed: failure(one) })),
      Math.min(state.alternative, answers.length - 1), (i) => { state.alternative = i; show(); }),
    ...(answer === undefined ? [make("p", { class: "told" }, "This method was not asked about this instance.")] : [
      // No line ends within "t = 42".
      make("p", { class: answer.valid ? "told" : "told bad" }, answer.sentence.replaceAll("t = ", "t\u00a0=\u00a0")),
      answer.note ? make("p", { class: answer.valid ? "small" : null }, answer.note) : null,
      ...answer.broken.map((words) => make("p", { class: "bad" }, `Limit broken: ${words}.`)),
      picture,
      make("div", { class: "facts" },
        make("div", {}, make("h4", {}, "What the model says"), make("div", { class: "tools" }, ...legend(answer)), ...probabilities(answer)),
        make("div", {}, make("h4", {}, "Measured"), ...measured(answer))),
    ]),
  ].filter((part) => part !== null));
  redraw = () => {};
  if (answer !== undefined) draw(picture, instance, answer);
  // Rebuilding took the focused control away: give the focus to the one that stands for it.
  if (kept) [...detail.querySelectorAll("input, button")].find((control) =>
    control.name === kept.name && control.value === kept.value && control.textContent === kept.text)?.focus();
  return history.replaceState(null, "", `#row=${instance.source}&method=${state.method}`);
}

function probabilities(answer) {
  const { before } = answer;
  const likely = data.classes.map((_, c) => c).sort((a, b) =>
    Math.max(answer.proba[b] ?? 0, before.proba[b] ?? 0) - Math.max(answer.proba[a] ?? 0, before.proba[a] ?? 0));
  const shown = [...new Set([before.label, answer.target, answer.label, ...likely])].slice(0, 6);
  const bar = (p, name) => {
    const element = make("div", { class: `bar ${name}` });
    element.style.width = `${100 * (p ?? 0)}%`;
    return element;
  };
  const lines = shown.map((c) => make("div", { class: "class" }, data.classes[c],
    make("div", { class: "bars" },
      bar(before.proba[c], "before"), make("span", {}, probability(before.proba[c], digitsApart(before.proba))),
      bar(answer.proba[c], answer.valid ? "after" : "missed"), make("span", {}, probability(answer.proba[c], digitsApart(answer.proba))))));
  const hidden = data.classes.length - shown.length;
  if (hidden > 0) lines.push(make("p", { class: "small" }, hidden === 1 ? "1 more class is not shown." : `${hidden} more classes are not shown.`));
  return lines;
}

function measured(answer) {
  const lines = Object.entries(answer.scores).map(([name, value]) =>
    make("tr", { title: data.meaning[name] }, make("th", { scope: "row" }, name), make("td", { class: "number" }, figure(value))));
  return [make("table", {}, make("tbody", {}, ...lines))];
}

/** A list over one instance, cut into channels. */
function byChannel(values) {
  const size = values.length / data.shape[0];
  return data.shape.length === 1 ? values : Array.from({ length: data.shape[0] }, (_, c) => values.slice(c * size, (c + 1) * size));
}

function draw(picture, instance, answer) {
  if (instance.x === null) {
    picture.append(make("p", { class: "missing" }, "Not drawn, to keep this file small."));
    return;
  }
  const whole = data.shape.reduce((a, b) => a * b, 1);
  const [x, mask] = [unpack(instance.x), byChannel(unpackBits(answer.mask, whole))];
  const parts = {
    x, mask, after: unpack(answer.x, x, mask),
    guide: unpack(data.guides[answer.guide]), weights: unpack(answer.saliency),
    frozen: data.limits.frozen ? byChannel(unpackBits(data.limits.frozen, whole)) : undefined,
    lower: data.limits.lower && byChannel(data.limits.lower), upper: data.limits.upper && byChannel(data.limits.upper),
  };
  const tools = make("div", { class: "tools" });
  if (data.modality === "series") tools.append(...legend(answer), toggle("changed", "changed stretches", "changed"));
  if (parts.weights) tools.append(toggle("saliency", "saliency", "weight"));
  if (parts.guide && data.modality !== "row") tools.append(toggle("guide", "guide it followed", "guide"));
  if (data.modality === "series" && Object.keys(data.limits).length) tools.append(toggle("limits", "limits", "limit"));
  if (data.modality === "series" && data.names.length > 1) tools.append(toggle("all", `all ${data.names.length} channels`));
  if (data.modality === "row") tools.append(toggle("all", `all ${data.names.length} features`));
  if (data.modality === "image") {
    const resize = (factor) => () => { state.scale = Math.min(Math.max(state.scale * factor, 0.5), 4); redraw(); };
    tools.append(
      make("button", { type: "button", "aria-label": "larger", onclick: resize(1.5) }, "+"),
      make("button", { type: "button", "aria-label": "smaller", onclick: resize(1 / 1.5) }, "−"));
  }
  const told = make("output", {});
  const tell = (words) => { told.textContent = words; };
  const stage = make("div");
  picture.append(tools, stage, told);
  const scene = () => ({
    ...parts, names: data.names, failed: !answer.valid,
    weights: state.show.saliency ? parts.weights : undefined,
    guide: state.show.guide ? parts.guide : undefined,
  });
  redraw = { series: drawSeries, image: drawPixels, row: drawTable }[data.modality];

  function drawSeries() {
    const moved = data.names.map((_, c) => c).filter((c) => parts.mask[c].some(Boolean));
    const channels = state.show.all || moved.length === 0 ? data.names.map((_, c) => c) : moved;
    const limits = state.show.limits ? {} : { frozen: undefined, lower: undefined, upper: undefined };
    const chart = new SeriesChart(
      { ...scene(), ...limits, mask: state.show.changed ? parts.mask : undefined, channels: channels.slice(0, state.show.all ? undefined : 8) },
      state.view, tell);
    const look = chart.look.bind(chart);
    // The stretch in view stays when the method or the instance is switched.
    chart.look = (start, stop) => { look(start, stop); state.view = chart.view; };
    const buttons = [
      make("button", { type: "button", "aria-label": "zoom in", onclick: () => chart.zoom(0.6) }, "+"),
      make("button", { type: "button", "aria-label": "zoom out", onclick: () => chart.zoom(1 / 0.6) }, "−"),
      make("button", { type: "button", onclick: () => chart.look(-0.5, chart.length - 0.5) }, "whole"),
    ];
    stage.replaceChildren(make("div", { class: "tools" }, ...buttons), chart.box);
    chart.draw();
  }

  function drawPixels() {
    const [, , width] = data.shape;
    const scale = Math.max(Math.round((200 / width) * state.scale), 1);
    stage.replaceChildren(drawImage(scene(), data.shape, scale, tell));
    tell("Point at a picture to read values.");
  }

  function drawTable() {
    stage.replaceChildren(drawFeatures(scene(), data.names, state.show.all));
  }

  redraw();
}

function themeButton() {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const words = () => (dark() ? "light page" : "dark page");
  const button = make("button", { type: "button", id: "theme" }, words());
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    button.textContent = words();
  });
  return button;
}

/** A link may name the row and the method: #row=12&method=1. Without one, the first row that was turned. */
function followLink() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const at = data.instances.findIndex((instance) => String(instance.source) === asked.get("row"));
  const method = Number(asked.get("method"));
  if (Number.isInteger(method) && method >= 0 && method < data.methods.length) state.method = method;
  state.at = at >= 0 ? at : Math.max(data.instances.findIndex((instance) => reached(answerOf(instance)) === "reached"), 0);
}

document.querySelector("header").append(themeButton());
document.getElementById("explorer").append(make("div", { class: "explorer" }, list, detail));
followLink();
sortBy("row");
choose(state.at);
addEventListener("hashchange", () => { followLink(); fillList(); choose(state.at); });
