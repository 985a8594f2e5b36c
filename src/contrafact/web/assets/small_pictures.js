// Small pictures without axes, for things side by side.

import { drawPicture, findRuns, imageColors, make, valueRange } from "./charts.js";

const WIDTH = 240;
const HEIGHT = 72;
const STRIP = 6;
const MOST_POINTS = 400;

/** The path of a line; of long ones every n-th point. */
function pathOf(line, [low, high], height) {
  const every = Math.ceil(line.length / MOST_POINTS);
  const points = [];
  for (let t = 0; t < line.length; t += every) {
    const x = ((t + 0.5) / line.length) * WIDTH;
    const y = 2 + (1 - (line[t] - low) / (high - low || 1)) * (height - 4);
    points.push(`${x.toFixed(1)} ${y.toFixed(1)}`);
  }
  return `M${points.join("L")}`;
}

/** Lines over each other, as [class, values]; stretches shaded, weights as a strip below. */
export function makeSparkline(lines, { shaded, weights, failed } = {}) {
  const svg = make("svg", {
    class: "spark",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  const height = HEIGHT - (weights ? STRIP + 2 : 0);
  const { length } = lines[0][1];
  const x = (t) => (t / length) * WIDTH;
  for (const [start, stop] of shaded ? findRuns(shaded) : []) {
    const place = { x: x(start), width: Math.max(x(stop) - x(start), 1), y: 0, height };
    svg.append(make("rect", { class: failed ? "changed missed" : "changed", ...place }));
  }
  const range = valueRange([lines.map(([, values]) => values)]);
  for (const [name, values] of lines) {
    svg.append(make("path", { class: name, d: pathOf(values, range, height) }));
  }
  if (weights) {
    const most = Math.max(...weights) || 1;
    weights.forEach((weight, t) => {
      const place = { x: x(t), width: x(1) + 0.3, y: HEIGHT - STRIP, height: STRIP };
      const opacity = Math.max(weight / most, 0).toFixed(2);
      svg.append(make("rect", { class: "weight", ...place, "fill-opacity": opacity }));
    });
  }
  return svg;
}

/** An image in a few pixels, without reading. */
export function makeThumbnail(planes, [, height, width], range, caption) {
  const canvas = make("canvas", { width, height, role: "img", "aria-label": caption });
  paint(canvas, imageColors(planes, range));
  return canvas;
}

/** Fill a canvas by a function from pixel to color. */
export function paint(canvas, colorAt) {
  const { width, height } = canvas;
  const image = new ImageData(width, height);
  for (let pixel = 0; pixel < width * height; pixel++) {
    image.data.set([...colorAt(pixel), 255], 4 * pixel);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** A picture that can be read with pointer and arrow keys. */
export function makePicture(shape, caption, colorAt, readAt) {
  const [, height, width] = shape;
  const scale = Math.max(Math.round(220 / width), 1);
  return drawPicture({ height, width, scale, caption, colorAt, readAt });
}
