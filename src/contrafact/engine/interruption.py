"""Interruption: Ctrl-C ends a search as a deadline does, so that finished rows are kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

#: what the message of a row says that was not reached before the interruption
INTERRUPTED = "the search was interrupted"


class Interruption:
    """Say whether the user wants a search to end.

    Attributes
    ----------
    requested : bool
        Set by the first Ctrl-C, or by another thread; deadlines made within the context look at it.
    """

    def __init__(self) -> None:
        self.requested = False


#: the interruption that requests made here have to heed
CURRENT: ContextVar[Interruption | None] = ContextVar("interruption", default=None)


@contextmanager
def interruptible(tell: Callable[[], None] = lambda: None) -> Iterator[Interruption]:
    """Let Ctrl-C end searches within the context; a second one raises KeyboardInterrupt.

    Signals reach the main thread only: in any other the context changes nothing.

    Parameters
    ----------
    tell : function, optional
        Called at the first Ctrl-C.

    Yields
    ------
    Interruption
        Says whether Ctrl-C was pressed.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def request(number: int, frame: FrameType | None) -> None:
        interruption.requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tell()

    previous = signal.signal(signal.SIGINT, request)
    token = CURRENT.set(interruption)
    try:
        yield interruption
    finally:
        CURRENT.reset(token)
        signal.signal(signal.SIGINT, previous)


@contextmanager
def heeding(interruption: Interruption) -> Iterator[None]:
    """Let searches within the context end when an interruption is requested from elsewhere.

    Parameters
    ----------
    interruption : Interruption
        Whoever holds it sets `requested`, from any thread.
    """
    token = CURRENT.set(interruption)
    try:
        yield
    finally:
        CURRENT.reset(token)
