"use strict";
// Drawing. Text only ever enters the page through textContent, so no name or label can become markup.

/** An element with attributes, listeners (on…) and children; strings become text. */
function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "rect", "line", "circle", "text", "defs", "pattern", "clipPath", "title"];
  const element = svg.includes(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** Packed values → one Float64Array per channel; where only those under `mask` are packed, the rest is `base`. */
function unpack(packed, base, mask) {
  if (packed === null || packed === undefined || Array.isArray(packed)) return packed;
  const raw = bytes(packed.data);
  const whole = packed.steps > 255 ? new Uint16Array(raw.buffer) : raw;
  let next = 0;
  return packed.low.map((low, channel) => {
    const scale = (packed.high[channel] - low) / packed.steps;
    if (base === undefined) {
      const size = whole.length / packed.low.length;
      return Float64Array.from(whole.subarray(channel * size, (channel + 1) * size), (step) => low + scale * step);
    }
    return base[channel].map((value, i) => (mask[channel][i] ? low + scale * whole[next++] : value));
  });
}

/** The largest of many numbers, however many. */
function largest(values) {
  return values.reduce((a, b) => Math.max(a, b), 0);
}

/** A key that was pressed alone: with others it belongs to the browser. */
function plainKey(event) {
  return event.ctrlKey || event.altKey || event.metaKey ? "" : event.key;
}

/** Packed bits → a list of true and false, `size` of them. */
function unpackBits(text, size) {
  const raw = bytes(text);
  return Array.from({ length: size }, (_, i) => Boolean((raw[i >> 3] >> (i & 7)) & 1));
}

/** Stretches of true, as [first, one past the last]. */
function runs(mask) {
  const found = [];
  for (let i = 0; i < mask.length; i++) {
    if (!mask[i]) continue;
    const start = i;
    while (i < mask.length && mask[i]) i++;
    found.push([start, i]);
  }
  return found;
}

function figure(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(2);
  return String(Number(value.toPrecision(Math.max(4, Math.trunc(size).toString().length))));
}

function probability(p, digits = 2) {
  if (p === null) return "unknown";
  const least = 10 ** -digits;
  if (p > 0 && p < least / 2) return `<${least.toFixed(digits)}`;
  return p >= 1 - least / 2 && p < 1 ? `>${(1 - least).toFixed(digits)}` : p.toFixed(digits);
}

/** How many decimals tell the likeliest class from the next: two, or up to four near the boundary. */
function digitsApart(proba) {
  const [first, second] = proba.map((p) => p ?? 0).sort((a, b) => b - a);
  return [2, 3].find((digits) => first.toFixed(digits) !== second.toFixed(digits)) ?? 4;
}

/** About `count` round numbers within [low, high]. */
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(k * step);
  // One number alone gives no scale.
  return found.length < 2 && count < 10 ? ticks(low, high, 2 * count) : found;
}

const MARGIN = { left: 52, right: 12, top: 6, bottom: 24 };

/**
 * Lines over time, a panel per channel: drag or ctrl + wheel zooms, arrow keys walk, + − 0 zoom.
 * `scene`: x, after, guide, weights, mask, frozen, lower, upper (per channel), names, failed, channels to draw.
 */
