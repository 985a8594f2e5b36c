// Lines over time that can be zoomed and read.

const MARGIN = { left: 52, right: 12, top: 6, bottom: 24 };
const PANEL_HEIGHT = 280;
const SMALL_PANEL_HEIGHT = 104;
const SALIENCY_HEIGHT = 10;
/** Points are marked where at most this many steps are in view. */
const MOST_MARKED = 40;
const MOST_READ_CHANNELS = 6;
const CHART_LABEL =
  "Values over time before and after. Arrow keys read values, plus and minus zoom, 0 shows all.";

/** About `count` round numbers within [low, high], and the digits it takes to tell them apart. */
function axisTicks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const values = [];
  const last = high + step * 1e-9;
  for (let k = Math.ceil(low / step - 1e-9); k * step <= last; k++) values.push(k * step);
  // One number alone gives no scale.
  if (values.length < 2 && count < 10) return axisTicks(low, high, 2 * count);
  const size = Math.max(Math.abs(low), Math.abs(high), step);
  const digits = clamp(Math.ceil(Math.log10(size / step)) + 1, 4, 15);
  return { values, digits };
}

/**
 * A panel per channel: drag or ctrl + wheel zooms, arrow keys read, + − 0 zoom.
 *
 * `scene`: before, after, guide, saliency, shaded, changed, frozen, lower, upper (each by channel;
 * undefined where it is not to be drawn), names, failed, and the channels to draw.
 */
class SeriesChart {
  /** Charts made so far, since each needs a name of its own for what it clips. */
  static count = 0;

