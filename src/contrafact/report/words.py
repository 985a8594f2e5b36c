"""Text for values and for single counterfactuals: the only place where the report formats numbers.

Pictures, the page and the command line use these functions, so one value reads the same everywhere.
The page receives finished strings; only what depends on the pointer or the zoom is formatted in the
browser, by `assets/number_text.js`, which follows the rule of `number_text`.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context
from typing import Any

import numpy as np

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from .grammar import one_line, shorten

#: stands for a value that does not exist
MISSING = "–"
#: the end of an engine's message about a row that was not reached
BEST_PROBABILITY = re.compile(r"best P\(.*\) = [\d.]+$", re.DOTALL)
#: numbers from here up to LARGE are written without an exponent
SMALL = 1e-4
LARGE = 1e9


def probability_text(p: float, digits: int = 2) -> str:
    """Format a probability, never as 0 or 1 unless it is exactly that.

    Parameters
    ----------
    p : float
        The probability; NaN where the model gave none.
    digits : int, default=2
        Number of decimals.

    Returns
    -------
    str
        As in "0.50", "<0.01", ">0.99" or "unknown".

    Examples
    --------
    >>> probability_text(0.625), probability_text(0.9999), probability_text(0.5004, 4)
    ('0.62', '>0.99', '0.5004')
    """
    if np.isnan(p):
        return "unknown"
    least = 10.0**-digits
    if 0 < p < least / 2:
        return f"<{least:g}"
    if 1 - least / 2 <= p < 1:
        return f">{1 - least:g}"
    return f"{p:.{digits}f}"


def digits_apart(proba: Array) -> int:
    """Return how many decimals tell the likeliest class from the next: 2, 3 or 4.

    Parameters
    ----------
    proba : ndarray of shape (n_classes,)
        The model's probabilities for one instance.
    """
    ordered = np.sort(np.nan_to_num(proba))
    first = ordered[-1]
    second = ordered[-2]
    for digits in (2, 3):
        if f"{first:.{digits}f}" != f"{second:.{digits}f}":
            return digits
    return 4


def class_probability(proba: Array, column: int) -> str:
    """Format the probability of one class, with enough decimals to see which class leads.

    Parameters
    ----------
    proba : ndarray of shape (n_classes,)
        The model's probabilities for one instance.
    column : int
        Position of the class.

    Returns
    -------
    str
        As `probability_text` gives it.
    """
    return probability_text(proba[column], digits_apart(proba))


def target_probability(result: Counterfactuals, i: int) -> str:
    """Say the probability of row i's target after the change: "P('point') = 0.44", or "< 0.01"."""
    column = column_of(result, result.target[i])
    return probability_phrase(result.target[i], result.cf_proba[i], column)


def probability_phrase(label: Any, proba: Array, column: int) -> str:
    """Say the probability of a class: "P('point') = 0.44", or "< 0.01".

    Parameters
    ----------
    label : object
        The class.
    proba : ndarray of shape (n_classes,)
        The model's probabilities for one instance.
    column : int
        Position of the class.
    """
    text = class_probability(proba, column)
    relation = text[0] if text[0] in "<>" else "="
    return f"P({label_text(label)}) {relation} {text.lstrip('<>')}"


def percent_text(fraction: float) -> str:
    """Format a fraction in percent: 0 % is none of it and 100 % is all of it.

    Parameters
    ----------
    fraction : float
        Between 0 and 1; NaN where there is none.

    Returns
    -------
    str
        Whole percents; below 1 % one significant digit, above 99 % one decimal, rounded down.

    Examples
    --------
    >>> percent_text(0.0004), percent_text(0.117), percent_text(0.9999), percent_text(1.0)
    ('0.04 %', '12 %', '99.9 %', '100 %')
    """
    if not np.isfinite(fraction):
        return MISSING
    if 0 < fraction < 0.01:
        return f"{100 * fraction:.1g} %"
    if 0.99 < fraction < 1:
        return f"{np.floor(1000 * fraction) / 10:.1f} %"
    return f"{100 * fraction:.0f} %"


def number_text(value: float, digits: int = 4) -> str:
    """Format a number with so many significant digits, but never round its integer part.

    Ties are rounded away from zero, as browsers do, so that `assets/number_text.js` agrees.

    Parameters
    ----------
    value : float
        Any number; NaN and infinity where there is none.
    digits : int, default=4
        Significant digits; more where the integer part has more, up to 1e9.

    Returns
    -------
    str
        Without trailing zeros, and with an exponent below 1e-4 and from 1e9 on.

    Examples
    --------
    >>> number_text(0.123456), number_text(48123.4), number_text(2.0), number_text(1.5e-7)
    ('0.1235', '48123', '2', '1.5e-7')
    """
    value = float(value)
    if not np.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    if 1 <= abs(value) < LARGE:
        digits = max(digits, len(str(int(abs(value)))))
    rounding = Context(prec=digits, rounding=ROUND_HALF_UP)
    rounded = rounding.create_decimal_from_float(value).normalize(rounding)
    notation = "f" if SMALL <= abs(float(rounded)) < LARGE else "e"
    return f"{rounded:{notation}}"


