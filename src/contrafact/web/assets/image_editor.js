// The part of the page for images: a canvas to paint values on, or what must stay.

import { changeColors, clamp, imageColors, make, numberText, plainKey } from "./charts.js";
import { makePill } from "./controls.js";
import { pixelsBetween, pixelsUnder } from "./image_pictures.js";
import { copyPlanes, toPlanes } from "./planes.js";
import { makeThumbnail, paint } from "./small_pictures.js";

const TOOLS = { read: "Read", paint: "Paint", keep: "Must stay", allow: "May change" };
const HINTS = {
  read: "Point at the image to read values.",
  paint: "Paint on the image, and watch the decision.",
  keep: "Paint over what must stay as it is.",
  allow: "Paint over what may change after all.",
};
/** Pixels of the screen for one of the hatched layer's cells. */
const CELL = 8;
const SIDE = 336;
/** Images up to this width are painted pixel by pixel at first. */
const SMALL_SIDE = 16;
const MOST_OTHERS = 4;

export class ImageEditor {
  constructor(session) {
    this.session = session;
    this.tool = "paint";
    this.size = session.overview.shape[2] > SMALL_SIDE ? 2 : 1;
    this.pixel = 0;
    this.last = null;
    this.frame = null;
    const [, height, width] = session.overview.shape;
    this.canvas = make("canvas", {
      width, height, tabindex: 0, role: "application",
      "aria-label": "The image. Arrow keys move, space paints.",
      onpointerdown: (event) => this.onDown(event),
      onpointermove: (event) => this.onMove(event),
      onpointerup: () => this.onUp(),
      onpointercancel: () => this.onUp(),
      onkeydown: (event) => this.onKey(event),
    });
    this.hatch = make("canvas", { class: "hatch", width: width * CELL, height: height * CELL });
    this.cursor = make("div", { class: "pixel-cursor", hidden: true });
    this.change = make("canvas", { width, height, role: "img", "aria-label": "What you changed" });
    this.readout = make("output");
    this.stack = make("div", { class: "stack" }, this.canvas, this.hatch, this.cursor);
    const scale = Math.max(Math.floor(SIDE / Math.max(width, height)), 1);
    this.stack.style.width = `${width * scale}px`;
    this.change.style.width = `${width * scale * 0.5}px`;
    this.changeFigure = make("figure", { hidden: true }, this.change,
      make("figcaption", {}, "what you changed: red brighter, blue darker"));
    this.others = make("div", { class: "others" });
    this.box = make("div", { class: "editor" }, this.makeTools(),
      make("div", { class: "pictures" }, this.stack, this.changeFigure, this.others), this.readout);
    this.setTool("paint");
    for (const name of ["values", "limits"]) session.on(name, () => this.update());
    for (const name of ["instance", "guide"]) session.on(name, () => this.showOthers());
  }

  /** The values that the reference has, over all channels. */
  get range() {
    const { range } = this.session.overview;
    return [Math.min(...range.map(([low]) => low)), Math.max(...range.map(([, high]) => high))];
  }

  makeTools() {
    const [low, high] = this.range;
    this.pills = Object.entries(TOOLS).map(([name, words]) =>
      makePill("tool", name, words, () => this.setTool(name)));
    const sizes = make("input", {
      type: "range", min: 1, max: 6, step: 1,
      oninput: (event) => { this.size = Number(event.target.value); },
    });
    sizes.value = this.size;
    this.value = make("input", { type: "range", min: low, max: high, step: (high - low) / 100 });
    this.value.value = high;
    this.valueField = make("label", {}, "brightness", this.value);
    this.sizeField = make("label", {}, "brush", sizes);
    return make("div", { class: "tools" },
      make("fieldset", {}, make("legend", { class: "unseen" }, "The pointer"), ...this.pills),
      this.sizeField, this.valueField);
  }

  setTool(name) {
    this.tool = name;
    this.readout.textContent = HINTS[name];
    this.sizeField.hidden = name === "read";
    this.valueField.hidden = name !== "paint";
    this.canvas.classList.toggle("editing", name !== "read");
    for (const pill of this.pills) pill.firstChild.checked = pill.firstChild.value === name;
  }

