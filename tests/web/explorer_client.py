"""A client of a running explorer, as the page is one; and a model to explore."""

from functools import cache

import httpx
from sklearn.linear_model import LogisticRegression

import contrafact as cf


class Client(httpx.Client):
    """Ask a running explorer; answers are checked and read."""

    def __init__(self, url):
        super().__init__(base_url=url, timeout=30, trust_env=False)

    def read(self, path, **options):
        return self._checked(self.get(path, **options))

    def ask(self, path, **content):
        return self._checked(self.post(path, json=content))

    def start(self, **question):
        return self.ask("api/explain", **question)["job"]

    def finished(self, job):
        """Follow a job to its end, as the page does."""
        view = {"version": 0, "state": "running"}
        while view["state"] == "running":
            view = self.read(f"api/jobs/{job}", params={"after": view["version"]})
        return view

    def explained(self, **question):
        return self.finished(self.start(**question))

    @staticmethod
    def _checked(answer):
        assert answer.status_code == 200, answer.text
        return answer.json()


def wait_until_idle(explorer):
    """Wait until nothing works in the background.

    scikit-learn sets filters of warnings for the whole process while it predicts: tests that call a
    model themselves at the same time would find them changed.
    """
    explorer._app.workspace.known.wait()


@cache
def italy():
    """Days of electricity demand, and a logistic model of their flat values."""
    data = cf.load_dataset("ItalyPowerDemand")
    model = LogisticRegression(max_iter=1000).fit(data.X_train[:, 0], data.y_train)
    return model, data
