"""Turn one handwritten digit into another, in the eyes of a network.

On an ordinary network the smallest change looks like noise. A network that was trained to withstand
small disturbances has to rely on strokes instead, and its counterfactuals show them. So we train
such a network first, then ask SVCE for the most convincing image of the other digit nearby.

    python examples/digits.py [folder]
"""

import sys
from pathlib import Path

import numpy as np

import contrafact as cf
from contrafact.report import montage


def main(folder: Path, epochs: int = 10) -> cf.Counterfactuals:
    """Train, explain, and write picture and report into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    data = cf.load_dataset("digits")  # 8 × 8 pixels, gray from 0 to 16
    X_train = data.X_train / 16
    X_test = data.X_test / 16

    # "fast" is adversarial training with one gradient step per batch.
    trainer = cf.RobustTrainer(attack="fast", max_epochs=epochs)
    model = trainer.fit("smallcnn", X_train, data.y_train).classifier_
    accuracy = np.mean(model.predict(X_test) == data.y_test)
    print(f"The network gets {accuracy:.0%} of the test digits right.")

    # The target is the runner-up: the digit that the network considers second most likely.
    # A norm of 1.5 lies between few, strong changes (1) and many, weak ones (2).
    explainer = cf.SVCE(norm=1.5, n_iter=30).fit(model, X_train, data.y_train)
    result = explainer.explain(X_test[:8], confidence=0.9)

    print(f"{result.valid.sum()} of {len(result)} digits became another one:")
    for i in np.flatnonzero(result.valid):
        before, after = result.target_proba[i]
        print(f"  {result.labels[i]} → {result.cf_labels[i]}   P from {before:.2f} to {after:.2f}")

    montage(result, path=folder / "digits.png")
    result.report(
        folder / "report.html",
        title="What turns one digit into another?",
        reference=(X_train, data.y_train),
    )
    print(f"Picture and report: {folder}")
    return result


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/digits"))
