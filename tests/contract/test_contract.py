"""Every explainer × every kind of model × every kind of data keeps the contract.

Explainers are found by themselves: a new class in explainers/ is tested without anyone remembering.
"""

import pytest

from contrafact.engine.checks import CHECKS, cases_for, check_explainer
from contrafact.explainers.registry import explainer_classes

# The first setting of a method meets everything, further ones a model with and a model without gradients.
CELLS = [
    pytest.param(cls(**params), model, data, id=f"{name}{i or ''}-{model}-{data}")
    for name, cls in explainer_classes().items()
    for i, params in enumerate(cls._get_test_params())
    for model, data in cases_for(cls(**params))
    if i == 0 or model in ("torch", "forest", "prototype")
]


@pytest.mark.filterwarnings("ignore:The model puts decoded centroids")  # autoencoders of two epochs
@pytest.mark.parametrize(("explainer", "model", "data"), CELLS)
def test_contract(explainer, model, data):
    frame = check_explainer(explainer, models=[model], data=[data])
    assert list(frame["check"]) == list(CHECKS)


def test_the_grid_is_complete():
    """Explainers that take every modality meet 5 kinds of model on series and 4 on images and rows."""
    ids = [cell.id for cell in CELLS if cell.id.startswith("NearestUnlike-")]
    assert len(ids) == 18 and len(CHECKS) >= 30
