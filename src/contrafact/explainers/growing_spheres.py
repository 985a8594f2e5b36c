"""Growing Spheres: sample layers around the instance, ever farther, until one reaches the class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from ..engine import Candidates, Tasks
from ..validation import Real
from .support.option_rules import COUNT, RATE, STEPS
from .support.row_explainer import RowExplainer

#: model rows left for making the answers smaller
SPARE = 200
#: random numbers of the first ball, which is halved, come from other streams than those of layers
HALVING = 2**20


@dataclass
class _Layer:
    """Samples of a layer, nearest first: x (n, m, coordinates) and which are accepted, (n, m)."""

    x: Tensor
    accepted: Tensor

    def put(self, which: Tensor, part: _Layer) -> None:
        self.x[which] = part.x
        self.accepted[which] = part.accepted


class GrowingSpheres(RowExplainer):
    """Return the nearest sample of the target class in layers of growing radius, made sparse.

        layer(a, b) = {z : a ≤ ‖(z − x) / s‖ ≤ b},    z drawn uniformly, x' the row nearest to z

    A first ball (a = 0, b = `radius`) is halved while it holds rows of class c. Then layers from
    b to `growth` · b are searched until one does. Of its rows of class c the nearest to x is
    taken. Last, columns are given back to x one by one as long as the model stays with c, then as
    much of the change of numbers as it allows. s are the scales of the columns; in tables samples
    are drawn in coordinates without units and snapped to rows, so that categories stay whole.

    Instances whose layers hold no row of the class take the straight line to their nearest unlike
    neighbor, reported in `info["fallback"]`. With k > 1 more samples of the layer are made sparse,
    and each gives back first what the ones before it change.

    Parameters
    ----------
    n_samples : int, default=50
        Samples per layer.
    radius : float, default=1
        Radius of the first ball, in scales.
    growth : float, default=1.3
        Outer over inner radius of a layer.
    max_layers : int, default=20
        Most halvings, and most layers.

    References
    ----------
    Laugel, Lesot, Marsala, Renard, Detyniecki: Comparison-based inverse classification for
    interpretability in machine learning. IPMU 2018. https://doi.org/10.1007/978-3-319-91473-2_9

    Examples
    --------
    >>> result = GrowingSpheres().fit(model, X_train[:, 0], y_train).explain(X_test[:8, 0])
    >>> result.valid.mean()
    1.0
    """

    rules = {
        "n_samples": COUNT,
        "radius": RATE,
        "growth": Real(above=1, at_most=100),
        "max_layers": STEPS,
    }
    info_keys = {
        "radius": "outer radius of the layer that held rows of the target class",
        "differs": "whether it changes another set of columns than the options before it",
        "fallback": "whether it lies on the line to the nearest unlike neighbor",
    }

    def __init__(
        self,
        n_samples: int = 50,
        radius: float = 1.0,
        growth: float = 1.3,
        max_layers: int = 20,
    ) -> None:
        self.n_samples = n_samples
        self.radius = radius
        self.growth = growth
        self.max_layers = max_layers

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [
            {"n_samples": 10, "growth": 1.5, "max_layers": 6},
            {"n_samples": 5, "radius": 0.2, "growth": 2.0, "max_layers": 4},
        ]

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        instances = tasks.per_instance()
        size = (len(instances), self.n_samples)
        found = _Layer(
            x=instances.x[:, None].repeat(1, self.n_samples, 1),
            accepted=torch.zeros(size, dtype=torch.bool, device=instances.x.device),
        )
        inner = self._halve(instances, found)
        outer = self._grow(instances, inner, found)
        instances.finished(len(instances))
        nearest = slice(2 * tasks.k)
        return self._finish(
            instances,
            found.x[:, nearest],
            found.accepted[:, nearest],
            radius=outer,
        )

    def _halve(self, tasks: Tasks, found: _Layer) -> Tensor:
        """Halve balls while they hold rows of the class; returns the radii that hold none, (n,)."""
        radius = torch.full((len(tasks),), self.radius, dtype=torch.float64, device=tasks.x.device)
        position = torch.arange(len(tasks), device=tasks.x.device)
        for step in range(self.max_layers):
            position = position[tasks.take(position).affords(self.n_samples + SPARE)]
            if len(position) == 0:
                break
            working = tasks.take(position)
            outer = radius[position]
            ball = self._search(working, torch.zeros_like(outer), outer, HALVING + step)
            held = ball.accepted.any(1)
            found.put(position[held], _Layer(ball.x[held], ball.accepted[held]))
            position = position[held]
            radius[position] /= 2
        return radius

    def _grow(self, tasks: Tasks, inner: Tensor, found: _Layer) -> Tensor:
        """Search layers until one holds rows of the class; returns its outer radius, (n,)."""
        outer = inner.clone()
        position = torch.arange(len(tasks), device=tasks.x.device)
        for step in range(self.max_layers):
            position = position[tasks.take(position).affords(self.n_samples + SPARE)]
            if len(position) == 0:
                break
            inside = outer[position]
            outer[position] = self.growth * inside
            layer = self._search(tasks.take(position), inside, outer[position], step)
            held = layer.accepted.any(1)
            found.put(position[held], _Layer(layer.x[held], layer.accepted[held]))
            position = position[~held]
        return outer

    def _search(self, tasks: Tasks, inner: Tensor, outer: Tensor, stream: int) -> _Layer:
        """Draw samples of a layer for every task and ask the model about them."""
        x = self._draw(tasks, inner, outer, stream)
        x = self._project_all(tasks, x)
        asking = tasks.repeat(self.n_samples)
        flat = x.flatten(0, 1)
        accepted = asking.accepts(flat, asking.ask(flat)).reshape(x.shape[:2])
        distance = self.parts_.distances(x, tasks.x[:, None]).sum(2)
        order = distance.masked_fill(~accepted, torch.inf).argsort(dim=1, stable=True)
        entry = torch.arange(len(x), device=x.device)[:, None]
        return _Layer(x[entry, order], accepted[entry, order])

    def _draw(self, tasks: Tasks, inner: Tensor, outer: Tensor, stream: int) -> Tensor:
        """Draw points uniformly between two spheres, (n, samples, coordinates)."""
        d = tasks.shape[0]
        shape = (len(tasks), self.n_samples, d)
        direction = tasks.normal(self.n_samples * d, stream).reshape(shape).double()
        direction = direction / direction.norm(dim=2, keepdim=True).clamp_min(1e-12)
        share = tasks.uniform(self.n_samples, stream).double()
        # The volume within radius r grows with r^d; by the ratio, so that no power overflows.
        empty = ((inner / outer) ** d)[:, None]
        radius = outer[:, None] * (empty + share * (1 - empty)) ** (1 / d)
        step = (radius[:, :, None] * direction).to(tasks.x)
        if tasks.space is None:
            step = step / self.parts_.weight
        points: Tensor = tasks.x[:, None] + step
        return points
