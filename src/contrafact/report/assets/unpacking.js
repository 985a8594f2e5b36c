// Arrays that travel inside the page as text; see report/packing.py.

function decodeBytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** Unpack one Float64Array per channel. */
function unpackValues(packed) {
  if (!packed) return undefined;
  const bytes = decodeBytes(packed.data);
  const steps = packed.steps > 255 ? new Uint16Array(bytes.buffer) : bytes;
  const size = steps.length / packed.low.length;
  return packed.low.map((low, channel) => {
    const scale = (packed.high[channel] - low) / packed.steps;
    const own = steps.subarray(channel * size, (channel + 1) * size);
    return Float64Array.from(own, (step) => low + scale * step);
  });
}

/** Unpack values of which only those under `mask` travel; the others are those of `base`. */
function unpackChanged(packed, base, mask) {
  const bytes = decodeBytes(packed.data);
  const steps = packed.steps > 255 ? new Uint16Array(bytes.buffer) : bytes;
  let next = 0;
  return packed.low.map((low, channel) => {
    const scale = (packed.high[channel] - low) / packed.steps;
    const changed = mask[channel];
    return base[channel].map((value, i) => (changed[i] ? low + scale * steps[next++] : value));
  });
}

/** Unpack a list of true and false, `size` of them. */
function unpackBits(text, size) {
  const bytes = decodeBytes(text);
  return Array.from({ length: size }, (_, i) => Boolean((bytes[i >> 3] >> (i & 7)) & 1));
}

/** Cut a list over one instance of this shape into channels; a row has none. */
function splitChannels(values, shape) {
  if (shape.length === 1) return values;
  const [channels] = shape;
  const size = values.length / channels;
  return Array.from({ length: channels }, (_, c) => values.slice(c * size, (c + 1) * size));
}

/** Find stretches of true, as [first, one past the last]. */
function findRuns(mask) {
  const found = [];
  for (let i = 0; i < mask.length; i++) {
    if (!mask[i]) continue;
    const start = i;
    while (i < mask.length && mask[i]) i++;
    found.push([start, i]);
  }
  return found;
}
