"""Name the extra to install where an optional library is missing."""

from __future__ import annotations

from importlib.util import find_spec

#: What each extra of pyproject.toml brings, by the names to import.
EXTRAS = {
    "benchmark": ("dask", "distributed", "pyarrow"),
    "files": ("onnxruntime", "safetensors", "skops"),
    "parquet": ("pyarrow",),
    "scale": ("dask", "distributed", "pyarrow", "zarr"),
    "web": ("fastapi", "prometheus_client", "uvicorn"),
}


def require_extra(extra: str, subject: str) -> None:
    """Check that the libraries of an extra are installed.

    Parameters
    ----------
    extra : {"benchmark", "files", "parquet", "scale", "web"}
        A key of `EXTRAS`.
    subject : str
        What needs them, as the beginning of a sentence: "The benchmark".

    Raises
    ------
    ImportError
        If one is missing; the message says how to install them.

    Examples
    --------
    >>> require_extra("benchmark", "The benchmark")
    """
    missing = [name for name in EXTRAS[extra] if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"{subject} needs {', '.join(missing)}, which contrafact alone does not install. "
            f'Use: pip install "contrafact[{extra}]"'
        )
