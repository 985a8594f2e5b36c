// Images as pixels, and rows as a table.

const LOWER_COLOR = [5, 80, 160];
const HIGHER_COLOR = [178, 24, 43];

/** The color of a difference from -1 to 1: blue for darker, white for none, red for brighter. */
function differenceColor(share) {
  const end = share < 0 ? LOWER_COLOR : HIGHER_COLOR;
  const strength = Math.min(Math.abs(share), 1);
  return end.map((value) => Math.round(255 + (value - 255) * strength));
}

/** Draw one picture: `colorAt(pixel)` gives red, green and blue, `readAt(pixel)` tells values. */
function drawPicture({ height, width, scale, caption, colorAt, readAt }) {
  const canvas = make("canvas", { width, height, tabindex: 0, role: "img", "aria-label": caption });
  canvas.style.width = `${width * scale}px`;
  const image = new ImageData(width, height);
  for (let pixel = 0; pixel < width * height; pixel++) {
    image.data.set([...colorAt(pixel), 255], 4 * pixel);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  let current = 0;
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * width);
    const row = Math.floor(((event.clientY - box.top) / box.height) * height);
    current = clamp(row, 0, height - 1) * width + clamp(column, 0, width - 1);
    readAt(current);
  });
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -width, ArrowDown: width };
    const move = moves[plainKey(event)];
    if (!move) return;
    current = clamp(current + move, 0, width * height - 1);
    readAt(current);
    event.preventDefault();
  });
  return make("figure", {}, canvas, make("figcaption", {}, caption));
}

/** A function from pixel to color: three channels in color, others by their mean in gray. */
function imageColors(planes, [low, high]) {
  const span = high - low || 1;
  const shade = (value) => Math.round((255 * clamp(value - low, 0, span)) / span);
  if (planes.length === 3) return (pixel) => planes.map((plane) => shade(plane[pixel]));
  return (pixel) => {
    const mean = planes.reduce((sum, plane) => sum + plane[pixel], 0) / planes.length;
    return Array(3).fill(shade(mean));
  };
}

/** A function from pixel to color: the change of the channel that changed most. */
function changeColors(scene) {
  const changes = scene.before.map((plane, channel) => {
    const after = scene.after[channel];
    return plane.map((value, pixel) => after[pixel] - value);
  });
  const strongest = (pixel) =>
    changes.map((plane) => plane[pixel]).reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
  const most = largest(changes.map((plane) => largest(plane.map(Math.abs)))) || 1;
  return (pixel) => differenceColor(strongest(pixel) / most);
}

/** A function from pixel to color: white where nothing mattered, orange where most did. */
function saliencyColors(planes) {
  const peak = largest(planes.map(largest)) || 1;
  return (pixel) => {
    const weight = Math.max(...planes.map((plane) => plane[pixel])) / peak;
    return [255, 255 - 95 * weight, 255 - 255 * weight].map(Math.round);
  };
}

/** Draw before, after and difference; guide and saliency where there are. */
function drawImage(scene, [, height, width], scale, tell) {
  const range = valueRange([scene.before, scene.after]);
  const readAt = (pixel) => {
    const place = `row ${Math.floor(pixel / width)}, column ${pixel % width}`;
    const values = (planes) => planes.map((plane) => numberText(plane[pixel])).join(", ");
    tell(`${place}: ${values(scene.before)} → ${values(scene.after)}`);
  };
  const pictures = [
    { caption: "before", colorAt: imageColors(scene.before, range) },
    { caption: scene.legend, colorAt: imageColors(scene.after, range) },
    { caption: scene.difference, colorAt: changeColors(scene) },
  ];
  if (scene.guide) pictures.push({ caption: "guide", colorAt: imageColors(scene.guide, range) });
  if (scene.saliency) {
    pictures.push({ caption: "saliency", colorAt: saliencyColors(scene.saliency) });
  }
  const common = { height, width, scale, readAt };
  const drawn = pictures.map((picture) => drawPicture({ ...picture, ...common }));
  return make("div", { class: "pictures" }, ...drawn);
}

/** A line of the table of features. */
function featureLine(name, { before, after, change, share }, failed) {
  const cell = make("td", {}, change);
  if (share !== undefined) {
    const bar = make("div", { class: failed ? "change missed" : "change" });
    bar.style.width = `${100 * share}%`;
    cell.append(bar);
  }
  return make("tr", {},
    make("th", { scope: "row" }, name),
    make("td", { class: "number" }, before),
    make("td", { class: "number" }, after),
    cell);
}

/** Make a table of the changed features, the most changed first; of all features if asked. */
function drawFeatures(scene, names, all) {
  const frozenMark = (j) => (scene.frozen?.[j] ? " (frozen)" : "");
  const lines = scene.features.map((line) =>
    featureLine(names[line.feature] + frozenMark(line.feature), line, scene.failed));
  if (all) {
    const changed = new Set(scene.features.map((line) => line.feature));
    scene.before.forEach((text, j) => {
      if (changed.has(j)) return;
      const same = { before: text, after: text, change: "same" };
      lines.push(featureLine(names[j] + frozenMark(j), same));
    });
  }
  if (lines.length === 0) return make("p", { class: "missing" }, "No feature changed.");
  const head = make("tr", {},
    make("th", { scope: "col" }, "feature"),
    make("th", { scope: "col", class: "number" }, "before"),
    make("th", { scope: "col", class: "number" }, "after"),
    make("th", { scope: "col" }, "change"));
  return make("div", { class: "wide" },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...lines)));
}
