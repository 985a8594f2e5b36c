"""The metrics of the page: names, texts and means."""

import numpy as np
import pytest

from contrafact.metrics import Reference, list_metrics
from contrafact.report.page_metrics import (
    PAGE_METRICS,
    method_means,
    metric_definitions,
    metric_label,
    page_scores,
    shown_metrics,
)


def test_every_metric_exists_and_is_defined_by_its_name():
    names = [metric.name for metric in PAGE_METRICS]
    assert set(names) <= set(list_metrics()["name"])
    definitions = metric_definitions()
    assert all(definitions[name].startswith(f"{name}: ") for name in names)
    assert not any("NaN" in text for text in definitions.values())


def test_metrics_that_need_data_come_with_it(series):
    without = [metric.name for metric in shown_metrics(page_scores(series, None))]
    reference = Reference.read(np.random.default_rng(0).normal(size=(30, 2, 20)), series)
    known = [metric.name for metric in shown_metrics(page_scores(series, reference))]
    assert set(known) - set(without) == {"lof", "knn_distance"}


@pytest.mark.parametrize(
    ("modality", "label"),
    [("series", "stretches changed"), ("image", "regions changed"), ("row", "features changed")],
)
def test_places_are_called_as_in_the_sentences(modality, label):
    segments = next(metric for metric in PAGE_METRICS if metric.name == "segments")
    assert metric_label(segments, modality) == label


def test_means_are_over_instances(series):
    means = method_means(series, page_scores(series, None))
    assert means.mean["sparsity"] == pytest.approx(series.changed_fraction.mean())
    assert means.direction["sparsity"] == "min"
    assert means.over == "over 3 instances, 1 of them already in the target class"
