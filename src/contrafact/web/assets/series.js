// The part of the page for series: the chart, its tools, and what can be done to a stretch.

import { make } from "./charts.js";
import { makePill } from "./controls.js";
import { differences, toPlanes } from "./planes.js";
import { EditableChart } from "./series_chart_editing.js";
import { mark, paste, scale, shift, smooth } from "./stretches.js";

const TOOLS = { read: "Read", move: "Bend", draw: "Draw", select: "Select" };
/** How far a bend reaches, as a share of the length. */
const REACHES = [["one point", 0], ["narrow", 0.03], ["wide", 0.1]];
/** Channels drawn at first. */
const MOST_CHANNELS = 8;

export class SeriesEditor {
  constructor(session) {
    this.session = session;
    const { overview } = session;
    this.shown = overview.names.map((_, c) => c < MOST_CHANNELS);
    this.readout = make("output");
    this.frame = null;
    this.stretchTools = make("div", { class: "tools stretch-tools" });
    this.reach = this.makeReach();
    this.box = make("div", { class: "editor" });
    session.on("instance", () => this.open());
    for (const name of ["values", "limits", "guide"]) session.on(name, () => this.update());
  }

  open() {
    if (this.chart === undefined) this.build();
    this.neighbors = this.session.instance.neighbors.map((neighbor) =>
      ({ ...neighbor, values: toPlanes(neighbor.values, this.session.overview.shape) }));
    const { label } = this.session.instance;
    this.pasted = Math.max(this.neighbors.findIndex((neighbor) => neighbor.label !== label), 0);
    this.chart.setStretch(null);
  }

  build() {
    const { session } = this;
    const hooks = {
      sketch: (values) => session.sketch(values),
      settle: () => session.settle(),
      select: () => this.fillStretchTools(),
      setTool: (name) => this.setTool(name),
      setBound: (side, channel, value) => session.limit((limits) => {
        limits[side][channel] = Number(value.toPrecision(3));
      }),
    };
    const tell = (words) => { this.readout.textContent = words; };
    this.chart = new EditableChart(this.scene(), hooks, tell);
    this.pills = Object.entries(TOOLS).map(([name, words]) =>
      makePill("tool", name, words, () => this.setTool(name)));
    const zoom = (label, factor, sign) => make("button",
      { type: "button", "aria-label": label, onclick: () => this.chart.zoom(factor) }, sign);
    this.box.replaceChildren(
      make("div", { class: "tools" },
        make("fieldset", {}, make("legend", { class: "unseen" }, "The pointer"), ...this.pills),
        this.reach,
        make("span", { class: "spring" }),
        make("span", { class: "pair" },
          zoom("zoom in", 0.6, "+"), zoom("zoom out", 1 / 0.6, "−"),
          make("button", { type: "button", onclick: () => this.chart.lookAtAll() }, "whole"))),
      this.stretchTools, this.chart.box, this.makeLegend(), this.readout);
    this.setTool("move");
    this.chart.draw();
  }

  makeReach() {
    const length = this.session.overview.shape.at(-1);
    const options = REACHES.map(([words, share]) =>
      make("option", { value: Math.round(share * length) }, words));
    const select = make("select", {
      "aria-label": "How far a bend reaches",
      onchange: (event) => { this.chart.reach = Number(event.target.value); },
    }, ...options);
    select.selectedIndex = 1;
    return select;
  }

  makeLegend() {
    this.guideKey = make("span", { class: "guide-key" });
    return make("div", { class: "tools legend" },
      make("span", {}, make("span", { class: "swatch before" }), " as it was"),
      make("span", {}, make("span", { class: "swatch after" }), " as you changed it"),
      this.guideKey);
  }

  setTool(name) {
    this.chart.setTool(name);
    this.chart.reach = Number(this.reach.value);
    this.reach.hidden = name !== "move";
    for (const pill of this.pills) pill.firstChild.checked = pill.firstChild.value === name;
    this.fillStretchTools();
  }

