// Ways of a series: small ones to compare, and the chosen one in full.

import { SeriesChart, make } from "./charts.js";
import { makeSparkline } from "./small_pictures.js";

const MOST_SMALL = 3;

export class SeriesPictures {
  constructor(session) {
    this.names = session.overview.names;
    this.view = null;
  }

  changedChannels(way) {
    const all = this.names.map((_, c) => c);
    const changed = all.filter((c) => way.mask[c].some(Boolean));
    return changed.length > 0 ? changed : all.slice(0, 1);
  }

  small(before, way) {
    const channels = this.changedChannels(way);
    const lines = channels.slice(0, MOST_SMALL).map((c) => makeSparkline(
      [["before", before[c]], [way.valid ? "after" : "missed", way.after[c]]],
      { shaded: way.mask[c], failed: !way.valid },
    ));
    const more = channels.length - MOST_SMALL;
    if (more > 0) lines.push(make("span", { class: "small" }, `and ${more} more channels`));
    return make("span", { class: "sparks" }, ...lines);
  }

  full(before, way) {
    const readout = make("output");
    const scene = {
      before,
      after: way.after,
      changed: way.mask,
      shaded: way.mask,
      failed: !way.valid,
      names: this.names,
      channels: this.changedChannels(way),
    };
    this.chart = new SeriesChart(scene, this.view, (words) => { readout.textContent = words; });
    const key = (name, words) => make("span", {}, make("span", { class: `swatch ${name}` }), words);
    const legend = make("div", { class: "tools legend" },
      key("before", " before"),
      key(way.valid ? "after" : "missed", " after"),
      key("changed", " what changes"));
    return make("div", {}, this.chart.box, legend, readout);
  }

  /** A chart needs its width, which it has once it is on the page. */
  afterShown() {
    this.chart.draw();
  }
}
