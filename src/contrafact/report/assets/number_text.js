/**
 * Format a number with so many significant digits, but never round its integer part.
 *
 * The rule of `number_text` in report/words.py, which tests compare with this function. Everything
 * else on the page arrives as finished text; only values under the pointer and the ticks of an axis
 * that can be zoomed are formatted here.
 */
function numberText(value, digits = 4) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const isWritten = (number) => number >= 1e-4 && number < 1e9;
  const wholeDigits = size >= 1 && size < 1e9 ? String(Math.trunc(size)).length : 0;
  const rounded = Number(value.toPrecision(Math.max(digits, wholeDigits)));
  return isWritten(Math.abs(rounded)) ? String(rounded) : rounded.toExponential();
}
