"""Codes of instances by an autoencoder, and candidates from moved codes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import Self

from ...engine import Tasks
from ...models.eval_mode import in_eval_mode
from ...nn.autoencoder_training import fit_autoencoder
from ...nn.autoencoders import Autoencoder
from ...numerics import broadcast_rows
from ...search import Adam, Point, Stop, minimize, smallest_level
from ...search.gradients import Decode

#: instances encoded or decoded at once
BATCH = 1024


@dataclass(frozen=True)
class LatentSpace:
    """An autoencoder and the codes of the reference data.

    Parameters
    ----------
    autoencoder : Autoencoder
        Encoder E and decoder D.
    codes : Tensor of shape (n, latent)
        E(x) of the reference rows.
    spread : Tensor of shape (latent,)
        Standard deviation of the codes; 1 where all are equal.
    plane : Tensor of shape (latent, 2)
        The two directions in which the codes vary most, for plots.
    """

    autoencoder: Autoencoder
    codes: Tensor
    spread: Tensor
    plane: Tensor

    @classmethod
    def fit(
        cls,
        autoencoder: Autoencoder | str | None,
        X: Tensor,
        max_epochs: int,
    ) -> Self:
        """Train an autoencoder on X, unless a trained one is given.

        Parameters
        ----------
        autoencoder : Autoencoder, str or None
            A trained one, or the kind to train.
        X : Tensor of shape (n, *shape)
            Reference rows.
        max_epochs : int
            Largest number of training epochs.

        Returns
        -------
        LatentSpace
            With the codes of X.
        """
        if autoencoder is None or isinstance(autoencoder, str):
            autoencoder = fit_autoencoder(autoencoder, X, max_epochs=max_epochs)
        elif autoencoder.shape != tuple(X.shape[1:]):
            raise ValueError(
                f"autoencoder takes instances of shape {autoencoder.shape}; X holds "
                f"{tuple(X.shape[1:])}."
            )
        autoencoder = in_eval_mode(autoencoder, "autoencoder")
        codes = _encode(autoencoder, X)
        spread = codes.std(0, correction=0)
        negligible = 1e-6 * float(spread.max())
        spread = torch.where(spread > negligible, spread, 1.0)
        _, _, axes = torch.linalg.svd(codes - codes.mean(0), full_matrices=False)
        plane = codes.new_zeros(codes.shape[1], 2)
        plane[:, : min(2, len(axes))] = axes[:2].T
        return cls(autoencoder, codes, spread, plane)

    def nearer(self, tasks: Tasks, one: Tensor, other: Tensor) -> Tensor:
        """Return of two candidates of each task the one with less change; `other` where equal."""
        unit = self.unit.to(one.dtype)
        size_of_one, size_of_other = (
            ((x_cf - tasks.x) / unit).flatten(1).square().sum(1) for x_cf in (one, other)
        )
        return torch.where(broadcast_rows(size_of_one < size_of_other, one), one, other)

    @property
    def unit(self) -> Tensor:
        """What the autoencoder's scaling takes as 1, per channel, shaped to divide instances by."""
        std = self.autoencoder.scaling.std
        return std.view(-1, *[1] * (len(self.autoencoder.shape) - 1))

    def encode(self, x: Tensor) -> Tensor:
        """Return the codes of instances, (n, latent)."""
        return _encode(self.autoencoder, x)

    def decode(self, z: Tensor) -> Tensor:
        """Return the instances of codes, (n, *shape); gradients pass."""
        return self.autoencoder.decode(z)

    def starts(self, tasks: Tasks, z: Tensor) -> Tensor:
        """Return the code for the first counterfactual of an instance, points near it for others.

        Parameters
        ----------
        tasks : Tasks
            What to find counterfactuals for.
        z : Tensor of shape (n, latent)
            Codes of their instances.

        Returns
        -------
        Tensor of shape (n, latent)
            Where the searches start.
        """
        draws = tasks.normal(z.shape[1], tasks.rank, stream=1).to(z)
        return torch.where((tasks.rank > 0)[:, None], z + self.spread * draws, z)

    def attach_base(self, tasks: Tasks, base: Tensor, residual: bool) -> Tasks:
        """Attach the codes that stand for no movement, and with `residual` what they decode to."""
        tasks = tasks.attach(base=base)
        if not residual:
            return tasks
        with torch.no_grad():
            decoded = torch.cat([self.decode(part) for part in base.split(BATCH)])
        return tasks.attach(decoded_base=decoded)

    def candidates(self, tasks: Tasks, z: Tensor, residual: bool) -> Tensor:
        """Make candidates of moved codes: D(z), or with `residual` x + D(z) − D(base).

        The second leaves out what the autoencoder loses: a code that has not moved is no change.

        Parameters
        ----------
        tasks : Tasks
            With a base, see `attach_base`.
        z : Tensor of shape (n, latent)
            One code each.
        residual : bool
            Which of the two.

        Returns
        -------
        Tensor of shape (n, *shape)
            Candidates within the constraints; gradients pass.
        """
        x = tasks.x
        x_cf = self.decode(z)
        if residual:
            # A batch of another size rounds differently: where z has not moved, its own D(z) is
            # subtracted.
            has_moved = broadcast_rows((z != tasks["base"]).any(1), x_cf)
            decoded_base = torch.where(
                has_moved,
                tasks["decoded_base"],
                x_cf.detach(),
            )
            x_cf = x + (x_cf - decoded_base).to(x.dtype)
        return tasks.project(x_cf.to(x.dtype))


