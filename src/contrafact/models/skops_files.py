"""Estimators of scikit-learn in skops files: only types that are known to be harmless."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

from ..consent import require_trust
from ..data.archives import MAX_BYTES, check_member
from ..extras import require_extra
from .damage import DAMAGE, damaged

#: The member that describes the object; the others hold its arrays.
SCHEMA = "schema.json"
#: How many bytes the description may take.
MAX_SCHEMA = 100_000_000
WHY_TYPES = "what these do when they are made or asked is not known"
#: Types and functions that skops does not trust by itself. All are harmless with any content and
#: any arguments, but for the trees, whose content is checked after opening.
HARMLESS = frozenset(
    f"{module}.{name}"
    for module, names in {
        "functools": ("partial",),  # of functions that are on this list, or known to skops
        "numpy": ("dtype", "mean"),
        "scipy._lib.array_api_compat.numpy._aliases": ("asarray",),
        "scipy.interpolate._bsplines": ("BSpline",),
        "sklearn.calibration": ("_CalibratedClassifier", "_SigmoidCalibration"),
        "sklearn.compose._column_transformer": ("_RemainderColsList", "make_column_selector"),
        "sklearn.ensemble._hist_gradient_boosting.predictor": ("TreePredictor",),
        "sklearn.feature_selection._univariate_selection": ("chi2", "f_classif"),
        "sklearn.gaussian_process._gpc": ("_BinaryGaussianProcessClassifierLaplace",),
        "sklearn.gaussian_process.kernels": (
            "CompoundKernel",
            "ConstantKernel",
            "DotProduct",
            "Exponentiation",
            "Matern",
            "Product",
            "RBF",
            "RationalQuadratic",
            "Sum",
            "WhiteKernel",
        ),
        "sklearn.metrics._classification": (
            "accuracy_score",
            "balanced_accuracy_score",
            "f1_score",
            "log_loss",
            "precision_score",
            "recall_score",
        ),
        "sklearn.metrics._ranking": ("roc_auc_score",),
        "sklearn.metrics._scorer": ("_PassthroughScorer", "_Scorer"),
        "sklearn.model_selection._split": (
            "GroupKFold",
            "KFold",
            "RepeatedStratifiedKFold",
            "ShuffleSplit",
            "StratifiedKFold",
            "StratifiedShuffleSplit",
        ),
        "sklearn.neural_network._stochastic_optimizers": ("AdamOptimizer", "SGDOptimizer"),
        "sklearn.tree._tree": ("Tree",),
        "sklearn.utils._bunch": ("Bunch",),
        "sklearn.utils.validation": ("check_array",),
    }.items()
    for name in names
)


def read_skops(file: Path, trust: bool) -> Any:
    """Read an estimator from a skops file.

    Parameters
    ----------
    file : Path
        A skops file.
    trust : bool
        Also make objects of types that are not known to be harmless.

    Returns
    -------
    object
        What the file holds.

    Raises
    ------
    ValueError
        If the file needs trust, is damaged, or is too large.
    """
    require_extra("files", "A skops file")
    import skops.io

    from .tree_checks import check_trees

    content = file.read_bytes()
    try:
        _check_sizes(content)
        unknown = set(skops.io.get_untrusted_types(data=content))
    except (*DAMAGE, AttributeError) as error:  # nothing is imported here
        raise damaged(file, "skops", error) from error
    doubtful = sorted(unknown - HARMLESS)
    if doubtful:
        subject = f"{file} holds objects of {', '.join(doubtful[:5])}"
        require_trust(subject, trust, WHY_TYPES)
    try:
        model = skops.io.loads(content, trusted=sorted(unknown))
        check_trees(model)
    except (*DAMAGE, AttributeError, ImportError) as error:
        if doubtful and isinstance(error, AttributeError | ImportError):
            raise ImportError(f"{file} needs code that is not there: {error}.") from error
        raise damaged(file, "skops", error) from error
    return model


def _check_sizes(content: bytes) -> None:
    """Check what the archive, and archives in it, would take in memory, before it is unpacked."""
    total = 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            total += _checked_size(info, len(content), total)
        if archive.getinfo(SCHEMA).file_size > MAX_SCHEMA:
            raise ValueError(f"{SCHEMA} takes more than {MAX_SCHEMA:,} bytes")
        for info in archive.infolist():
            with archive.open(info) as member:
                is_archive = member.read(2) == b"PK"
            if is_archive:  # a sparse matrix
                total += _inner_size(archive.read(info), total)


def _inner_size(content: bytes, total: int) -> int:
    """Return what the members of an archive take that is itself a member."""
    size = 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            size += _checked_size(info, len(content), total + size)
    return size


def _checked_size(info: zipfile.ZipInfo, archive_size: int, total: int) -> int:
    """Return the size of a member that can be what it says, with a total within the limit."""
    check_member(info, info.filename, archive_size)
    if total + info.file_size > MAX_BYTES:
        raise ValueError(f"its arrays take more than the {MAX_BYTES:,} bytes allowed")
    return info.file_size
