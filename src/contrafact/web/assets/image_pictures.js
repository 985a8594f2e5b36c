// Ways of an image: small ones to compare; in full the difference, and a slider between both ends.

import { changeColors, clamp, imageColors, make, numberText, valueRange } from "./charts.js";
import { makePicture, makeThumbnail, paint } from "./small_pictures.js";

/** Before under after, with a slider that moves the edge between them. */
export function makeWipe(shape, before, after, range) {
  const [, height, width] = shape;
  const layer = (planes, name) => {
    const canvas = make("canvas", { width, height, class: name, role: "img", "aria-label": name });
    paint(canvas, imageColors(planes, range));
    return canvas;
  };
  const over = layer(after, "after");
  const edge = make("div", { class: "edge" });
  const slider = make("input", {
    type: "range", min: 0, max: 100, step: 1, "aria-label": "From before to after",
    oninput: () => place(),
  });
  const place = () => {
    over.style.clipPath = `inset(0 0 0 ${100 - slider.value}%)`;
    edge.style.left = `${100 - slider.value}%`;
  };
  slider.value = 50;
  const stack = make("div", { class: "stack" }, layer(before, "before"), over, edge);
  stack.style.width = `${Math.max(Math.round(220 / width), 1) * width}px`;
  place();
  return make("figure", { class: "wipe" }, stack,
    make("figcaption", {}, "before", slider, "after"));
}

export class ImagePictures {
  constructor(session) {
    this.shape = session.overview.shape;
  }

  small(before, way) {
    const range = valueRange([before, way.after]);
    return make("span", { class: "sparks" },
      makeThumbnail(way.after, this.shape, range, "after"),
      this.thumbnailOfChange(before, way));
  }

  thumbnailOfChange(before, way) {
    const [, height, width] = this.shape;
    const canvas = make("canvas", { width, height, role: "img", "aria-label": "difference" });
    paint(canvas, changeColors({ before, after: way.after }));
    return canvas;
  }

  full(before, way) {
    const range = valueRange([before, way.after]);
    const [, , width] = this.shape;
    const readout = make("output", {}, "Point at a picture to read values.");
    const readAt = (pixel) => {
      const values = (planes) => planes.map((plane) => numberText(plane[pixel])).join(", ");
      const place = `row ${Math.floor(pixel / width)}, column ${pixel % width}`;
      readout.textContent = `${place}: ${values(before)} → ${values(way.after)}`;
    };
    const changes = changeColors({ before, after: way.after });
    const picture = (caption, colorAt) => makePicture(this.shape, caption, colorAt, readAt);
    return make("div", {},
      make("div", { class: "pictures" },
        makeWipe(this.shape, before, way.after, range),
        picture("before", imageColors(before, range)),
        picture("after", imageColors(way.after, range)),
        picture("difference: red brighter, blue darker", changes)),
      readout);
  }
}

/** The numbers of the pixels within a round brush; of size 1 it covers one pixel. */
export function pixelsUnder(pixel, size, [, height, width]) {
  const [row, column] = [Math.floor(pixel / width), pixel % width];
  const reach = size - 1;
  const found = [];
  for (let r = Math.max(row - reach, 0); r <= Math.min(row + reach, height - 1); r++) {
    for (let c = Math.max(column - reach, 0); c <= Math.min(column + reach, width - 1); c++) {
      if (Math.hypot(r - row, c - column) <= reach + 0.25) found.push(r * width + c);
    }
  }
  return found;
}

/** Pixels from one to another, so that a quick stroke has no gaps. */
export function pixelsBetween(from, to, width) {
  const [r0, c0] = [Math.floor(from / width), from % width];
  const [r1, c1] = [Math.floor(to / width), to % width];
  const steps = Math.max(Math.abs(r1 - r0), Math.abs(c1 - c0), 1);
  return Array.from({ length: steps + 1 }, (_, i) => {
    const share = clamp(i / steps, 0, 1);
    return Math.round(r0 + share * (r1 - r0)) * width + Math.round(c0 + share * (c1 - c0));
  });
}
