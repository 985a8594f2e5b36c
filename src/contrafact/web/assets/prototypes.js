// Models that decide by prototypes: the nearest ones, and what counts in the comparison.

import { make, numberText, valueRange } from "./charts.js";
import { toPlanes } from "./planes.js";
import { makeSparkline, makeThumbnail } from "./small_pictures.js";
import { cellText } from "./words.js";

const MOST_LINES = 6;

export class Prototypes {
  constructor(session) {
    this.session = session;
    this.list = make("div", { class: "cards" });
    this.box = make("section", { class: "prototypes", "aria-label": "Prototypes", hidden: true },
      make("h2", {}, "What the model compares it with"),
      make("p", { class: "small" }, "The model decides for the class of the nearest of these "
        + "typical examples, which it learned. Where the orange strip is strong, differences count "
        + "most."),
      this.list);
    session.on("instance", () => this.fill());
  }

  fill() {
    const { instance, overview } = this.session;
    const { prototypes } = instance;
    this.box.hidden = !prototypes?.length;
    if (this.box.hidden) return;
    this.list.replaceChildren(...prototypes.map((prototype) => make("div", { class: "card still" },
      make("span", { class: "caption" }, make("strong", {}, overview.classes[prototype.label]),
        make("span", {}, prototype.distance_text)),
      this.picture(prototype))));
  }

  picture(prototype) {
    const { overview, original } = this.session;
    const planes = toPlanes(prototype.values, overview.shape);
    const weights = prototype.relevance ? toPlanes(prototype.relevance, overview.shape) : null;
    if (overview.kind === "series") {
      return make("span", { class: "sparks" }, ...planes.map((plane, c) =>
        makeSparkline([["before", original[c]], ["guide", plane]], { weights: weights?.[c] })));
    }
    if (overview.kind === "image") {
      return make("span", { class: "sparks" },
        makeThumbnail(planes, overview.shape, valueRange([planes]), "prototype"));
    }
    return this.lines(planes[0], weights?.[0]);
  }

  /** The columns that count most, with their values. */
  lines(values, weights) {
    const { columns } = this.session.overview;
    const order = values.map((_, j) => j);
    if (weights) order.sort((a, b) => weights[b] - weights[a]);
    return make("span", { class: "sparks" }, ...order.slice(0, MOST_LINES).map((j) => {
      const share = weights ? ` (weight ${numberText(weights[j], 2)})` : "";
      const text = cellText(columns[j], values[j]);
      return make("span", { class: "change-line" }, `${columns[j].name}: ${text}${share}`);
    }));
  }
}
