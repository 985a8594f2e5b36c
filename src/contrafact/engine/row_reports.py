"""What a method may say of its tasks on the way: refused, broken down, finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from .oracle import Oracle


class RowReports:
    """Report on the instances of some tasks; a base of `Tasks`.

    Attributes
    ----------
    oracle : Oracle
        The request.
    row : Tensor of shape (n,)
        Instance each task belongs to.
    is_narrowed : bool
        Whether limits of their own apply to the tasks, see `Tasks.keeping`.
    """

    if TYPE_CHECKING:
        oracle: Oracle
        row: Tensor

        @property
        def is_narrowed(self) -> bool:
            """Whether limits of their own apply to the tasks."""

    def refuse(self, which: Tensor, reason: str) -> None:
        """Say why not all that was asked can be done for some tasks.

        Searches within narrower limits than those of the request say nothing about the request.

        Parameters
        ----------
        which : Tensor of bool, shape (n,), or of positions
            The tasks.
        reason : str
            Ends in the message of the result.
        """
        if not self.is_narrowed:
            self.oracle.states.refuse(self.row[which], reason)

    def remark(self, which: Tensor, text: str) -> None:
        """Add a remark to the message of some tasks, whatever becomes of them.

        Parameters
        ----------
        which : Tensor of bool, shape (n,), or of positions
            The tasks.
        text : str
            Ends in the message of the result.
        """
        for row in self.row[which].tolist():
            self.oracle.states.remark[row] = text

    def fail(
        self,
        which: Tensor,
        reason: str,
        exception: Exception | None = None,
    ) -> None:
        """Mark tasks as broken down; they end with the status `error`.

        Parameters
        ----------
        which : Tensor of bool, shape (n,), or of positions
            The tasks.
        reason : str
            Ends in the message of the result.
        exception : Exception, optional
            The exception behind it.
        """
        self.oracle.states.fail(self.row[which], reason, exception)

    def finished(self, count: int) -> None:
        """Report progress: so many tasks need no more work."""
        self.oracle.progress(count)
