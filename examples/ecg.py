"""Find the part of a heartbeat that makes a network call it 'ischaemia'.

The heartbeats are synthetic, so that the answer is known: the two kinds differ after the main spike
(in the ST segment and the T wave) and nowhere else. Do not draw medical conclusions from them.

    python examples/ecg.py [folder]
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import contrafact as cf

TIME = np.linspace(0, 0.8, 120)  # seconds
P_WAVE = TIME < 0.2  # the atria contract; it must not change below
ST_AND_T = TIME > 0.34  # where the two kinds of beat differ


def heartbeat(ill: bool, rng: np.random.Generator) -> np.ndarray:
    """Return one beat in millivolts, (120,), as a sum of six bumps and noise."""
    shift = rng.normal(0, 0.008)
    size = rng.uniform(0.85, 1.15)
    # P, Q, R, S, then the ST segment and the T wave: center in s, width in s, height in mV.
    bumps = [
        (0.13, 0.022, 0.15), (0.255, 0.008, -0.12), (0.28, 0.010, 1.1), (0.305, 0.009, -0.25),
        (0.40, 0.040, -0.15 if ill else 0.0), (0.54, 0.045, -0.2 if ill else 0.3),
    ]  # fmt: skip
    beat = np.zeros(len(TIME))
    for center, width, height in bumps:
        beat += size * height * np.exp(-(((TIME - shift - center) / width) ** 2) / 2)
    return beat + rng.normal(0, 0.015, len(TIME))


def heartbeats(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n beats in millivolts, (n, 1, 120), and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(n) % 2 == 0, "normal", "ischaemia")
    beats = [heartbeat(label == "ischaemia", rng) for label in labels]
    return np.array(beats, dtype=np.float32)[:, None], labels


def main(folder: Path, epochs: int = 20) -> cf.Counterfactuals:
    """Train, explain, and write picture and report into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    X_train, y_train = heartbeats(100, seed=0)
    X_test, y_test = heartbeats(60, seed=1)
    model = cf.fit_classifier("fcn", X_train, y_train, max_epochs=epochs)
    predicted = model.predict(X_test)
    print(f"The network gets {np.mean(predicted == y_test):.0%} of 60 new beats right.")

    # These are read as 'ischaemia'. What would make them 'normal', if the P wave stays as it is
    # and every value stays in the range of a real heartbeat?
    ill = X_test[predicted == "ischaemia"][:10]
    limits = cf.Constraints(frozen=P_WAVE, lower=-1.0, upper=2.0)
    explainer = cf.Graft().fit(model, X_train, y_train)
    result = explainer.explain(ill, target="normal", constraints=limits)
    result = replace(result, names=np.array(["lead II (mV)"]))  # for the axes of the pictures

    changed = result.changed_fraction.mean()
    touched = result.changed[..., P_WAVE].any((1, 2)).sum()
    share = np.abs(result.delta[..., ST_AND_T]).sum() / np.abs(result.delta).sum()
    print(
        f"{result.valid.sum()} of {len(result)} now read 'normal', {changed:.0%} of points changed."
    )
    print(f"P waves that were touched: {touched}.")
    print(f"{share:.0%} of the change lies in the ST segment and the T wave, where they differ.")

    result.plot(0, folder / "beat.png")
    title = "Which part of the heartbeat makes the difference?"
    known = (X_train, y_train)
    result.report(folder / "report.html", title=title, reference=known, constraints=limits)
    print(f"Picture and report: {folder}")
    return result


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/ecg"))
