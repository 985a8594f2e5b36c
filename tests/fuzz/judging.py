"""Run one case and judge it: a clear error, a result that holds, or a finding."""

import contextlib
import io
import logging
import math
import numbers
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from doors import DOORS
from strange_models import MODELS
from strange_values import ARRAYS, LABELS, NO_NUMBERS, SCALARS

from global_state import changes, snapshot

#: What a user may expect from a wrong argument.
CLEAR = (ValueError, TypeError, IndexError, ImportError, FileNotFoundError)
#: CPU seconds that no call on tiny data may take.
LIMIT = 20
#: Whole numbers that may be 0 or below.
ANY_INTEGER = {
    "random_state",
    "seed",
    "stream",
    "i",
    "doubling",
    "retrainings",
    "marked",
    "a",
    "norm",
    "reach",
}
#: Numbers that must be at least 0, or above 0.
NOT_NEGATIVE = {
    "learning_rate",
    "metric_learning_rate",
    "eps",
    "sigma",
    "tolerance",
    "weight_decay",
    "l1_weight",
    "l2_weight",
    "weight",
    "minimum",
    "noise",
    "temperature",
    "beta",
    "max_coeff",
    "budget_coeff",
    "tv_coeff",
    "activation_noise",
    "fsr_weight",
    "noise_std",
    "strength",
    "window",
    "ema",
    "validation_fraction",
    "time_limit",
    "concentration",
    "width",
    "seconds",
}
#: Numbers between 0 and 1.
SHARES = {
    "tau",
    "threshold",
    "crossover_rate",
    "mutation_rate",
    "max_window",
    "max_length",
    "ema",
    "validation_fraction",
    "validation",
    "proximity",
    "noise_accuracy",
    "alpha",
    "shrinkage",
    "confidence",
    "quantile",
}


class Hang(BaseException):
    """Raised inside a call that takes too long."""


@dataclass(frozen=True)
class Case:
    """A door and the arguments that are made strange there, by the names of their values."""

    door: str
    strange: tuple[tuple[str, str], ...]

    def __str__(self):
        arguments = ", ".join(f"{name}={value}" for name, value in self.strange)
        return f"{self.door}: {arguments}"


@dataclass(frozen=True)
class Outcome:
    """What came of a case; `kind` is clear, confirmed, unclear, silent, hang or state."""

    kind: str
    detail: str = ""
    where: str = ""

    @property
    def finding(self):
        return self.kind not in ("clear", "confirmed")


def values_for(door, name):
    """Return the names of all values that a parameter is tried with."""
    names = list(SCALARS)
    if name in door.arrays:
        names += ARRAYS
    if name in door.labels:
        names += LABELS
    if name in door.models:
        names += MODELS
    return names


def make_value(name, base):
    """Make a strange value by its name; None where it cannot be made from this base."""
    if name in SCALARS:
        return SCALARS[name]()
    if name in MODELS:
        return MODELS[name]()
    return {**ARRAYS, **LABELS}[name](base)


def judge(case):
    """Run a case and judge it."""
    door = DOORS[case.door]
    given = door.base()
    for name, value in case.strange:
        base = given.get(name)
        if base is None:
            base = next((given[other] for other in door.arrays if other in given), np.zeros((3, 4)))
        try:
            given[name] = make_value(value, base)
        except (TypeError, ValueError, IndexError, RuntimeError):
            return None  # there is no such variant of this value
    fingerprints = {name: fingerprint(value) for name, value in given.items()}
    before = snapshot()
    outcome = run(door, case, given)
    found = changes(before, snapshot())
    if found:
        restore(before)
        return Outcome("state", "; ".join(found), "global state")
    for name, was in fingerprints.items():
        if was is not None and fingerprint(given[name]) != was:
            return Outcome("state", f"{name} was written to", "arguments")
    return outcome


def run(door, case, given):
    """Call the door, with a limit on its CPU time and nothing printed."""
    started = time.process_time()
    quiet = io.StringIO()
    try:
        with (
            time_limit(),
            warnings.catch_warnings(),
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
            no_log(),
        ):
            warnings.simplefilter("ignore")
            result = door.call(**given)
            complaints = door.check(given, result)
    except Hang:
        return Outcome("hang", f"more than {LIMIT} s", "hang")
    except BaseException as error:
        return judge_error(door, case, error)
    finally:
        close_figures()
    if time.process_time() - started > LIMIT:
        return Outcome("hang", f"more than {LIMIT} s", "hang")
    if complaints:
        return Outcome("silent", "; ".join(complaints), complaints[0])
    for name, value in case.strange:
        if is_wrong(door, name, value, given[name]):
            return Outcome("silent", f"{name}={value} was accepted", f"{door.name} {name}")
    return Outcome("confirmed")


