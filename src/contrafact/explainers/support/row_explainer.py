"""Base class of methods for rows, of arrays and of tables."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor
from typing_extensions import override

from ...engine import Candidates, Tags, Tasks
from ...guides import Guide, NearestUnlikeNeighbor
from ...models.classifier import Array
from .guided import FallbackExplainer
from .row_copies import copy_parts
from .row_edits import find_options
from .row_parts import RowParts

#: reference rows whose values are tried one by one where constraints rule out whole rows: so many
#: of the nearest, and of those that the model is surest of
N_SOURCES = 10
#: reference rows that more options are made of
N_ROWS = 20


class RowExplainer(FallbackExplainer):
    """Base of methods that change rows part by part, in distances without units.

    Attributes
    ----------
    parts_ : RowParts
        Parts and scales of the reference rows.
    """

    tags: ClassVar[Tags] = Tags(modalities=("row",))

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        self.parts_ = RowParts.of(X, self.space_)
        super()._fit(X, y)

    @override
    def _make_guide(self) -> Guide:
        return NearestUnlikeNeighbor(weights=self._guide_weights())

    def _guide_weights(self) -> Array | None:
        """Return weights that make the distance of guides free of units; tables have none."""
        if self.space_ is not None:
            return None
        weights: Array = self.parts_.weight.square().cpu().numpy()
        return weights

    @override
    def _option_search(self) -> Literal["one by one", "together", "own"]:
        # `find_options` looks for different sets of columns in one search.
        return "together"

    def _project_all(self, tasks: Tasks, x_cf: Tensor) -> Tensor:
        """Bring m candidates per task within the constraints, (n, m, coordinates)."""
        m = x_cf.shape[1]
        projected = tasks.repeat(m).project(x_cf.flatten(0, 1))
        return projected.reshape(x_cf.shape)

    @override
    def _fall_back(self, tasks: Tasks, x_cf: Tensor) -> tuple[Tensor, Tensor]:
        """Take the line to a guide; where constraints rule out its end, copy values one by one."""
        x_cf, fallback = super()._fall_back(tasks, x_cf)
        replaced = fallback.nonzero().flatten()
        lost = replaced[~tasks.take(replaced).accepted(x_cf[replaced])]
        if len(lost):
            failed = tasks.take(lost)
            copied, accepted = copy_parts(failed, self._find_sources(failed), self.parts_)
            x_cf[lost[accepted]] = copied[accepted]
        return x_cf, fallback

    def _find_sources(self, tasks: Tasks) -> Tensor:
        """Return reference rows of the target class, the nearest and the surest, (n, m, ...)."""
        nearest = self._find_guides(tasks, N_SOURCES).x
        p_target = self.guide_.candidate_proba_.T[tasks.target]
        n_surest = min(N_SOURCES, p_target.shape[1])
        surest = p_target.argsort(dim=1, descending=True, stable=True)[:, :n_surest]
        return torch.cat([nearest, self.guide_.candidates_[surest]], 1)

    def _finish(
        self,
        tasks: Tasks,
        pool: Tensor,
        usable: Tensor,
        **info: Tensor,
    ) -> Candidates:
        """Make options of pools of edits, and take the line to a guide where none is usable.

        Parameters
        ----------
        tasks : Tasks
            One task per instance.
        pool : Tensor of shape (n, m, coordinates)
            Edits within the constraints, best first.
        usable : Tensor of bool, shape (n, m)
            Those that the model accepts.
        **info : Tensor of shape (n, ...)
            What the method has to tell of each instance.

        Returns
        -------
        Candidates
            With `differs` and `fallback` besides.
        """
        if tasks.k > 1:
            # Whole reference rows change many columns: what is left of them may be another set.
            rows = self._project_all(tasks, self._find_guides(tasks, N_ROWS).x)
            accepted = tasks.repeat(N_ROWS).accepted(rows.flatten(0, 1))
            pool = torch.cat([pool, rows], 1)
            usable = torch.cat([usable, accepted.reshape(-1, N_ROWS)], 1)
        options = find_options(tasks, pool, usable, self.parts_)
        # A row that is searched within narrower limits has an answer; it needs no fallback.
        lost = (~usable.any(1) & (not tasks.is_narrowed)).nonzero().flatten()
        line, on_line = self._fall_back(tasks.take(lost), pool[lost, 0])
        position = torch.cat([options.position, lost])
        nothing = torch.zeros_like(options.differs)
        return tasks.take(position).candidates(
            torch.cat([options.x_cf, line]),
            differs=torch.cat([options.differs, torch.ones_like(on_line)]),
            fallback=torch.cat([nothing, on_line]),
            **{name: values[position] for name, values in info.items()},
        )