class SeriesChart {
  constructor(scene, view, tell) {
    this.scene = scene;
    this.length = scene.x[0].length;
    this.view = view ?? [-0.5, this.length - 0.5];
    this.tell = tell;
    this.at = null;
    this.box = make("div", { class: "chart" });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  zoom(factor, around = (this.view[0] + this.view[1]) / 2) {
    const [start, stop] = this.view;
    this.look(around + (start - around) * factor, around + (stop - around) * factor);
  }

  /** Show times from start to stop: at least three steps, at most all. */
  look(start, stop) {
    const width = Math.min(Math.max(stop - start, 3), this.length);
    const first = Math.min(Math.max(start, -0.5), this.length - 0.5 - width);
    this.view = [first, first + width];
    this.draw();
  }

  draw() {
    const width = this.box.clientWidth;
    if (width === 0) return;
    const many = this.scene.channels.length > 1;
    const panel = many ? 104 : 280;
    const height = panel * this.scene.channels.length + MARGIN.bottom;
    this.inner = width - MARGIN.left - MARGIN.right;
    const focused = this.svg !== undefined && document.activeElement === this.svg;
    this.svg = make(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`, height, tabindex: 0, role: "img",
        "aria-label": "Values over time before and after. Arrow keys read values, plus and minus zoom, 0 shows all.",
        onpointermove: (event) => this.hover(event), onpointerleave: () => this.point(null),
        onpointerdown: (event) => this.grab(event), onpointerup: (event) => this.release(event),
        onpointercancel: () => { this.grabbed = null; this.draw(); },
        ondblclick: () => this.look(-0.5, this.length - 0.5),
        onwheel: (event) => this.wheel(event), onkeydown: (event) => this.key(event),
      },
      make("defs", {},
        make("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse" },
          make("path", { d: "M0 6L6 0" })),
        make("clipPath", { id: "inside" },
          make("rect", { x: MARGIN.left, y: 0, width: Math.max(this.inner, 0), height }))),
    );
    this.scene.channels.forEach((channel, at) => this.panel(channel, at * panel, panel, many));
    this.timeAxis(height - MARGIN.bottom);
    this.cursor = make("line", { class: "cursor", y1: 0, y2: height - MARGIN.bottom, visibility: "hidden" });
    this.selection = make("rect", { class: "zoom", y: 0, height: height - MARGIN.bottom, visibility: "hidden" });
    this.svg.append(this.cursor, this.selection);
    this.box.replaceChildren(this.svg);
    if (focused) this.svg.focus();
    this.point(this.at);
  }

  px(t) {
    return MARGIN.left + ((t - this.view[0]) / (this.view[1] - this.view[0])) * this.inner;
  }

  panel(channel, top, height, many) {
    const { scene } = this;
    const lines = [scene.x[channel], scene.after[channel]];
    if (scene.guide) lines.push(scene.guide[channel]);
    let low = Infinity, high = -Infinity;
    for (const line of lines) for (const value of line) { low = Math.min(low, value); high = Math.max(high, value); }
    if (low === high) { low -= 0.5; high += 0.5; }
    const foot = top + height - (many ? 10 : 6);
    const room = foot - top - MARGIN.top - (many ? 14 : 0) - (scene.weights ? 10 : 0);
    const base = foot - (scene.weights ? 10 : 0);
    const y = (value) => base - ((value - low) / (high - low)) * room;
    const group = make("g", { "clip-path": "url(#inside)" });
    const spans = (mask, name) => {
      for (const [start, stop] of runs(mask)) {
        group.append(make("rect", {
          class: name, x: this.px(start - 0.5), width: Math.max(this.px(stop - 0.5) - this.px(start - 0.5), 1),
          y: top + MARGIN.top, height: foot - top - MARGIN.top,
        }));
      }
    };
    if (scene.frozen) spans(scene.frozen[channel], "frozen");
    if (scene.mask) spans(scene.mask[channel], scene.failed ? "changed missed" : "changed");
    for (const limit of [scene.lower, scene.upper]) {
      if (limit && limit[channel].some((value) => value !== null && value >= low && value <= high)) {
        group.append(make("path", { class: "limit", d: this.path(limit[channel], y) }));
      }
    }
    if (scene.guide) group.append(make("path", { class: "guide", d: this.path(scene.guide[channel], y) }));
    const after = scene.failed ? "missed" : "after";
    for (const [line, name] of [[scene.x, "before"], [scene.after, after]]) {
      group.append(make("path", { class: name, d: this.path(line[channel], y) }));
      if (this.view[1] - this.view[0] <= 40) {
        for (const t of this.visible()) {
          const dot = { class: name, cx: this.px(t), cy: y(line[channel][t]), r: name === "before" ? 3.5 : 2.5 };
          group.append(make("circle", dot));
        }
      }
    }
    if (scene.weights) this.strip(group, scene.weights[channel], foot - 7);
    const axis = make("g", { class: "axis" });
    for (const value of ticks(low, high, many ? 3 : 5)) {
      axis.append(
        make("line", { x1: MARGIN.left, x2: MARGIN.left + this.inner, y1: y(value), y2: y(value) }),
        make("text", { x: MARGIN.left - 6, y: y(value) + 4, "text-anchor": "end" }, figure(value)));
    }
    this.svg.append(axis, group);
    if (many) this.svg.append(make("text", { class: "name", x: MARGIN.left, y: top + 14 }, scene.names[channel]));
  }

  /** Whole times in view, one to each side. */
  visible() {
    const start = Math.max(Math.floor(this.view[0]), 0);
    const stop = Math.min(Math.ceil(this.view[1]), this.length - 1);
    return Array.from({ length: Math.max(stop - start + 1, 0) }, (_, i) => start + i);
  }

  /** A line through what is in view; of very long series only each pixel's lowest and highest value. */
  path(line, y) {
    const times = this.visible();
    const perPixel = Math.ceil(times.length / (2 * Math.max(this.inner, 1)));
    const points = [];
    for (let i = 0; i < times.length; i += perPixel) {
      const chunk = times.slice(i, i + perPixel).filter((t) => line[t] !== null);
      if (chunk.length === 0) continue;
      const lowest = chunk.reduce((a, b) => (line[b] < line[a] ? b : a));
      const highest = chunk.reduce((a, b) => (line[b] > line[a] ? b : a));
      for (const t of [...new Set([lowest, highest])].sort((a, b) => a - b)) {
        points.push(`${this.px(t).toFixed(1)} ${y(line[t]).toFixed(1)}`);
      }
    }
    // A single point is drawn as a dot by a line of no length with round ends.
    return points.length ? `M${points.join("L")}${points.length === 1 ? "h0.1" : ""}` : "";
  }

  strip(group, weights, y) {
    const most = largest(weights) || 1;
    for (const t of this.visible()) {
      if (weights[t] < 0.02 * most) continue;
      const left = this.px(t - 0.5);
      group.append(make("rect", {
        class: "weight", x: left, width: this.px(t + 0.5) - left + 0.3, y, height: 6,
        "fill-opacity": (weights[t] / most).toFixed(2),
      }));
    }
  }

  timeAxis(y) {
    const axis = make("g", { class: "axis" });
    for (const t of ticks(Math.max(this.view[0], 0), this.view[1], Math.max(this.inner / 90, 2))) {
      if (!Number.isInteger(t)) continue;
      axis.append(make("text", { x: this.px(t), y: y + 16, "text-anchor": "middle" }, String(t)));
    }
    axis.append(make("text", { x: MARGIN.left - 6, y: y + 16, "text-anchor": "end" }, "t ="));
    this.svg.append(axis);
  }

  timeOf(event) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - MARGIN.left) / this.inner;
    return this.view[0] + share * (this.view[1] - this.view[0]);
  }

  hover(event) {
    const t = this.timeOf(event);
    this.point(Math.round(Math.min(Math.max(t, 0), this.length - 1)));
    if (this.grabbed === null || this.grabbed === undefined) return;
    const [from, to] = [this.px(this.grabbed), this.px(t)].sort((a, b) => a - b);
    this.selection.setAttribute("x", from);
    this.selection.setAttribute("width", to - from);
    this.selection.setAttribute("visibility", "visible");
  }

  grab(event) {
    if (event.pointerType === "touch") return;
    this.grabbed = this.timeOf(event);
    this.svg.setPointerCapture(event.pointerId);
  }

  release(event) {
    const [from, to] = [this.grabbed ?? NaN, this.timeOf(event)].sort((a, b) => a - b);
    this.grabbed = null;
    if (Math.abs(this.px(to) - this.px(from)) > 8) this.look(from, to);
    else this.selection.setAttribute("visibility", "hidden");
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.timeOf(event));
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[plainKey(event)];
    if (step) {
      const t = Math.min(Math.max((this.at ?? Math.round((this.view[0] + this.view[1]) / 2)) + step, 0), this.length - 1);
      this.at = t;
      const width = this.view[1] - this.view[0];
      if (t < this.view[0] || t > this.view[1]) this.look(t - width / 2, t + width / 2);
      else this.point(t);
    } else if (["+", "="].includes(plainKey(event))) this.zoom(0.6);
    else if (plainKey(event) === "-") this.zoom(1 / 0.6);
    else if (plainKey(event) === "0") this.look(-0.5, this.length - 0.5);
    else return;
    event.preventDefault();
  }

  /** Mark time t and tell its values. */
  point(t) {
    this.at = t;
    this.cursor.setAttribute("visibility", t === null ? "hidden" : "visible");
    if (t === null) return this.tell("Point at the chart to read values, drag over it to look closer.");
    for (const end of ["x1", "x2"]) this.cursor.setAttribute(end, this.px(t));
    const { scene } = this;
    const parts = scene.channels.slice(0, 6).map((channel) => {
      const [before, after] = [scene.x[channel][t], scene.after[channel][t]];
      const named = scene.channels.length > 1 ? `${scene.names[channel].slice(0, 20)} ` : "";
      return `${named}${figure(before)} → ${before === after ? "same" : figure(after)}`;
    });
    return this.tell(`t = ${t}: ${parts.join(" · ")}`);
  }
}

/** Colors of a difference: blue for darker, white for none, red for brighter. */
function diverging(share) {
  const end = share < 0 ? [5, 80, 160] : [178, 24, 43];
  return end.map((value) => Math.round(255 + (value - 255) * Math.min(Math.abs(share), 1)));
}

/** One picture as pixels: `color(channel values at a pixel)` gives red, green, blue. */
function pixels(height, width, color, caption, scale, tellAt) {
  const canvas = make("canvas", { width, height, tabindex: 0, role: "img", "aria-label": caption });
  canvas.style.width = `${width * scale}px`;
  const image = new ImageData(width, height);
  for (let i = 0; i < width * height; i++) image.data.set([...color(i), 255], 4 * i);
  canvas.getContext("2d").putImageData(image, 0, 0);
  let at = 0;
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * width);
    const row = Math.floor(((event.clientY - box.top) / box.height) * height);
    at = Math.min(Math.max(row, 0), height - 1) * width + Math.min(Math.max(column, 0), width - 1);
    tellAt(at);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -width, ArrowDown: width }[plainKey(event)];
    if (!step) return;
    at = Math.min(Math.max(at + step, 0), width * height - 1);
    tellAt(at);
    event.preventDefault();
  });
  return make("figure", {}, canvas, make("figcaption", {}, caption));
}

/** Before, after, difference; guide and saliency where there are. */
function drawImage(scene, [channels, height, width], scale, tell) {
  const size = height * width;
  let low = Infinity, high = -Infinity, most = 0;
  for (let c = 0; c < channels; c++) {
    for (let i = 0; i < size; i++) {
      low = Math.min(low, scene.x[c][i], scene.after[c][i]);
      high = Math.max(high, scene.x[c][i], scene.after[c][i]);
      most = Math.max(most, Math.abs(scene.after[c][i] - scene.x[c][i]));
    }
  }
  const shade = (value) => Math.round((255 * Math.min(Math.max(value - low, 0), high - low)) / (high - low || 1));
  const mean = (planes, i) => planes.reduce((sum, plane) => sum + plane[i], 0) / channels;
  const look = (planes) => (i) =>
    channels === 3 ? planes.map((plane) => shade(plane[i])) : Array(3).fill(shade(mean(planes, i)));
  const strongest = (i) => {
    const moves = scene.x.map((plane, c) => scene.after[c][i] - plane[i]);
    return moves.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
  };
  const tellAt = (i) => {
    const values = (planes) => planes.map((plane) => figure(plane[i])).join(", ");
    tell(`row ${Math.floor(i / width)}, column ${i % width}: ${values(scene.x)} → ${values(scene.after)}`);
  };
  const pictures = [
    [look(scene.x), "before"],
    [look(scene.after), scene.failed ? "best attempt" : "after"],
    [(i) => diverging(strongest(i) / (most || 1)), `difference (red: up by ${figure(most)}, blue: down)`],
  ];
  if (scene.guide) pictures.push([look(scene.guide), "guide"]);
  if (scene.weights) {
    const peak = largest(scene.weights.map(largest)) || 1;
    const weight = (i) => Math.max(...scene.weights.map((plane) => plane[i])) / peak;
    pictures.push([(i) => [255, 255 - 95 * weight(i), 255 - 255 * weight(i)].map(Math.round), "saliency"]);
  }
  const shown = pictures.map(([color, caption]) => pixels(height, width, color, caption, scale, tellAt));
  return make("div", { class: "pictures" }, ...shown);
}

/** Features before and after, the most changed first. */
function drawFeatures(scene, names, all) {
  const size = (j) => Math.abs(scene.after[j] - scene.x[j]) / (Math.max(Math.abs(scene.x[j]), Math.abs(scene.after[j])) || 1);
  const order = scene.x.map((_, j) => j).filter((j) => all || scene.mask[j]).sort((a, b) => size(b) - size(a));
  const head = ["feature", "before", "after", "change"].map((word, at) =>
    make("th", { scope: "col", class: at === 1 || at === 2 ? "number" : null }, word));
  const lines = order.map((j) => {
    const bar = make("div", { class: "change" });
    bar.style.width = `${Math.round(100 * Math.min(size(j), 1))}%`;
    const frozen = scene.frozen && scene.frozen[j] ? " (frozen)" : "";
    const moved = scene.mask[j] ? `${scene.after[j] > scene.x[j] ? "+" : "−"}${figure(Math.abs(scene.after[j] - scene.x[j]))}` : "same";
    return make("tr", {},
      make("th", { scope: "row" }, names[j] + frozen),
      make("td", { class: "number" }, figure(scene.x[j])),
      make("td", { class: "number" }, figure(scene.after[j])),
      make("td", {}, moved, scene.mask[j] ? bar : ""));
  });
  if (lines.length === 0) return make("p", { class: "missing" }, "No feature changed.");
  return make("div", { class: "wide" },
    make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines)));
}