def different_texts(before: float, after: float) -> tuple[str, str]:
    """Format two different numbers with as many digits as it takes to tell them apart.

    Parameters
    ----------
    before, after : float
        The numbers.

    Returns
    -------
    tuple of two str
        Both numbers, as `number_text` gives them.

    Examples
    --------
    >>> different_texts(0.25, 0.2500001)
    ('0.25', '0.2500001')
    """
    texts = (number_text(before), number_text(after))
    for digits in range(5, 18):
        if texts[0] != texts[1]:
            break
        texts = (number_text(before, digits), number_text(after, digits))
    return texts


def label_text(label: Any, limit: int = 30) -> str:
    """Write a label as in code, on one line.

    Parameters
    ----------
    label : object
        The label of a class; NumPy scalars are shown as Python values.
    limit : int, default=30
        The largest number of characters.

    Returns
    -------
    str
        As in "'gun'" or "3".
    """
    plain = label.item() if isinstance(label, np.generic) else label
    return shorten(repr(plain), limit)


def name_of(result: Counterfactuals, j: int, limit: int = 40) -> str:
    """Return the name of feature or channel j, or its number where it has none.

    Parameters
    ----------
    result : Counterfactuals
        The result, whose `names` are used.
    j : int
        Position of the feature or channel.
    limit : int, default=40
        The largest number of characters.

    Returns
    -------
    str
        As in "glucose" or "channel 2".
    """
    part = "feature" if result.modality == "row" else "channel"
    number = f"{part} {j}"
    if result.names is None:
        return number
    return one_line(result.names[j], limit) or number


def column_of(result: Counterfactuals, label: Any) -> int:
    """Return the position of a label among the classes of a result.

    Parameters
    ----------
    result : Counterfactuals
        The result, whose `classes` are used.
    label : object
        One of them.

    Returns
    -------
    int
        The column of `proba` that belongs to it.
    """
    return int(result.classes.tolist().index(label.item()))


def instance_name(result: Counterfactuals, i: int) -> str:
    """Name the instance of counterfactual i by its number or label: "row 12", "row P-1042"."""
    label = result.row_labels[i]
    text = " / ".join(map(str, label)) if isinstance(label, tuple) else label
    return f"row {one_line(text, 40)}"


def row_name(result: Counterfactuals, i: int) -> str:
    """Name counterfactual i: the row of the input, and which one where the row has several.

    As in "row 12", "row 12 (1 of 3)", or of a table "row P-1042 (option 1 of 3)".
    """
    siblings = np.flatnonzero(result.source == result.source[i]).tolist()
    name = instance_name(result, i)
    if len(siblings) == 1:
        return name
    option = "option " if result.table is not None else ""
    return f"{name} ({option}{siblings.index(i) + 1} of {len(siblings)})"


def note(result: Counterfactuals, i: int) -> str:
    """Say what went wrong in row i, or what else there is to know; empty when all is well.

    As in "not reached (budget): stopped after 100 model rows".
    """
    status = str(result.status[i])
    message = str(result.message[i])
    if result.valid[i]:
        return message if status in ("valid", "already_target") else f"{status}: {message}"
    reason = message.removeprefix("not reached").lstrip(" ;:,")
    # The engine rounds in its own way; here a probability reads as everywhere else.
    reason = BEST_PROBABILITY.sub(lambda _: f"best {target_probability(result, i)}", reason)
    missed = f"not reached ({status})"
    return f"{missed}: {reason}" if reason else missed


def over_instances(n: int, already: int) -> str:
    """Say over how many instances a mean is, and how many had the target class before.

    Parameters
    ----------
    n : int
        Number of instances in the mean.
    already : int
        How many of them were in the target class before anything was changed.

    Returns
    -------
    str
        To follow "mean" or "median".

    Examples
    --------
    >>> over_instances(40, 3)
    'over 40 instances, 3 of them already in the target class'
    >>> over_instances(40, 0)
    'over 40 instances, none of them already in the target class'
    """
    if n == 1:
        return f"over 1 instance, {'' if already else 'not '}already in the target class"
    some = {0: "none", n: "all"}.get(already, str(already))
    return f"over {n} instances, {some} of them already in the target class"