  /** Draw at the next frame, however often it is asked for until then. */
  update() {
    if (this.chart === undefined) return;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      const { guide } = this.session;
      this.chart.refresh(this.scene());
      this.guideKey.replaceChildren(...(guide
        ? [make("span", { class: "swatch guide" }), ` ${guide.words}`]
        : []));
    });
  }

  showChannel(channel, isShown) {
    this.shown[channel] = isShown;
    this.update();
  }

  scene() {
    const { overview, original, values, limits, guide } = this.session;
    const length = overview.shape.at(-1);
    const changed = differences(original, values);
    const lines = (bounds) => bounds.map((bound) => Array(length).fill(bound));
    const channels = overview.names.map((_, c) => c).filter((c) => this.shown[c]);
    return {
      before: original,
      after: values,
      changed,
      shaded: changed,
      frozen: limits.frozen,
      lower: lines(limits.lower),
      upper: lines(limits.upper),
      lowest: limits.lower,
      highest: limits.upper,
      guide: guide?.values,
      ranges: overview.range,
      names: overview.names,
      channels: channels.length > 0 ? channels : [0],
    };
  }

  /** What can be done to the selected stretch. */
  fillStretchTools() {
    const stretch = this.chart?.stretch;
    this.stretchTools.hidden = !stretch;
    if (!stretch) return;
    const key = JSON.stringify([stretch.start, stretch.stop, stretch.channels]);
    const isNew = this.stretchTools.childElementCount === 0;
    if (isNew) this.stretchTools.append(...this.makeStretchTools());
    if (key !== this.drawnStretch) {
      this.stretchTools.firstChild.textContent = `t = ${stretch.start} … ${stretch.stop - 1}:`;
      this.drawnStretch = key;
    }
    this.allChannels.checked = stretch.channels.length > 1;
    this.fillPaste();
  }

  makeStretchTools() {
    const { session } = this;
    const heights = session.overview.range.map(([low, high]) => 0.05 * (high - low));
    const depths = heights.map((height) => -height);
    const button = (words, act, label = null) =>
      make("button", { type: "button", "aria-label": label, onclick: act }, words);
    const edit = (words, change, label) =>
      button(words, () => session.edit((values) => change(values, this.chart.stretch)), label);
    const keep = (words, change) => button(words, () => session.limit((limits) =>
      change(limits.frozen, this.chart.stretch)));
    const keepOnlyRest = (frozen, stretch) => {
      frozen.forEach((plane) => plane.fill(true));
      mark(frozen, stretch, false);
    };
    this.allChannels = make("input", { type: "checkbox", onchange: () => this.widen() });
    this.pasteChoice = make("select", {
      "aria-label": "Whose stretch",
      onchange: (event) => { this.pasted = Number(event.target.value); },
    });
    const several = session.overview.names.length > 1;
    return [
      make("span", { class: "which" }),
      several ? make("label", {}, this.allChannels, "all channels") : null,
      edit("↑", (values, stretch) => shift(values, stretch, heights), "shift up"),
      edit("↓", (values, stretch) => shift(values, stretch, depths), "shift down"),
      edit("larger", (values, stretch) => scale(values, stretch, 1.2)),
      edit("flatter", (values, stretch) => scale(values, stretch, 1 / 1.2)),
      edit("smooth", smooth),
      edit("as it was", (values, stretch) => paste(values, stretch, session.original)),
      make("span", { class: "pair" },
        edit("paste from", (values, stretch) =>
          paste(values, stretch, this.neighbors[this.pasted].values)),
        this.pasteChoice),
      make("span", { class: "pair" },
        keep("must stay", (frozen, stretch) => mark(frozen, stretch, true)),
        keep("may change", (frozen, stretch) => mark(frozen, stretch, false)),
        keep("only this may change", keepOnlyRest)),
    ].filter((part) => part !== null);
  }

  /** Select the stretch in all channels that are drawn, or in one. */
  widen() {
    const { channels } = this.chart.scene;
    this.chart.setStretch({
      ...this.chart.stretch,
      channels: this.allChannels.checked ? channels : [this.chart.channel],
    });
  }

  fillPaste() {
    const options = this.neighbors.map((neighbor, i) =>
      make("option", { value: i, selected: i === this.pasted }, neighbor.words));
    this.pasteChoice.replaceChildren(...options);
  }
}