  constructor(scene, view, tell) {
    this.scene = scene;
    this.length = scene.before[0].length;
    this.view = view ?? [-0.5, this.length - 0.5];
    this.tell = tell;
    this.current = null;
    this.dragStart = null;
    this.box = make("div", { class: "chart" });
    this.clip = `inside-${SeriesChart.count++}`;
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  zoom(factor, around = (this.view[0] + this.view[1]) / 2) {
    const [start, stop] = this.view;
    this.look(around + (start - around) * factor, around + (stop - around) * factor);
  }

  /** Show times from start to stop: at least three steps, at most all. */
  look(start, stop) {
    const width = clamp(stop - start, 3, this.length);
    const first = clamp(start, -0.5, this.length - 0.5 - width);
    this.view = [first, first + width];
    this.draw();
  }

  lookAtAll() {
    this.look(-0.5, this.length - 0.5);
  }

  draw() {
    const width = this.box.clientWidth;
    if (width === 0) return;
    const foot = this.panelHeight() * this.scene.channels.length;
    const height = foot + MARGIN.bottom;
    this.innerWidth = width - MARGIN.left - MARGIN.right;
    const hadFocus = this.svg !== undefined && document.activeElement === this.svg;
    this.svg = this.makeCanvas(width, height);
    this.paper = make("g");
    this.svg.append(this.paper);
    this.drawPanels();
    this.drawTimeAxis(foot);
    this.cursor = make("line", { class: "cursor", y1: 0, y2: foot, visibility: "hidden" });
    this.selection = make("rect", { class: "zoom", y: 0, height: foot, visibility: "hidden" });
    this.svg.append(this.cursor, this.selection);
    this.box.replaceChildren(this.svg);
    if (hadFocus) this.svg.focus();
    this.readAt(this.current);
  }

  panelHeight() {
    return this.scene.channels.length > 1 ? SMALL_PANEL_HEIGHT : PANEL_HEIGHT;
  }

  /** Draw every channel anew, on the same canvas. */
  drawPanels() {
    const height = this.panelHeight();
    this.paper.replaceChildren();
    this.scene.channels.forEach((channel, at) => this.drawPanel(channel, at * height, height));
  }

  makeCanvas(width, height) {
    const listeners = {
      onpointermove: (event) => this.onPointerMove(event),
      onpointerleave: () => this.readAt(null),
      onpointerdown: (event) => this.onPointerDown(event),
      onpointerup: (event) => this.onPointerUp(event),
      onpointercancel: () => { this.dragStart = null; this.draw(); },
      ondblclick: () => this.lookAtAll(),
      onwheel: (event) => this.onWheel(event),
      onkeydown: (event) => this.onKey(event),
    };
    const units = { width: 6, height: 6, patternUnits: "userSpaceOnUse" };
    const hatch = make("pattern", { id: "hatch", ...units }, make("path", { d: "M0 6L6 0" }));
    const inside = make("clipPath", { id: this.clip },
      make("rect", { x: MARGIN.left, y: 0, width: Math.max(this.innerWidth, 0), height }));
    const attributes = {
      viewBox: `0 0 ${width} ${height}`,
      height,
      tabindex: 0,
      role: "img",
      "aria-label": CHART_LABEL,
    };
    return make("svg", { ...attributes, ...listeners }, make("defs", {}, hatch, inside));
  }

  /** The horizontal position of time t, in pixels. */
  positionOf(t) {
    const [start, stop] = this.view;
    return MARGIN.left + ((t - start) / (stop - start)) * this.innerWidth;
  }

  /** The least and the largest value that a panel has to show. */
  rangeOf(channel) {
    const lines = [this.scene.before[channel], this.scene.after[channel]];
    if (this.scene.guide) lines.push(this.scene.guide[channel]);
    const [low, high] = valueRange([lines]);
    return low === high ? [low - 0.5, high + 0.5] : [low, high];
  }

  /** Where the panel of a channel lies, which values it shows and at which height. */
  layOut(channel, top, height) {
    const several = this.scene.channels.length > 1;
    const [low, high] = this.rangeOf(channel);
    const foot = top + height - (several ? 10 : 6);
    const base = foot - (this.scene.saliency ? SALIENCY_HEIGHT : 0);
    const head = top + MARGIN.top;
    const room = base - head - (several ? 14 : 0);
    const heightOf = (value) => base - ((value - low) / (high - low)) * room;
    const valueAt = (y) => low + ((base - y) / room) * (high - low);
    return { low, high, head, foot, heightOf, valueAt };
  }

  drawPanel(channel, top, height) {
    const { scene } = this;
    const several = scene.channels.length > 1;
    const { low, high, head, foot, heightOf } = this.layOut(channel, top, height);
    const group = make("g", { "clip-path": `url(#${this.clip})` });
    if (scene.frozen) this.drawSpans(group, scene.frozen[channel], "frozen", head, foot);
    const shading = scene.failed ? "changed missed" : "changed";
    if (scene.shaded) this.drawSpans(group, scene.shaded[channel], shading, head, foot);
    for (const bound of [scene.lower, scene.upper]) {
      const isVisible = (value) => value !== null && value >= low && value <= high;
      if (bound?.[channel].some(isVisible)) this.drawLine(group, bound[channel], "limit", heightOf);
    }
    if (scene.guide) this.drawLine(group, scene.guide[channel], "guide", heightOf);
    this.drawLine(group, scene.before[channel], "before", heightOf, 3.5);
    this.drawLine(group, scene.after[channel], scene.failed ? "missed" : "after", heightOf, 2.5);
    if (scene.saliency) this.drawSaliency(group, scene.saliency[channel], foot - 7);
    this.paper.append(this.makeValueAxis(low, high, heightOf, several ? 3 : 5), group);
    if (several) {
      const place = { class: "name", x: MARGIN.left, y: top + 14 };
      this.paper.append(make("text", place, scene.names[channel]));
    }
  }

  /** Shade the stretches that a mask marks. */
  drawSpans(group, mask, name, head, foot) {
    for (const [start, stop] of findRuns(mask)) {
      const left = this.positionOf(start - 0.5);
      const width = Math.max(this.positionOf(stop - 0.5) - left, 1);
      group.append(make("rect", { class: name, x: left, width, y: head, height: foot - head }));
    }
  }

  /** Draw a line, with its points marked by circles of this radius where few are in view. */
  drawLine(group, line, name, heightOf, radius) {
    group.append(make("path", { class: name, d: this.pathOf(line, heightOf) }));
    if (radius === undefined || this.view[1] - this.view[0] > MOST_MARKED) return;
    for (const t of this.timesInView()) {
      const circle = { class: name, cx: this.positionOf(t), cy: heightOf(line[t]), r: radius };
      group.append(make("circle", circle));
    }
  }

  drawSaliency(group, weights, top) {
    const most = largest(weights) || 1;
    for (const t of this.timesInView()) {
      if (weights[t] < 0.02 * most) continue;
      const left = this.positionOf(t - 0.5);
      const width = this.positionOf(t + 0.5) - left + 0.3;
      const opacity = (weights[t] / most).toFixed(2);
      const place = { x: left, width, y: top, height: 6 };
      group.append(make("rect", { class: "weight", ...place, "fill-opacity": opacity }));
    }
  }

  makeValueAxis(low, high, heightOf, count) {
    const axis = make("g", { class: "axis" });
    const { values, digits } = axisTicks(low, high, count);
    for (const value of values) {
      const y = heightOf(value);
      const text = { x: MARGIN.left - 6, y: y + 4, "text-anchor": "end" };
      axis.append(
        make("line", { x1: MARGIN.left, x2: MARGIN.left + this.innerWidth, y1: y, y2: y }),
        make("text", text, numberText(value, digits)));
    }
    return axis;
  }

  drawTimeAxis(top) {
    const axis = make("g", { class: "axis" });
    const count = Math.max(this.innerWidth / 90, 2);
    const { values } = axisTicks(Math.max(this.view[0], 0), this.view[1], count);
    const y = top + 16;
    for (const t of values.filter(Number.isInteger)) {
      axis.append(make("text", { x: this.positionOf(t), y, "text-anchor": "middle" }, String(t)));
    }
    axis.append(make("text", { x: MARGIN.left - 6, y, "text-anchor": "end" }, "t ="));
    this.svg.append(axis);
  }

  /** Whole times in view, and one to each side. */
  timesInView() {
    const start = Math.max(Math.floor(this.view[0]), 0);
    const stop = Math.min(Math.ceil(this.view[1]), this.length - 1);
    return Array.from({ length: Math.max(stop - start + 1, 0) }, (_, i) => start + i);
  }

  /** The path through what is in view; of long series each pixel's lowest and highest value. */
  pathOf(line, heightOf) {
    const times = this.timesInView();
    const perPixel = Math.ceil(times.length / (2 * Math.max(this.innerWidth, 1)));
    const points = [];
    for (let i = 0; i < times.length; i += perPixel) {
      const chunk = times.slice(i, i + perPixel).filter((t) => line[t] !== null);
      if (chunk.length === 0) continue;
      const lowest = chunk.reduce((a, b) => (line[b] < line[a] ? b : a));
      const highest = chunk.reduce((a, b) => (line[b] > line[a] ? b : a));
      for (const t of [...new Set([lowest, highest])].sort((a, b) => a - b)) {
        points.push(`${this.positionOf(t).toFixed(1)} ${heightOf(line[t]).toFixed(1)}`);
      }
    }
    if (points.length === 0) return "";
    // A single point is drawn as a dot by a line of no length with round ends.
    return `M${points.join("L")}${points.length === 1 ? "h0.1" : ""}`;
  }

  timeAt(event) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - MARGIN.left) / this.innerWidth;
    return this.view[0] + share * (this.view[1] - this.view[0]);
  }

  onPointerMove(event) {
    const t = this.timeAt(event);
    this.readAt(Math.round(clamp(t, 0, this.length - 1)));
    if (this.dragStart === null) return;
    const [from, to] = [this.positionOf(this.dragStart), this.positionOf(t)].sort((a, b) => a - b);
    this.selection.setAttribute("x", from);
    this.selection.setAttribute("width", to - from);
    this.selection.setAttribute("visibility", "visible");
  }

  onPointerDown(event) {
    if (event.pointerType === "touch") return;
    this.dragStart = this.timeAt(event);
    this.svg.setPointerCapture(event.pointerId);
  }

  onPointerUp(event) {
    if (this.dragStart === null) return;
    const [from, to] = [this.dragStart, this.timeAt(event)].sort((a, b) => a - b);
    this.dragStart = null;
    if (this.positionOf(to) - this.positionOf(from) > 8) this.look(from, to);
    else this.selection.setAttribute("visibility", "hidden");
  }

  onWheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.timeAt(event));
  }

  onKey(event) {
    const key = plainKey(event);
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[key];
    if (step) this.walk(step);
    else if (key === "+" || key === "=") this.zoom(0.6);
    else if (key === "-") this.zoom(1 / 0.6);
    else if (key === "0") this.lookAtAll();
    else return;
    event.preventDefault();
  }

  /** Move the cursor by so many steps, and the view with it where it would leave it. */
  walk(step) {
    const [start, stop] = this.view;
    const from = this.current ?? Math.round((start + stop) / 2);
    const t = clamp(from + step, 0, this.length - 1);
    this.current = t;
    const half = (stop - start) / 2;
    if (t < start || t > stop) this.look(t - half, t + half);
    else this.readAt(t);
  }

  /** Mark time t and tell its values. */
  readAt(t) {
    this.current = t;
    this.cursor.setAttribute("visibility", t === null ? "hidden" : "visible");
    if (t === null) {
      this.tell("Point at the chart to read values, drag over it to zoom in.");
      return;
    }
    this.cursor.setAttribute("x1", this.positionOf(t));
    this.cursor.setAttribute("x2", this.positionOf(t));
    const channels = this.scene.channels.slice(0, MOST_READ_CHANNELS);
    this.tell(`t = ${t}: ${channels.map((channel) => this.valuesAt(channel, t)).join(" · ")}`);
  }

  valuesAt(channel, t) {
    const { scene } = this;
    const name = scene.channels.length > 1 ? `${scene.names[channel].slice(0, 20)} ` : "";
    const after = scene.changed[channel][t] ? numberText(scene.after[channel][t]) : "same";
    return `${name}${numberText(scene.before[channel][t])} → ${after}`;
  }
}