@contextlib.contextmanager
def no_log():
    """Keep the tracebacks of failed rows out of the output."""
    logger = logging.getLogger("contrafact")
    handler = logging.NullHandler()
    propagate = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = propagate
        logger.removeHandler(handler)


@contextlib.contextmanager
def time_limit():
    """Raise Hang where a call takes too much CPU time; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number, frame):
        raise Hang

    earlier = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, earlier)


def judge_error(door, case, error):
    """Judge an exception: is it of contrafact's own making, and does it name the argument?"""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    where = f"{last.filename.rpartition('/')[2]}:{last.name}"
    text = f"{type(error).__name__}: {error}"
    if of_the_model(frames) or of_a_callback(frames):
        return Outcome("clear", text, where)
    raised = "/src/contrafact/" in last.filename and (last.line or "").startswith("raise")
    if not raised or not isinstance(error, CLEAR):
        entry = next((f for f in reversed(frames) if "/src/contrafact/" in f.filename), last)
        at = f"{entry.filename.rpartition('/src/contrafact/')[2]}:{entry.name} < {where}"
        return Outcome("unclear", text, f"{type(error).__name__} at {at}")
    if not names_argument(door, case, str(error)):
        return Outcome("unclear", text, f"argument not named at {where}")
    return Outcome("clear", text, where)


def of_the_model(frames):
    """Return whether an exception is the model's own, passed on."""
    entered = False
    for frame in frames:
        if "/src/contrafact/" in frame.filename:
            entered = False
        if "strange_models" in frame.filename:
            entered = True
        if frame.filename.endswith("torch/nn/modules/module.py"):
            entered = True
    return entered


def of_a_callback(frames):
    """Return whether an exception is that of a right function that a door passes, passed on."""
    files = [frame.filename.rpartition("/")[2] for frame in frames]
    called = any("/src/contrafact/" in frame.filename for frame in frames)
    return called and files[-1] in ("doors.py", "more_doors.py")


def names_argument(door, case, message):
    """Return whether a message names one of the strange arguments, or the model."""
    words = {name for name, _ in case.strange} | set(door.words)
    if any(name in door.models for name, _ in case.strange):
        words |= {"model", "module", "class", "probabilities", "estimator", "function", "predict"}
    return any(
        re.search(rf"(?<![A-Za-z]){re.escape(word)}(s|es)?(?![A-Za-z])", message) for word in words
    )


def is_wrong(door, name, value, given):
    """Return whether a value that was accepted is surely wrong."""
    if value in door.allowed:
        return False
    if name in door.arrays:
        optional = "None" in door.parameters.get(name, "")
        return value in NO_NUMBERS or (given is None and not optional)
    annotation = door.parameters.get(name, "")
    return breaks(annotation, name, given, door.ranges.get(name))


def breaks(annotation, name, value, limits):
    """Return whether a value surely breaks an annotation of plain types."""
    options = [part.strip() for part in re.split(r"\|(?![^\[]*\])", annotation) if part.strip()]
    literals = []
    for option in list(options):
        if option.startswith("Literal["):
            literals += [text.strip().strip("'\"") for text in option[8:-1].split(",")]
            options.remove(option)
    if (not options and not literals) or set(options) - {"int", "float", "bool", "str", "None"}:
        return False  # nothing is known, or more than plain types
    if value is None:
        return "None" not in options and name != "random_state"
    if isinstance(value, (bool, np.bool_)):
        return "bool" not in options
    if isinstance(value, str):
        return "str" not in options and value not in literals
    if isinstance(value, numbers.Integral):
        if not {"int", "float"} & set(options):
            return "bool" not in options or value not in (0, 1)
        return out_of_range(name, value, limits, "int" in options)
    if isinstance(value, numbers.Real):
        if "float" not in options:
            return float(value) != int(value) if math.isfinite(value) else True
        return math.isnan(value) or out_of_range(name, value, limits, False)
    return not isinstance(value, (np.ndarray, torch.Tensor)) or value.ndim > 0


def out_of_range(name, value, limits, whole):
    """Return whether a number is surely out of its range."""
    if limits is not None:
        least, most = limits
        return (least is not None and value < least) or (most is not None and value > most)
    if whole:
        return value < 0 and name not in ANY_INTEGER
    if name in SHARES and not 0 <= value <= 1:
        return True
    return name in NOT_NEGATIVE and value < 0


def fingerprint(value):
    """Return the content of an array, to see whether it was written to."""
    if isinstance(value, np.ma.MaskedArray):
        return value.data.tobytes(), value.mask.tobytes()
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.tobytes()
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    if value.device.type != "cpu" or value.is_quantized:
        return None
    return str(value.detach().tolist())


def restore(before):
    """Undo changes of the global state, so that later cases are judged alone."""
    torch.set_num_threads(before["threads of torch"])
    torch.set_default_dtype(before["default dtype of torch"])
    torch.set_grad_enabled(True)


def close_figures():
    """Close what plots opened."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
