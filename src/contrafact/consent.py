"""Ask one question about everything in a file that can run code: whether it is trusted."""

from __future__ import annotations

RUNS_CODE = "opening it runs any code that it contains"


def require_trust(subject: str, trust: bool, why: str = RUNS_CODE, instead: str = "") -> None:
    """Refuse what can run code unless the user said that it is trusted.

    Parameters
    ----------
    subject : str
        What is to be opened, as the beginning of a sentence: "model.pkl is a pickle".
    trust : bool
        What the user said, by `trust=True` or --trust.
    why : str, optional
        How code of the file would run.
    instead : str, optional
        A sentence that says what works without trust.

    Raises
    ------
    ValueError
        If `trust` is not True. Other values that count as true are refused too: "no" is one.

    Examples
    --------
    >>> require_trust("model.pkl is a pickle", trust=True)
    """
    if trust is True:
        return
    message = (
        f"{subject}: {why}. If you made it, or trust who did, pass trust=True (--trust). {instead}"
    )
    raise ValueError(message.rstrip())
