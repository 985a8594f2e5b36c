"""Counterfactuals: what came out, and is it true?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

import numpy as np
import torch
from torch import Tensor

from ..models.classifier import Array
from .instances import PLURALS, Modality

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..metrics import Scores
    from .constraints import Constraints

#: a value counts as changed when it moved by more than this share of the row's largest change
CHANGE_TOLERANCE = 1e-6

STATUSES = ("valid", "already_target", "invalid", "infeasible", "budget", "error")


@dataclass(frozen=True)
class Counterfactuals:
    """Counterfactuals, one row each; every field from X to calls is an array of that length.

    X, X_cf : the instance and its counterfactual, in the user's kind (NumPy or torch) and shape.
    source : row of the input each counterfactual belongs to; with k > 1 an input has several rows.
    labels, cf_labels, target : the model's class before and after, and the class wanted.
    proba, cf_proba : the model's probabilities before and after, columns as in `classes`.
    valid : the model, asked again about `X_cf`, says `target`.
    status : valid, already_target, invalid, infeasible, budget or error; `message` says why.
    seconds, calls : share of the wall time, and model rows spent.
    info : what the method has to tell, one array per key.
    provenance : method, parameters, version, seed and options of the request.
    names : what the features of a row, or the channels of a series or image, are called, where that is known.
    """

    X: Any
    X_cf: Any
    source: Array
    labels: Array
    cf_labels: Array
    target: Array
    proba: Array
    cf_proba: Array
    valid: Array
    status: Array
    message: Array
    seconds: Array
    calls: Array
    classes: Array
    modality: Modality
    info: dict[str, Array] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    names: Array | None = None

    def __post_init__(self) -> None:
        parts = 1 if self.modality == "series" and len(self.X.shape) == 2 else self.X.shape[1]
        if self.names is not None and len(self.names) != parts:
            raise ValueError(
                f"names has {len(self.names)} entries for {parts} features or channels."
            )

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: Any) -> Counterfactuals:
        """The chosen rows: an index, a slice, a boolean mask or a list of positions."""
        rows = np.arange(len(self))[rows].reshape(-1)
        chosen = {
            f.name: getattr(self, f.name)[rows]
            for f in fields(self)
            if f.name not in ("classes", "modality", "info", "provenance", "names")
        }
        return replace(
            self, **chosen, info={key: values[rows] for key, values in self.info.items()}
        )

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{int((self.status == s).sum())} {s}" for s in STATUSES if (self.status == s).any()
        )
        method = self.provenance.get("method", "unknown method")
        shape = " × ".join(str(size) for size in self.X.shape[1:])
        moved = self.status == "valid"
        changed = f", {self.changed_fraction[moved].mean():.0%} changed" if moved.any() else ""
        summary = f"{counts or 'empty'}{changed}"
        noun = PLURALS[self.modality]
        return f"<Counterfactuals: {len(self)} {noun} of {shape} by {method}: {summary}>"

    @property
    def delta(self) -> Any:
        """X_cf − X."""
        return self.X_cf - self.X

    @property
    def changed(self) -> Any:
        """Mask of the values that changed, in the kind and shape of X.

        A value changed if it moved by more than a millionth of the row's largest change: less is
        rounding. Computed in float64.
        """
        rows = (len(self), int(np.prod(self.X.shape[1:])))
        moved = np.abs(_float64(self.X_cf) - _float64(self.X)).reshape(rows)
        largest = moved.max(axis=1, keepdims=True, initial=0.0)
        changed = (moved > CHANGE_TOLERANCE * largest).reshape(self.X.shape)
        if isinstance(self.X, Tensor):
            return torch.from_numpy(changed).to(self.X.device)
        return changed

    @property
    def changed_fraction(self) -> Array:
        """Share of the values that changed, per row."""
        changed = self.changed
        changed = changed.cpu().numpy() if isinstance(changed, Tensor) else changed
        return np.asarray(changed.reshape(len(self), int(np.prod(self.X.shape[1:]))).mean(1))

    @property
    def target_proba(self) -> Array:
        """P(target) before, column 0, and after, column 1."""
        position = {label: i for i, label in enumerate(self.classes.tolist())}
        column = np.array([position[label] for label in self.target.tolist()], dtype=int)
        rows = np.arange(len(self))
        return np.stack([self.proba[rows, column], self.cf_proba[rows, column]], 1)

    def updated(self, rows: Array, new: Counterfactuals) -> Counterfactuals:
        """The same result with `rows` replaced by `new`, whose cost is added."""
        spent = replace(
            new, calls=self.calls[rows] + new.calls, seconds=self.seconds[rows] + new.seconds
        )
        changes: dict[str, Any] = {}
        for name in (
            "X_cf",
            "cf_labels",
            "cf_proba",
            "valid",
            "status",
            "message",
            "calls",
            "seconds",
        ):
            values = getattr(self, name)
            whole = values.clone() if isinstance(values, Tensor) else values.copy()
            part = getattr(spent, name)
            if whole.dtype != part.dtype and isinstance(whole, np.ndarray):
                whole = whole.astype(np.result_type(whole, part))
            whole[rows] = part
            changes[name] = whole
        provenance = {**self.provenance, "refined": new.provenance.get("options", {})}
        return replace(self, **changes, provenance=provenance)

    @classmethod
    def judge(
        cls,
        model: Any,
        X: Any,
        X_cf: Any,
        target: Any = None,
        *,
        method: str = "given",
        modality: Modality | None = None,
    ) -> Counterfactuals:
        """Counterfactuals made elsewhere, with the model asked what they are worth."""
        from .request import judge

        return judge(model, X, X_cf, target, method=method, modality=modality)

    def to_frame(self) -> pd.DataFrame:
        """One line per counterfactual: what was asked, what came out, what it cost."""
        import pandas as pd

        before, after = self.target_proba.T
        return pd.DataFrame(
            {
                "source": self.source,
                "label": self.labels,
                "target": self.target,
                "cf_label": self.cf_labels,
                "valid": self.valid,
                "status": self.status,
                "p_before": before,
                "p_after": after,
                "changed_fraction": self.changed_fraction,
                "seconds": self.seconds,
                "calls": self.calls,
                "message": self.message,
            }
        )

    def evaluate(
        self,
        metrics: Sequence[Any] | None = None,
        reference: Any = None,
        *,
        model: Any = None,
        explainer: Any = None,
        other_model: Any = None,
        autoencoder: Any = None,
    ) -> Scores:
        """Score every row, failures included; see `contrafact.metrics.evaluate`."""
        from .. import metrics as room

        return room.evaluate(
            self,
            metrics,
            reference,
            model=model,
            explainer=explainer,
            other_model=other_model,
            autoencoder=autoencoder,
        )

    def plot(self, i: int = 0, path: str | Path | None = None, *, width: float = 10.0) -> Figure:
        """Picture of counterfactual i, `width` inches wide; see `contrafact.report.plot`."""
        from .. import report as room

        return room.plot(self, i, path, width=width)

    def report(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        reference: Any = None,
        constraints: Constraints | None = None,
        command: str | None = None,
    ) -> Path:
        """Write a self-contained HTML page; see `contrafact.report.write_report`."""
        from .. import report as room

        return room.write_report(
            self, path, title=title, reference=reference, constraints=constraints, command=command
        )

    def save(self, path: str | Path) -> Path:
        """Write an .npz without pickled objects; read it back with `Counterfactuals.load`."""
        path = _npz(path)
        arrays: dict[str, Any] = {
            f.name: _plain(getattr(self, f.name))
            for f in fields(self)
            if f.name not in ("info", "provenance") and getattr(self, f.name) is not None
        }
        arrays |= {f"info/{key}": values for key, values in self.info.items()}
        arrays["kind"] = np.array("torch" if isinstance(self.X, Tensor) else "numpy")
        arrays["provenance"] = np.array(json.dumps(self.provenance, default=str))
        with path.open("wb") as file:
            np.savez_compressed(file, **arrays)
        return path

    @classmethod
    def load(cls, path: str | Path) -> Counterfactuals:
        """Read what `save` wrote."""
        path = Path(path) if Path(path).exists() else _npz(path)
        if path.is_file() and not is_zipfile(path):
            raise ValueError(f"{path} is not a saved Counterfactuals: it is not an .npz file.")
        with np.load(path, allow_pickle=False) as stored:
            missing = {f.name for f in fields(cls)} - {"info", "names"} - set(stored.files)
            if missing:
                raise ValueError(
                    f"{path} is not a saved Counterfactuals: it lacks {', '.join(sorted(missing))}."
                )
            arrays: dict[str, Any] = {name: stored[name] for name in stored.files}
        kind = str(arrays.pop("kind", "numpy"))
        info = {
            name.removeprefix("info/"): arrays.pop(name)
            for name in list(arrays)
            if name.startswith("info/")
        }
        provenance = json.loads(str(arrays.pop("provenance")))
        arrays["modality"] = str(arrays["modality"])
        if kind == "torch":
            arrays |= {name: torch.from_numpy(arrays[name]) for name in ("X", "X_cf")}
        return cls(**arrays, info=info, provenance=provenance)


def _npz(path: str | Path) -> Path:
    path = Path(path)
    return path if path.suffix == ".npz" else path.with_name(path.name + ".npz")


def _plain(value: Any) -> Array:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)


def _float64(values: Any) -> Array:
    if isinstance(values, Tensor):
        return values.detach().double().cpu().numpy()
    return np.asarray(values, dtype=np.float64)
