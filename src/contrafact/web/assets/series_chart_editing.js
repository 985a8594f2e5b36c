// The report's chart of a series, with which the series can also be changed.

import { MARGIN, SeriesChart, clamp, make, plainKey } from "./charts.js";
import { copyPlanes } from "./planes.js";
import { bend, drawBetween, shift } from "./stretches.js";

const HINTS = {
  read: "Point at the chart to read values, drag over it to zoom in.",
  move: "Drag the line up or down to bend it, and watch the decision.",
  draw: "Draw a new line with the pointer.",
  select: "Drag to the side to select a stretch; drag a selected stretch up or down to shift it.",
};
const LABEL = "Values over time. Arrow keys read; Shift with up and down changes the value, Shift "
  + "with left and right selects a stretch; E edits, plus and minus zoom, 0 shows all.";
/** A press of a key changes a value by this share of the values in sight. */
const KEY_STEP = 0.02;

/**
 * A chart whose line "after" follows the pointer. `hooks`: sketch(values) while it moves,
 * settle() when it rests, select(stretch), setTool(name), setBound(side, channel, value).
 */
export class EditableChart extends SeriesChart {
  constructor(scene, hooks, tell) {
    super(scene, null, tell);
    this.hooks = hooks;
    this.tool = "read";
    this.reach = 0;
    this.stretch = null;
    this.gesture = null;
    this.channel = scene.channels[0];
    this.panels = [];
    // The canvas is made anew when the chart grows; what is under way must not end with it.
    this.box.addEventListener("pointermove", (event) => this.onGesture(event));
    this.box.addEventListener("pointerup", () => this.endGesture());
    this.box.addEventListener("pointercancel", () => this.endGesture());
  }

  /** Show other values on the same canvas. */
  refresh(scene) {
    this.scene = scene;
    if (!scene.channels.includes(this.channel)) [this.channel] = scene.channels;
    if (this.svg === undefined || this.drawnChannels !== scene.channels.length) this.draw();
    else this.drawPanels();
    if (this.svg !== undefined) this.readAt(this.current);
  }

  draw() {
    super.draw();
    this.drawnChannels = this.scene.channels.length;
  }

  drawPanels() {
    this.panels = [];
    super.drawPanels();
  }

  makeCanvas(width, height) {
    const canvas = super.makeCanvas(width, height);
    canvas.setAttribute("aria-label", LABEL);
    canvas.setAttribute("role", "application");
    return canvas;
  }

  setTool(tool) {
    this.tool = tool;
    this.box.classList.toggle("editing", tool !== "read");
    if (tool !== "select") this.setStretch(null);
    if (this.svg !== undefined) this.readAt(null);
  }

  setStretch(stretch) {
    this.stretch = stretch;
    this.hooks.select(stretch);
    if (this.svg !== undefined) this.drawPanels();
  }

  /** All that is drawn, with room above and below to draw into. */
  rangeOf(channel) {
    if (this.gesture) return this.gesture.ranges[channel];
    const [low, high] = super.rangeOf(channel);
    const [least, most] = this.scene.ranges[channel];
    const bounds = [this.scene.lowest[channel], this.scene.highest[channel]];
    const known = bounds.filter((value) => value !== null);
    const from = Math.min(low, ...known);
    const to = Math.max(high, ...known);
    const room = Math.max(0.15 * (to - from), 0.05 * (most - least));
    return [from - room, to + room];
  }

  drawPanel(channel, top, height) {
    super.drawPanel(channel, top, height);
    const panel = { channel, top, height, ...this.layOut(channel, top, height) };
    this.panels.push(panel);
    if (this.stretch?.channels.includes(channel)) this.drawStretch(panel);
    this.drawHandle(panel, "lower", this.scene.lowest[channel]);
    this.drawHandle(panel, "upper", this.scene.highest[channel]);
    const several = this.scene.channels.length > 1;
    if (several && channel === this.channel && this.tool !== "read") {
      const place = { class: "active", x: MARGIN.left - 3, y: panel.head, width: 3 };
      this.paper.append(make("rect", { ...place, height: panel.foot - panel.head }));
    }
  }

  drawStretch({ head, foot }) {
    const left = this.positionOf(this.stretch.start - 0.5);
    const width = this.positionOf(this.stretch.stop - 0.5) - left;
    const place = { x: left, width, y: head, height: foot - head };
    const inside = { "clip-path": `url(#${this.clip})` };
    this.paper.append(make("rect", { class: "stretch", ...place, ...inside }));
  }

  /** A handle for a bound, at the side; without a bound it waits at the edge of the panel. */
  drawHandle(panel, side, value) {
    const y = value === null
      ? (side === "lower" ? panel.foot : panel.head)
      : clamp(panel.heightOf(value), panel.head, panel.foot);
    const x = MARGIN.left + this.innerWidth;
    const tip = side === "lower" ? -8 : 8;
    const handle = make("path", {
      class: value === null ? "handle" : "handle set",
      d: `M${x} ${y}h11l-5.5 ${tip}z`,
      "data-bound": side,
      onpointerdown: (event) => this.grabHandle(event, panel, side),
    });
    this.paper.append(handle);
  }

  grabHandle(event, panel, side) {
    event.stopPropagation();
    this.begin(event, { kind: "bound", side, channel: panel.channel });
  }

  panelAt(event) {
    const y = event.clientY - this.svg.getBoundingClientRect().top;
    return this.panels.find((panel) => y < panel.top + panel.height) ?? this.panels.at(-1);
  }

