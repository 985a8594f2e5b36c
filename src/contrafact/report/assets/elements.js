// Elements. Text enters the page through textContent only, so no name or label can become markup.

const SVG_TAGS = [
  "svg", "g", "path", "rect", "line", "circle", "text", "defs", "pattern", "clipPath",
];

/** Make an element with attributes, listeners (on…) and children; strings become text. */
function make(tag, attributes = {}, ...children) {
  const element = SVG_TAGS.includes(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    const isAbsent = value === false || value === null || value === undefined;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (!isAbsent) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** The name of a key that was pressed alone: with others it belongs to the browser. */
function plainKey(event) {
  return event.ctrlKey || event.altKey || event.metaKey ? "" : event.key;
}

/** The value, or the nearer end of [low, high] where it lies outside. */
function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/** The largest of many numbers, however many; at least 0. */
function largest(values) {
  return values.reduce((a, b) => Math.max(a, b), 0);
}

/** The least and the largest value of several instances, each a list of channels. */
function valueRange(instances) {
  let low = Infinity;
  let high = -Infinity;
  for (const plane of instances.flat()) {
    for (const value of plane) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return [low, high];
}
