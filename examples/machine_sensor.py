"""A pump with eight sensors raises an alarm: which of them would have to read otherwise?

The measurements are synthetic: a worn bearing makes the pump vibrate in bursts and slowly warms it, and
leaves the other six sensors alone. The classifier is aeon's ROCKET, which gives no gradients; CoMTE needs
none. It looks for the fewest sensors to replace by those of a healthy run.

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
    """n runs of the pump, (n, 8 sensors, 100 seconds), and what was the matter."""
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(n) % 2 == 0, "healthy", "worn bearing")
    X = rng.normal(0, 0.3, (n, len(SENSORS), LENGTH))
    # All sensors but the vibration drift slowly, each in its own way.
    X[:, 1:] += np.cumsum(rng.normal(0, 0.05, (n, len(SENSORS) - 1, LENGTH)), axis=2)
    worn = labels == "worn bearing"
    bursts = rng.uniform(size=(worn.sum(), LENGTH)) < 0.15
    X[worn, 0] += bursts * rng.normal(0, 3, bursts.shape)
    X[worn, 1] += np.linspace(0, 2, LENGTH)
    return X, labels


def main(folder: Path, kernels: int = 1000) -> cf.Counterfactuals:
    folder.mkdir(parents=True, exist_ok=True)
    X_train, y_train = runs(60, seed=0)
    X_test, y_test = runs(20, seed=1)
    model = RocketClassifier(n_kernels=kernels, random_state=0).fit(X_train, y_train)
    print(f"ROCKET gets {np.mean(model.predict(X_test) == y_test):.0%} of 20 new runs right.")

    alarms = X_test[model.predict(X_test) == "worn bearing"]
    result = cf.CoMTE().fit(model, X_train, y_train).explain(alarms, target="healthy")
    result = replace(result, names=SENSORS)

    print(
        f"{result.valid.sum()} of {len(result)} alarms would not have been raised with other readings of:"
    )
    replaced = result.info["channels"].astype(bool)  # (alarms, sensors)
    for sensor in np.argsort(-replaced.sum(0), kind="stable"):
        if replaced[:, sensor].any():
            print(f"  {SENSORS[sensor]}: in {replaced[:, sensor].sum()} of them")

    plot_saliency(result, 0, folder / "sensors.png")
    result.report(
        folder / "report.html",
        title="Which sensors raised the alarm?",
        reference=(X_train, y_train),
    )
    print(f"Picture and report: {folder}")
    return result


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/machine_sensor"))