  /** Time and value under the pointer, within a channel's panel. */
  pointAt(event, channel) {
    const panel = this.panels.find((each) => each.channel === channel);
    const y = event.clientY - this.svg.getBoundingClientRect().top;
    const t = Math.round(clamp(this.timeAt(event), 0, this.length - 1));
    return { t, value: clamp(panel.valueAt(y), panel.low, panel.high) };
  }

  onPointerDown(event) {
    if (this.tool === "read") {
      super.onPointerDown(event);
      return;
    }
    const { channel } = this.panelAt(event);
    this.channel = channel;
    const point = this.pointAt(event, channel);
    const { stretch } = this;
    const isInside = stretch?.channels.includes(channel)
      && point.t >= stretch.start && point.t < stretch.stop;
    const kind = this.tool === "select" && isInside ? "shift" : this.tool;
    this.begin(event, { kind, channel, from: point, last: point });
    // A bend and a shift begin with a move; a pen and a brush where they are put down.
    if (kind === "draw" || kind === "select") this.onGesture(event);
  }

  begin(event, gesture) {
    const ranges = Object.fromEntries(this.scene.channels.map((c) => [c, this.rangeOf(c)]));
    this.gesture = { ...gesture, ranges, values: copyPlanes(this.scene.after) };
    this.box.setPointerCapture(event.pointerId);
  }

  onGesture(event) {
    const { gesture } = this;
    if (gesture === null) return;
    const point = this.pointAt(event, gesture.channel);
    const values = copyPlanes(gesture.values);
    if (gesture.kind === "bound") {
      this.hooks.setBound(gesture.side, gesture.channel, point.value);
    } else if (gesture.kind === "move") {
      const { from } = gesture;
      const goal = values[gesture.channel][from.t] + point.value - from.value;
      bend(values, gesture.channel, from.t, goal, this.reach);
      this.hooks.sketch(values);
    } else if (gesture.kind === "draw") {
      drawBetween(gesture.values, gesture.channel, gesture.last, point);
      gesture.last = point;
      this.hooks.sketch(copyPlanes(gesture.values));
    } else if (gesture.kind === "shift") {
      shift(values, this.stretch, this.shiftBy(gesture, point.value - gesture.from.value));
      this.hooks.sketch(values);
    } else {
      const [start, last] = [gesture.from.t, point.t].sort((a, b) => a - b);
      this.setStretch({ channels: [gesture.channel], start, stop: last + 1 });
    }
    this.readAt(point.t);
  }

  /** The same share of the height in every channel. */
  shiftBy({ channel, ranges }, by) {
    const [low, high] = ranges[channel];
    const share = by / (high - low);
    return this.scene.before.map((_, c) => (ranges[c] ? share * (ranges[c][1] - ranges[c][0]) : 0));
  }

  endGesture() {
    if (this.gesture === null) return;
    const isTap = this.gesture.kind === "select" && this.stretch?.stop - this.stretch?.start < 2;
    this.gesture = null;
    if (isTap) this.setStretch(null);
    this.hooks.settle();
  }

  onKey(event) {
    const key = plainKey(event);
    const isArrow = key.startsWith("Arrow");
    if (event.shiftKey && isArrow) this.onShiftArrow(key);
    else if (key === "ArrowUp") this.changeChannel(-1);
    else if (key === "ArrowDown") this.changeChannel(1);
    else if (key.toLowerCase() === "e") this.hooks.setTool(this.tool === "move" ? "read" : "move");
    else if (key.toLowerCase() === "s") this.hooks.setTool("select");
    else if (key === "Escape") this.setStretch(null);
    else {
      super.onKey(event);
      return;
    }
    event.preventDefault();
  }

  changeChannel(by) {
    const { channels } = this.scene;
    this.channel = channels[clamp(channels.indexOf(this.channel) + by, 0, channels.length - 1)];
    this.drawPanels();
    this.readAt(this.current ?? 0);
  }

  onShiftArrow(key) {
    const t = this.current ?? Math.round((this.view[0] + this.view[1]) / 2);
    if (key === "ArrowLeft" || key === "ArrowRight") {
      this.selectTo(t, clamp(t + (key === "ArrowLeft" ? -1 : 1), 0, this.length - 1));
      return;
    }
    if (this.tool === "read") this.hooks.setTool("move");
    const [low, high] = this.rangeOf(this.channel);
    const by = (key === "ArrowUp" ? 1 : -1) * KEY_STEP * (high - low);
    const values = copyPlanes(this.scene.after);
    if (this.stretch) {
      const ranges = this.scene.before.map((_, c) => this.rangeOf(c));
      shift(values, this.stretch, this.shiftBy({ channel: this.channel, ranges }, by));
    } else bend(values, this.channel, t, values[this.channel][t] + by, this.reach);
    this.hooks.sketch(values);
    this.hooks.settle();
    this.readAt(t);
  }

  /** Select from one time to another, or move that end of what is selected. */
  selectTo(from, to) {
    if (this.tool !== "select") this.hooks.setTool("select");
    const { start, stop } = this.stretch ?? { start: from, stop: from + 1 };
    const other = from === start ? stop - 1 : start;
    const [first, last] = [other, to].sort((a, b) => a - b);
    this.setStretch({ channels: [this.channel], start: first, stop: last + 1 });
    this.readAt(to);
  }

  readAt(t) {
    super.readAt(t);
    if (t === null) this.tell(HINTS[this.tool]);
  }
}
