// What can be done to a stretch of a series. Each function changes planes in place.

/** A stretch: some channels from time `start` until before `stop`. */
function forEachPoint({ channels, start, stop }, act) {
  for (const channel of channels) {
    for (let t = start; t < stop; t++) act(channel, t);
  }
}

export function shift(planes, stretch, by) {
  forEachPoint(stretch, (channel, t) => { planes[channel][t] += by[channel]; });
}

/** Stretch or flatten around the mean of the stretch. */
export function scale(planes, stretch, factor) {
  for (const channel of stretch.channels) {
    const part = planes[channel].slice(stretch.start, stretch.stop);
    const mean = part.reduce((a, b) => a + b, 0) / part.length;
    part.forEach((value, i) => {
      planes[channel][stretch.start + i] = mean + (value - mean) * factor;
    });
  }
}

/** Replace each value by a mean with its neighbors, weighted 1 2 1; both ends stay. */
export function smooth(planes, stretch) {
  for (const channel of stretch.channels) {
    const old = planes[channel].slice();
    for (let t = stretch.start + 1; t < stretch.stop - 1; t++) {
      planes[channel][t] = (old[t - 1] + 2 * old[t] + old[t + 1]) / 4;
    }
  }
}

/** Take over the values that another instance has there. */
export function paste(planes, stretch, others) {
  forEachPoint(stretch, (channel, t) => { planes[channel][t] = others[channel][t]; });
}

/** Mark the stretch in a mask, or unmark it. */
export function mark(mask, stretch, isMarked) {
  forEachPoint(stretch, (channel, t) => { mask[channel][t] = isMarked; });
}

/** Pull time t to a value; points within `reach` steps follow, the less the further they are. */
export function bend(planes, channel, t, value, reach) {
  const by = value - planes[channel][t];
  const far = 2 * reach;
  const first = Math.max(t - far, 0);
  const last = Math.min(t + far, planes[channel].length - 1);
  for (let i = first; i <= last; i++) {
    const share = reach === 0 ? 1 : Math.exp(-2 * ((i - t) / reach) ** 2);
    planes[channel][i] += by * share;
  }
}

/** Put a straight line between two points, as the pen moves from one to the other. */
export function drawBetween(planes, channel, from, to) {
  const [left, right] = from.t <= to.t ? [from, to] : [to, from];
  for (let t = left.t; t <= right.t; t++) {
    const share = right.t === left.t ? 1 : (t - left.t) / (right.t - left.t);
    planes[channel][t] = left.value + share * (right.value - left.value);
  }
  planes[channel][to.t] = to.value;
}
