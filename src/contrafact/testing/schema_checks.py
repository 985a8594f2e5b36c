"""Checks on a table: whatever is asked for, rows keep their schema and what people state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.constraints import Constraints
from ..engine.result import Counterfactuals
from ..explainers.support.explainer import Explainer
from ..models.classifier import Array
from ..tables import Schema
from .cases import Case
from .checks import check
from .table_cases import AskedInUnits

if TYPE_CHECKING:
    import pandas as pd

#: Requests whose answers have to keep the schema.
REQUESTS: tuple[dict[str, Any], ...] = ({}, {"k": 2}, {"k": 2, "refine": True})
#: Constraints that have to hold alone and, the last, together.
CONSTRAINTS: tuple[dict[str, Any], ...] = (
    {"frozen": ["sex", "color", "bmi"]},
    {"increasing": ["age", "risk"], "decreasing": ["dose"]},
    {"bounds": {"hba1c": (5.5, 7.0), "age": (30.5, 70), "risk": (None, "middle")}},
    {"max_changed": 2},
    {"relations": ["age >= prior + 40", "dose <= 4 * bmi"]},
    {"forbidden": {"sex": [("f", "m")], "smokes": [(False, True)]}},
    {
        "frozen": ["sex"],
        "increasing": ["age"],
        "bounds": {"hba1c": (4, 9)},
        "max_changed": 4,
        "relations": ["age >= prior + 20"],
    },
)
#: By column, what its numbers are multiplied by; all of them stay exact.
UNITS = {"bmi": 1000.0, "hba1c": 1024.0}


def _answers(explainer: Explainer, case: Case, **options: Any) -> Counterfactuals:
    """Explain the rows of the table; none of them may fail."""
    result = case.explain(explainer, random_state=0, **options)
    failed = result.status == "error"
    assert not failed.any(), f"rows failed: {result.message[failed][0]}"
    return result


def _changed(result: Counterfactuals) -> pd.DataFrame:
    """Return which values of the frame differ; a missing value equals a missing one."""
    before, after = result.frame, result.frame_cf
    same: pd.DataFrame = (before == after).fillna(False).astype(bool)
    same |= before.isna() & after.isna()
    return ~same


def _assert_schema(result: Counterfactuals, schema: Schema) -> None:
    """Check the values of every column by what the schema says of it."""
    before, after = result.frame, result.frame_cf
    changed = _changed(result)
    for column in schema:
        values = after[column.name]
        new = values[changed[column.name]]
        assert not new.isna().any(), f"{column.name}: a missing value was invented"
        if column.kind == "fixed":
            assert not len(new), f"{column.name}: fixed, but changed"
        elif column.levels:
            strange = set(new) - set(column.levels)
            assert not strange, f"{column.name}: {strange} are not levels"
        else:
            numbers = new.to_numpy(np.float64)
            inside = (numbers >= column.lower) & (numbers <= column.upper)
            assert inside.all(), f"{column.name}: {numbers[~inside]} out of range"
            if column.step:
                steps = (numbers - column.center) / column.step
                assert np.allclose(steps, np.rint(steps), atol=1e-9), f"{column.name}: off its grid"
            elif column.decimals is not None:
                rounded = numbers.round(column.decimals)
                assert np.allclose(numbers, rounded, rtol=0, atol=1e-12), f"{column.name}: decimals"
    for name, members in schema.groups.items():
        total = after.iloc[:, list(members)].sum(axis=1)
        assert (total == 1).all(), f"the one-hot group {name} is broken"
    assert list(after.dtypes) == list(before.dtypes), "types of columns changed"


@check("two_models", tables=True)
def check_table_schema_holds(explainer: Explainer, case: Case) -> None:
    """Check that categories, whole numbers, grids, one-hot groups and gaps stay what they are."""
    schema = Schema.infer(case.X_reference)
    for options in REQUESTS:
        _assert_schema(_answers(explainer, case, **options), schema)


@check("every_model", tables=True)
def check_table_valid_is_what_the_model_says(explainer: Explainer, case: Case) -> None:
    """Check `valid` by asking the model about the frames as they are returned."""
    for options in REQUESTS:
        result = _answers(explainer, case, **options)
        for frame, labels in ((result.frame, result.labels), (result.frame_cf, result.cf_labels)):
            said = _predict(case, frame)
            assert (said == labels).all(), "labels are not what the model says of the frame"
        expected = result.cf_labels == result.target
        assert (result.valid == expected).all(), "valid is not what the model says"


def _predict(case: Case, frame: pd.DataFrame) -> Array:
    """Ask the model itself about a frame."""
    if hasattr(case.model, "predict"):
        return np.asarray(case.model.predict(frame))
    return np.asarray(case.labels[case.model(frame).argmax(1)])


@check("one_model", tables=True)
def check_table_frame_is_kept(explainer: Explainer, case: Case) -> None:
    """Check that the instances come back as the frame that was given, with index and types."""
    import pandas as pd

    result = _answers(explainer, case, k=2)
    pd.testing.assert_frame_equal(result.frame, case.X.iloc[result.source], check_exact=True)
    assert result.frame_cf.index.equals(result.frame.index), "the index changed"
    assert list(result.frame_cf.columns) == list(case.X.columns), "the columns changed"


@check("every_model", tables=True)
def check_table_finds_what_the_reference_holds(explainer: Explainer, case: Case) -> None:
    """Check that every row has a counterfactual: any reference row of the class is one."""
    result = _answers(explainer, case)
    open_rows = result.status != "valid"
    assert not open_rows.any(), (
        f"{open_rows.sum()} of {len(result)} rows not valid: {result.message[open_rows][0]}"
    )


@check("one_model", tables=True)
def check_table_constraints_hold(explainer: Explainer, case: Case) -> None:
    """Check every constraint that names columns, by its own words, and all after refinement."""
    schema = Schema.infer(case.X_reference)
    # Refinement only undoes edits: each constraint alone is checked before it.
    for stated, refine in (*((one, False) for one in CONSTRAINTS), (CONSTRAINTS[-1], True)):
        constraints = Constraints(**stated)
        if not constraints.kinds <= explainer.tags.constraints:
            continue
        result = _answers(explainer, case, constraints=constraints, refine=refine)
        _assert_stated(result, schema, stated)
        unmet = ~result.valid
        assert all(result.message[unmet]), "a row without a counterfactual gives no reason"


def _assert_stated(result: Counterfactuals, schema: Schema, stated: dict[str, Any]) -> None:
    """Check constraints on the frames of a result."""
    before, after = result.frame, result.frame_cf
    changed = _changed(result)
    for name in stated.get("frozen", ()):
        columns = [schema.names[i] for i in schema.positions([name])]
        assert not changed[columns].any(axis=None), f"{name} is frozen, but changed"
    for argument, sign in (("increasing", 1), ("decreasing", -1)):
        for name in stated.get(argument, ()):
            known = changed[name] & before[name].notna()
            move = _numbers(after, schema, name) - _numbers(before, schema, name)
            assert (sign * move[known.to_numpy()] > 0).all(), f"{name} is not {argument}"
    for name, (low, high) in stated.get("bounds", {}).items():
        values = _numbers(after, schema, name)[changed[name].to_numpy()]
        levels = schema[name].levels
        lower = -np.inf if low is None else levels.index(low) if levels else low
        upper = np.inf if high is None else levels.index(high) if levels else high
        assert ((values >= lower) & (values <= upper)).all(), f"{name} is out of its bounds"
    if "max_changed" in stated:
        group_of = [column.group or column.name for column in schema]
        count = changed.T.groupby(np.array(group_of)).any().sum()
        assert (count <= stated["max_changed"]).all(), "too many columns were changed"
    for relation in stated.get("relations", ()):
        names = [name for name in schema.names if name in relation]
        concerned = changed[names].any(axis=1) & after[names].notna().all(axis=1)
        assert after[concerned].eval(relation).all(), f"{relation} does not hold"
    for name, moves in stated.get("forbidden", {}).items():
        done = set(zip(before[name][changed[name]], after[name][changed[name]], strict=True))
        assert not done & set(moves), f"{name}: a forbidden move"


def _numbers(frame: pd.DataFrame, schema: Schema, name: str) -> Array:
    """Return the numbers of a column, or the ranks of its levels; NaN where missing."""
    levels = schema[name].levels
    if levels:
        return np.array([levels.index(value) for value in frame[name]], dtype=np.float64)
    return np.asarray(frame[name].to_numpy(np.float64, na_value=np.nan))


@check("one_model", tables=True)
def check_table_frozen_is_infeasible(explainer: Explainer, case: Case) -> None:
    """Check that rows stay as they are and say why if every column is frozen."""
    if "frozen" not in explainer.tags.constraints:
        return
    everything = Constraints(frozen=list(case.X.columns))
    result = _answers(explainer, case, constraints=everything)
    assert set(result.status) == {"infeasible"}, f"status {set(result.status)}"
    assert all(result.message), "an infeasible row gives no reason"
    assert result.frame_cf.equals(result.frame), "an infeasible row was changed"


@check("one_model", tables=True)
def check_table_units_do_not_matter(explainer: Explainer, case: Case) -> None:
    """Check that columns in other units give the same counterfactuals, up to the units."""
    from sklearn.base import clone

    frames = []
    for factors in ({}, UNITS):
        model = AskedInUnits(getattr(case.model, "model", case.model), factors)
        reference, rows = (_in_units(frame, factors) for frame in (case.X_reference, case.X))
        fitted = clone(explainer).fit(model, reference, case.y_reference)
        result = fitted.explain(rows, random_state=0)
        after = result.frame_cf
        frames.append(after.assign(**{name: after[name] / by for name, by in factors.items()}))
    one, other = frames
    for name in one:
        if name in UNITS:
            close = np.isclose(one[name], other[name], rtol=1e-6, equal_nan=True)
            assert close.all(), f"{name} differs by more than its unit in {(~close).sum()} rows"
        else:
            missing = one[name].isna() & other[name].isna()
            same = (one[name] == other[name]).fillna(False) | missing
            assert same.all(), f"{name} differs in {(~same).sum()} rows"


def _in_units(frame: pd.DataFrame, factors: dict[str, float]) -> pd.DataFrame:
    """Multiply columns; numbers with few places get none."""
    scaled = {name: (frame[name] * by) for name, by in factors.items()}
    if "bmi" in scaled:
        scaled["bmi"] = scaled["bmi"].round(0)
    return frame.assign(**scaled)


@check("one_model", tables=True)
def check_table_batch_equals_loop(explainer: Explainer, case: Case) -> None:
    """Check that a row of a table does not depend on the others of its request."""
    import pandas as pd

    together = _answers(explainer, case).frame_cf
    case.fit(explainer)
    apart = [explainer.explain(case.X[i : i + 1], random_state=0).frame_cf for i in range(3)]
    pd.testing.assert_frame_equal(pd.concat(apart), together[:3], rtol=1e-9)