def bring_nearer(
    tasks: Tasks,
    decode: Decode,
    code: Tensor,
    latent: LatentSpace,
    steps: int,
) -> Tensor:
    """Move codes whose candidates are accepted so that these come nearer to the instances.

        minimize  rms((x' − x) / unit) − 0.1 log P(c | x')   over the code, by Adam

    Parameters
    ----------
    tasks : Tasks
        What the candidates are for.
    decode : function of (tasks, code)
        Makes candidates.
    code : Tensor of shape (n, latent)
        Codes of accepted candidates.
    latent : LatentSpace
        Gives the units of instances, and of codes: a step is a tenth of their spread.
    steps : int
        Number of steps.

    Returns
    -------
    Tensor of shape (n, latent)
        The codes of lowest loss among those accepted; as given where there are none.
    """
    spread = latent.spread.to(code)

    def decode_scaled(tasks: Tasks, scaled: Tensor) -> Tensor:
        return decode(tasks, spread * scaled)

    def loss(point: Point) -> Tensor:
        unit = latent.unit.to(point.x_cf.dtype)
        change = ((point.x_cf - point.tasks.x) / unit).flatten(1)
        rms = change.square().mean(1).add(1e-12).sqrt()
        return rms - 0.1 * point.log_p_target

    stop = Stop(tasks.confidence or 0.0, steps, 0.0, steps, consecutive=False)
    found = minimize(tasks, code / spread, decode_scaled, loss, Adam(0.1), stop)
    return torch.where(found.reached[:, None], spread * found.code, code)


def shorten(
    tasks: Tasks,
    decode: Decode,
    code: Tensor,
    steps: int = 6,
) -> Tensor:
    """Find the first candidate the model accepts on the line from the base to a code.

    Parameters
    ----------
    tasks : Tasks
        With a base, see `LatentSpace.attach_base`.
    decode : function of (tasks, code)
        Makes candidates.
    code : Tensor of shape (n, latent)
        Where the lines end.
    steps : int, default=6
        Bisections; the point is found to within 2^-steps of the line.

    Returns
    -------
    Tensor of shape (n, *shape)
        The candidates.
    """
    top = 2**steps

    def between(tasks: Tasks, level: Tensor) -> Tensor:
        share = (level.to(code) / top)[:, None]
        return decode(tasks, torch.lerp(tasks["base"], tasks["end"], share))

    return smallest_level(tasks.attach(end=code), between, top)[1]


class Trace:
    """Record the loss and the code of every step, for plots.

    Parameters
    ----------
    plane : Tensor of shape (latent, 2)
        Directions that codes are projected on.
    """

    POINTS = 64

    def __init__(self, plane: Tensor) -> None:
        self.plane = plane
        self.positions: list[Tensor] = []
        self.values: list[Tensor] = []

    def note(self, point: Point, loss: Tensor) -> None:
        """Record one step of the tasks still at work."""
        on_plane = point.code.detach() @ self.plane
        self.positions.append(point.tasks["position"])
        self.values.append(torch.cat([loss.detach()[:, None], on_plane], dim=1))

    def curves(self, n: int) -> dict[str, Tensor]:
        """Pick steps evenly from first to last.

        Parameters
        ----------
        n : int
            Number of tasks.

        Returns
        -------
        dict of str to Tensor
            "loss_curve" (n, POINTS) and "path" (n, POINTS, 2); NaN for tasks without a step.
        """
        device = self.plane.device
        position = torch.cat([torch.zeros(0, dtype=torch.long, device=device), *self.positions])
        values = torch.cat([self.plane.new_zeros(0, 3), *self.values])
        blank = values.new_full((1, 3), torch.nan)
        values = torch.cat([values, blank])
        by_task = position.argsort(stable=True)  # task by task, each in the order of its steps
        by_task = torch.cat([by_task, by_task.new_tensor([len(position)])])
        taken = torch.bincount(position, minlength=n)
        first = taken.cumsum(0) - taken
        share = torch.linspace(0, 1, self.POINTS, device=device)
        step = (share * (taken - 1).clamp_min(0)[:, None]).round().long()
        place = torch.where(
            taken[:, None] > 0,
            first[:, None] + step,
            len(position),
        )
        chosen = by_task[place]
        picked = values[chosen]
        return {"loss_curve": picked[:, :, 0], "path": picked[:, :, 1:]}


@torch.no_grad()
def _encode(autoencoder: Autoencoder, x: Tensor) -> Tensor:
    x = x.to(next(autoencoder.parameters()))
    return torch.cat([autoencoder.encode(part) for part in x.split(BATCH)])
