"""Adapter for sessions of onnxruntime."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ..validation import brief
from .answers import read_columns, read_labels
from .class_labels import distinct_labels, label_index
from .classifier import PROBE_ROWS, Array, Classifier, Rows
from .input_forms import InputForm, first_answer, possible_forms
from .layout_hints import layout_hint
from .onnx_files import runtime_reason
from .onnx_inputs import OnnxInput, read_onnx_inputs
from .output_kinds import are_probabilities, stays_within_unit_interval
from .verdict import Verdict

#: Key of a model's metadata that names its classes, as a JSON list.
CLASSES_KEY = "classes"


class OnnxClassifier(Classifier):
    """Wrap a session of onnxruntime.

    Columns are probabilities, as tensor or as the maps that skl2onnx makes, or scores, of which the
    softmax is taken. The label is that of the model's own label output, where it has one that
    agrees with the classes.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
        The model, with one input for all values of a row, or one for each column of a table.
    classes : array-like of labels or None
        Names of the output columns; None: those of the model's metadata or maps, if any.
    batch_size : int or None
        Rows handed to the model at once.
    """

    def __init__(self, session: Any, classes: Any, batch_size: int | None) -> None:
        self.model = session
        self.inputs = read_onnx_inputs(session)
        self._columns_output, self._label_output = _find_outputs(session)
        super().__init__(_class_names(session) if classes is None else classes, batch_size)
        self.dtype = self.inputs[0].torch_dtype
        self._forms: dict[tuple[int, ...], InputForm] = {}
        self._gives_probabilities: bool | None = None
        self._label_is_unknown = False
        if self._classes is None:
            self._name_by_first_answer()

    @property
    @override
    def feature_names(self) -> list[str] | None:
        if len(self.inputs) == 1:
            return None
        return [each.name for each in self.inputs]

    def _name_by_first_answer(self) -> None:
        """Ask about one row of zeros, where its shape is known, if the answer names the classes."""
        zeros = [value for each in self.inputs if (value := each.zeros()) is not None]
        if not _is_map(self._columns_output) or len(zeros) < len(self.inputs):
            return
        try:
            self._read(self._run(zeros), len(zeros[0]))
        except ValueError:  # zeros may be no values that the model takes
            return

    @override
    def _evaluate(self, x: Any) -> Verdict:
        answer = self._ask(x)
        label, columns = self._read(answer, len(x))
        if columns is None:
            assert label is not None
            return Verdict.of_label(label, len(self.classes))
        verdict = self._judge(columns, x)
        if label is None:
            return verdict
        return Verdict(verdict.proba, label, verdict.score)

    @override
    def probe(self, x: Rows) -> None:
        super().probe(x)
        if self._gives_probabilities is False:
            self.remarks.add(
                f"The output {self._columns_output.name!r} of the ONNX model does not hold "
                "probabilities: its softmax is taken, as for logits."
            )
        if self._label_is_unknown:
            self.remarks.add(
                f"The output {self._label_output.name!r} of the ONNX model names other classes "
                f"than {self.classes.tolist()}: the most probable class is taken instead."
            )
        batch = self.inputs[0].batch
        if batch is not None:
            rows = "one row" if batch == 1 else f"{batch} rows"
            self.remarks.add(
                f"The ONNX model takes {rows} at a time, which is slow. Export it with a dynamic "
                "batch dimension."
            )

    def _judge(self, columns: Tensor, x: Any) -> Verdict:
        """Read columns as probabilities or as scores, as the first answer suggests."""
        finite = columns.isfinite().all(1)
        if self._gives_probabilities is None and bool(finite.any()):
            rows = x[finite] if isinstance(x, Tensor) else None
            self._gives_probabilities = self._look_like_probabilities(columns[finite], rows)
        if columns.shape[1] == 1:
            first = 1 - columns if self._gives_probabilities else torch.zeros_like(columns)
            columns = torch.cat([first, columns], 1)
        if self._gives_probabilities:
            return Verdict.of_proba(columns)
        log_proba = columns.log_softmax(1)
        return Verdict(log_proba.exp(), columns.argmax(1), log_proba.clamp_min(-1e6))

    def _look_like_probabilities(self, columns: Tensor, x: Tensor | None) -> bool:
        """Judge by one answer whether columns are probabilities."""
        if columns.shape[1] > 1:
            return are_probabilities(columns)
        if x is None:
            return bool(((columns >= 0) & (columns <= 1)).all())
        return stays_within_unit_interval(columns, x, self._column)

    def _column(self, x: Tensor) -> Tensor:
        """Ask for the only column."""
        _, columns = self._read(self._ask(x), len(x))
        assert columns is not None
        return columns

    def _ask(self, x: Any) -> list[Any]:
        """Ask the session about rows, in the form that it takes."""
        if not isinstance(x, Tensor):
            return self._run(_from_frame(x, self.inputs))
        row = tuple(x.shape[1:])
        if row in self._forms:
            return self._run_on(x, self._forms[row])
        forms = self._possible_forms(row)
        form, answer, failures = first_answer(lambda form: self._run_on(x, form), forms)
        if form is None:
            raise self._refusal(x, failures[0]) from failures[0]
        self._forms[row] = form
        out: list[Any] = answer
        return out

    def _possible_forms(self, row: tuple[int, ...]) -> list[InputForm]:
        """List the forms to try."""
        shape = self.inputs[0].row
        n_features = shape[0] if shape is not None and len(shape) == 1 else None
        return possible_forms(row, n_features, self.dtype)

    def _run_on(self, x: Tensor, form: InputForm) -> list[Any]:
        """Ask the session about rows in a form."""
        values = form.apply(x)
        if len(self.inputs) == 1:
            return self._run([self.inputs[0].convert(values)])
        if values.shape[1:] != (len(self.inputs),):
            raise ValueError(f"the model takes {len(self.inputs)} columns, got {values.shape[1:]}")
        parts = [each.convert(values[:, [i]]) for i, each in enumerate(self.inputs)]
        return self._run(parts)

    def _run(self, values: Sequence[Array]) -> list[Any]:
        """Run the session, in batches of the size that it takes."""
        n_rows = len(values[0])
        batch = self.inputs[0].batch
        if batch is None or batch == n_rows:
            return self._run_batch(values)
        answers = []
        for start in range(0, n_rows, batch):
            rows = np.arange(start, start + batch).clip(max=n_rows - 1)  # the last row fills up
            answers.append(self._run_batch([value[rows] for value in values]))
        return [_join(parts)[:n_rows] for parts in zip(*answers, strict=True)]

    def _run_batch(self, values: Sequence[Array]) -> list[Any]:
        """Run the session once."""
        outputs = [each.name for each in (self._columns_output, self._label_output) if each]
        names = [each.name for each in self.inputs]
        try:
            answer: list[Any] = self.model.run(outputs, dict(zip(names, values, strict=True)))
        # The errors of onnxruntime derive from nothing narrower.
        except Exception as error:
            raise ValueError(f"onnxruntime: {runtime_reason(error)}.") from error
        return answer

    def _read(self, answer: list[Any], n_rows: int) -> tuple[Tensor | None, Tensor | None]:
        """Return the index of the label of each row, and the columns, where the model has them."""
        columns = None
        if self._columns_output is not None:
            columns = self._read_columns(answer[0], n_rows)
        if self._label_output is None:
            return None, columns
        source = f"The output {self._label_output.name!r}"
        labels = read_labels(answer[-1], n_rows, source)
        n_classes = None if columns is None else max(2, columns.shape[1])
        return self._label_index(labels, n_classes), columns

    def _read_columns(self, out: Any, n_rows: int) -> Tensor:
        """Return columns as float64; maps of classes to numbers name the classes."""
        if _is_map(self._columns_output):
            keys = list(out[0])
            if self._classes is None:
                self._classes = distinct_labels(keys)
            same = set(keys) == set(self.classes.tolist())
            order = self.classes.tolist() if same else keys
            out = [[row[key] for key in order] for row in out]
        columns = read_columns(out, n_rows, f"The output {self._columns_output.name!r}")
        return torch.from_numpy(columns.reshape(n_rows, -1))

    def _label_index(self, labels: Array, n_classes: int | None) -> Tensor | None:
        """Return the positions of labels among the classes; None where they are not among them."""
        if n_classes is None:
            return label_index(labels, self.classes)
        if self._classes is None:
            return None
        if set(labels.tolist()) <= set(self.classes.tolist()):
            return label_index(labels, self.classes)
        if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < n_classes:
            return torch.from_numpy(labels.astype(np.int64))
        self._label_is_unknown = True
        return None

    def _refusal(self, x: Tensor, failure: Exception) -> ValueError:
        """Make the error for a model that answers in none of the forms."""
        taken = ", ".join(str(each) for each in self.inputs)
        hint = ""
        if len(self.inputs) == 1:
            form = InputForm("given", self.dtype)
            hint = layout_hint(lambda other: self._run_on(other, form)[0], x[:PROBE_ROWS])
        return ValueError(
            f"The ONNX model takes {taken}, and does not answer for X of shape {tuple(x.shape)}: "
            f"{failure}{hint}"
        )


def _is_map(output: Any) -> bool:
    """Return whether an output is a map from classes to numbers for every row."""
    return output is not None and output.type.startswith("seq(map(")


def _find_outputs(session: Any) -> tuple[Any, Any]:
    """Return the output that holds columns and the one that holds labels; None where missing."""
    outputs = session.get_outputs()
    columns = [each for each in outputs if _is_map(each)] or [
        each for each in outputs if each.type in ("tensor(float)", "tensor(double)")
    ]
    labels = [each for each in outputs if each.type in ("tensor(int64)", "tensor(string)")]
    if len(columns) > 1:
        columns = [each for each in columns if "prob" in each.name.lower()]
    if len(columns) > 1 or len(labels) > 1 or not (columns or labels):
        found = ", ".join(f"{each.name!r} ({each.type})" for each in outputs)
        raise ValueError(
            f"model has the ONNX outputs {found}. Accepted: one of probabilities or scores, one "
            "of labels, or both; wrap what you need as a function of an array."
        )
    return next(iter(columns), None), next(iter(labels), None)


def _class_names(session: Any) -> Any:
    """Return the classes that the metadata of a model name, or None."""
    text = session.get_modelmeta().custom_metadata_map.get(CLASSES_KEY)
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"model has metadata that name the classes {brief(text)}. Accepted: a JSON list, or "
            "classes=[...]."
        ) from error


def _from_frame(frame: Any, inputs: Sequence[OnnxInput]) -> list[Array]:
    """Convert a frame to the values of inputs: all of it for one, else columns by name."""
    if len(inputs) == 1:
        return [inputs[0].convert(frame.to_numpy())]
    missing = [each.name for each in inputs if each.name not in frame.columns]
    if missing:
        raise ValueError(f"X lacks the column {missing[0]!r}, which the ONNX model takes.")
    return [each.convert(frame[[each.name]].to_numpy()) for each in inputs]


def _join(parts: Sequence[Any]) -> Any:
    """Join the answers of successive batches."""
    if isinstance(parts[0], list):
        return [row for part in parts for row in part]
    return np.concatenate(parts)
