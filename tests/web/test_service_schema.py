"""The OpenAPI schema: requests made from it, right and wrong ones, never end in status 500."""

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS
from serving import running
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.web import ServiceLimits

#: what is checked of every answer
CHECKED = ("status_code_conformance", "content_type_conformance", "response_schema_conformance")


@pytest.fixture(scope="module")
def served():
    X, y = load_iris(return_X_y=True)
    fitted = LogisticRegression(max_iter=500).fit(X, y)

    def model(rows):
        # Of 1e300, the answer would be NaN and rightly the status 502.
        return fitted.predict_proba(np.clip(rows, -100, 100))

    limits = ServiceLimits(max_seconds=0.3, max_calls=2_000, max_instances=8)
    classifier = cf.as_classifier(model, classes=[0, 1, 2])
    with running(classifier, (X, y), limits=limits) as found:
        yield found


def test_schema_says_what_the_service_accepts(served):
    _, _, schema = served.ask("GET", "/openapi.json")
    bodies = schema["components"]["schemas"]
    instances = bodies["PredictBody"]["properties"]["instances"]
    assert instances["maxItems"] == 8
    assert instances["items"] == {
        "type": "array",
        "items": {"type": "number"},
        "minItems": 4,
        "maxItems": 4,
    }
    assert {"enum": [0, 1, 2]} in bodies["ExplainBody"]["properties"]["target"]["anyOf"]
    assert bodies["ExplainBody"]["properties"]["calls"]["anyOf"][0]["maximum"] == 2_000
    example = bodies["ExplainBody"]["examples"][0]
    status, _, answer = served.ask("POST", "/v1/explain", example)
    assert status == 200
    assert np.shape(answer["counterfactuals"][0]["values"]) == (4,)


def test_requests_made_from_the_schema_never_end_in_500(served):
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
    checks = CHECKS.get_by_names(CHECKED)
    seen = []
    for operation in schema.get_all_operations():
        operation = operation.ok()

        def ask(case):
            response = case.call(base_url=served.url)
            seen.append(response.status_code)
            assert response.status_code < 500, (response.status_code, response.text)
            case.validate_response(response, checks=checks)

        has_body = operation.method == "post"
        for mode in schemathesis.GenerationMode:
            if has_body or mode.is_positive:  # there is no wrong request without a body
                strategy = operation.as_strategy(generation_mode=mode)
                _try(strategy, ask, 12 if has_body else 2)
    assert {200, 422} <= set(seen)


def _try(strategy, ask, examples):
    """Ask with some cases; always the same ones."""
    from hypothesis import given

    run = settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )(given(strategy)(ask))
    run()