  update() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const { original, values, limits, isEdited } = this.session;
    paint(this.canvas, imageColors(values, this.range));
    this.changeFigure.hidden = !isEdited;
    if (isEdited) paint(this.change, changeColors({ before: original, after: values }));
    this.drawHatch(limits.frozen);
  }

  drawHatch(frozen) {
    const context = this.hatch.getContext("2d");
    const { width } = this.canvas;
    context.clearRect(0, 0, this.hatch.width, this.hatch.height);
    context.strokeStyle = getComputedStyle(this.hatch).color;
    context.beginPath();
    frozen[0].forEach((_, pixel) => {
      if (!frozen.some((plane) => plane[pixel])) return;
      const [x, y] = [(pixel % width) * CELL, Math.floor(pixel / width) * CELL];
      context.moveTo(x, y + CELL);
      context.lineTo(x + CELL, y);
      context.moveTo(x, y + CELL / 2);
      context.lineTo(x + CELL / 2, y);
      context.moveTo(x + CELL / 2, y + CELL);
      context.lineTo(x + CELL, y + CELL / 2);
    });
    context.stroke();
  }

  /** Real images beside it: the one that a search leads to, and the nearest of other classes. */
  showOthers() {
    const { guide, instance, overview } = this.session;
    const found = instance.neighbors.filter(({ label }) => label !== instance.label);
    const shown = found.slice(0, MOST_OTHERS).map(({ values, words }) =>
      ({ words, values: toPlanes(values, overview.shape) }));
    const makeFigure = ({ values, words }) => make("figure", {},
      makeThumbnail(values, overview.shape, this.range, words), make("figcaption", {}, words));
    this.others.replaceChildren(...(guide ? [guide] : shown).map(makeFigure));
  }

  pixelAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const { width, height } = this.canvas;
    const column = Math.floor(((event.clientX - box.left) / box.width) * width);
    const row = Math.floor(((event.clientY - box.top) / box.height) * height);
    return clamp(row, 0, height - 1) * width + clamp(column, 0, width - 1);
  }

  onDown(event) {
    if (this.tool === "read") return;
    this.canvas.setPointerCapture(event.pointerId);
    this.last = this.pixelAt(event);
    this.apply([this.last]);
  }

  onMove(event) {
    const pixel = this.pixelAt(event);
    this.readAt(pixel);
    if (this.last === null || pixel === this.last) return;
    this.apply(pixelsBetween(this.last, pixel, this.canvas.width));
    this.last = pixel;
  }

  onUp() {
    if (this.last === null) return;
    this.last = null;
    this.session.settle();
  }

  /** Put the brush down at some pixels. */
  apply(pixels) {
    const { session, size } = this;
    const { shape } = session.overview;
    const covered = new Set(pixels.flatMap((pixel) => pixelsUnder(pixel, size, shape)));
    if (this.tool === "paint") {
      const values = copyPlanes(session.values);
      const value = Number(this.value.value);
      for (const plane of values) for (const pixel of covered) plane[pixel] = value;
      session.sketch(values);
    } else {
      const isKept = this.tool === "keep";
      session.limit(({ frozen }) => {
        for (const plane of frozen) for (const pixel of covered) plane[pixel] = isKept;
      });
    }
  }

  onKey(event) {
    const { width, height } = this.canvas;
    const key = plainKey(event);
    const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -width, ArrowDown: width }[key];
    if (move) {
      this.pixel = clamp(this.pixel + move, 0, width * height - 1);
      this.showCursor();
      this.readAt(this.pixel);
    } else if (key === " " && this.tool !== "read") {
      this.apply([this.pixel]);
      this.session.settle();
    } else return;
    event.preventDefault();
  }

  showCursor() {
    const { width, height } = this.canvas;
    this.cursor.hidden = false;
    this.cursor.style.left = `${(100 * (this.pixel % width)) / width}%`;
    this.cursor.style.top = `${(100 * Math.floor(this.pixel / width)) / height}%`;
    this.cursor.style.width = `${100 / width}%`;
    this.cursor.style.height = `${100 / height}%`;
  }

  readAt(pixel) {
    const { original, values } = this.session;
    const { width } = this.canvas;
    const texts = (planes) => planes.map((plane) => numberText(plane[pixel])).join(", ");
    const [before, after] = [texts(original), texts(values)];
    const place = `row ${Math.floor(pixel / width)}, column ${pixel % width}`;
    this.readout.textContent = `${place}: ${before}${before === after ? "" : ` → ${after}`}`;
  }
}
