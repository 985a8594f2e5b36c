// Values of one instance as planes: a list of channels, each a flat list. A row is one plane.

/** Nested values as the server has them, as planes. */
export function toPlanes(values, shape) {
  if (shape.length === 1) return [[...values]];
  return values.map((channel) => channel.flat());
}

/** Planes as the server wants them. */
export function fromPlanes(planes, shape) {
  if (shape.length === 1) return planes[0];
  if (shape.length === 2) return planes;
  const [, height, width] = shape;
  return planes.map((plane) =>
    Array.from({ length: height }, (_, row) => plane.slice(row * width, (row + 1) * width)));
}

export function copyPlanes(planes) {
  return planes.map((plane) => plane.slice());
}

/** Planes of one shape filled with a value. */
export function filledPlanes(shape, value) {
  const [channels, size] = shape.length === 1
    ? [1, shape[0]]
    : [shape[0], shape.slice(1).reduce((a, b) => a * b, 1)];
  return Array.from({ length: channels }, () => Array(size).fill(value));
}

/** Where two instances differ. */
export function differences(before, after) {
  return before.map((plane, c) => plane.map((value, i) => value !== after[c][i]));
}

export function anyTrue(planes) {
  return planes.some((plane) => plane.some(Boolean));
}

export function samePlanes(before, after) {
  return !anyTrue(differences(before, after));
}
