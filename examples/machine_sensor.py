"""Find the sensors of a pump that would have to read otherwise for an alarm not to be raised.

The measurements are synthetic: a worn bearing makes the pump vibrate in bursts and slowly warms it,
and does not affect the other six sensors. The classifier is aeon's ROCKET, which has no gradients;
CoMTE needs none. It searches for the fewest sensors to replace by those of a healthy run.

    python examples/machine_sensor.py [folder]
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from aeon.classification.convolution_based import RocketClassifier

import contrafact as cf
from contrafact.report import plot_saliency

SENSORS = np.array(
    [
        "vibration",
        "bearing temperature",
        "pressure in",
        "pressure out",
        "flow",
        "current",
        "speed",
        "oil level",
    ]
)
LENGTH = 100


def runs(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n runs of the pump, (n, 8 sensors, 100 seconds), and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(n) % 2 == 0, "healthy", "worn bearing")
    X = rng.normal(0, 0.3, (n, len(SENSORS), LENGTH))
    # All sensors except the vibration drift slowly, each in its own way.
    drift = rng.normal(0, 0.05, (n, len(SENSORS) - 1, LENGTH))
    X[:, 1:] += np.cumsum(drift, axis=2)
    worn = labels == "worn bearing"
    bursts = rng.uniform(size=(worn.sum(), LENGTH)) < 0.15
    X[worn, 0] += bursts * rng.normal(0, 3, bursts.shape)
    X[worn, 1] += np.linspace(0, 2, LENGTH)
    return X, labels


def main(folder: Path, kernels: int = 1000) -> cf.Counterfactuals:
    """Train, explain, and write picture and report into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    X_train, y_train = runs(60, seed=0)
    X_test, y_test = runs(20, seed=1)
    model = RocketClassifier(n_kernels=kernels, random_state=0).fit(X_train, y_train)
    predicted = model.predict(X_test)
    print(f"ROCKET gets {np.mean(predicted == y_test):.0%} of 20 new runs right.")

    alarms = X_test[predicted == "worn bearing"]
    result = cf.CoMTE().fit(model, X_train, y_train).explain(alarms, target="healthy")
    result = replace(result, names=SENSORS)

    replaced = result.info["channels"].astype(bool)  # (alarms, sensors)
    counts = replaced.sum(0)
    print(f"{result.valid.sum()} of {len(result)} alarms would not be raised with other values of:")
    for sensor in np.argsort(-counts, kind="stable"):
        if counts[sensor] > 0:
            print(f"  {SENSORS[sensor]}: in {counts[sensor]} of them")

    plot_saliency(result, 0, folder / "sensors.png")
    title = "Which sensors raised the alarm?"
    result.report(folder / "report.html", title=title, reference=(X_train, y_train))
    print(f"Picture and report: {folder}")
    return result


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/machine_sensor"))
