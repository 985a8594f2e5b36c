"""Explain a torch model of your own, trained by your own loop.

GunPoint: an actor draws a gun, or only points; the series follows the hand. The model is a plain
nn.Module that returns logits. We explain it, check the answers, and undo unneeded changes.

    python examples/own_torch_model.py [folder]
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import contrafact as cf
from contrafact.report import plot_methods, write_report

NAMES = np.array(["gun", "point"])


class MyNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv1d(1, 32, 9, padding=4), nn.BatchNorm1d(32), nn.ReLU(),
            nn.Conv1d(32, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(32, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (n, 1, 150) to logits (n, 2)
        return self.head(self.convolutions(x).mean(2))


def main(folder: Path, epochs: int = 150) -> cf.Counterfactuals:
    """Train, explain, refine, and write picture, arrays and report into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    data = cf.load_dataset("GunPoint")
    X_train = torch.tensor(data.X_train).float()
    X_test = torch.tensor(data.X_test).float()
    y_train = torch.tensor(data.y_train == "2").long()
    y_test = torch.tensor(data.y_test == "2").long()

    torch.manual_seed(0)
    network = MyNetwork()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.005)
    for _ in range(epochs):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(X_train), y_train).backward()
        optimizer.step()
    network.eval()
    accuracy = (network(X_test).argmax(1) == y_test).float().mean()
    print(f"The network gets {accuracy:.0%} of the test set right.")

    # The class names are given once, in the order of the logits.
    model = cf.as_classifier(network, classes=NAMES)
    result = cf.CELS().fit(model, X_train, NAMES[y_train]).explain(X_test[:20])

    # `result.valid` is the network's answer for the final arrays. Here we ask it again ourselves.
    predicted = NAMES[network(result.X_cf).argmax(1)]
    assert ((predicted == result.target) == result.valid).all()
    print(f"{result.valid.sum()} of {len(result)} now read as the other movement.")

    # `refine` undoes every change that is not needed, and never makes a valid row invalid.
    small = cf.refine(result, model)
    before = result.changed_fraction.mean()
    print(f"Points changed: {before:.0%}, refined {small.changed_fraction.mean():.0%}.")

    small.save(folder / "refined.npz")
    again = cf.Counterfactuals.load(folder / "refined.npz")
    both = {"CELS": result, "CELS, refined": again}
    plot_methods(both, 0, folder / "movement.png")
    known = (X_train, NAMES[y_train])
    write_report(both, folder / "report.html", title="Gun or point?", reference=known)
    print(f"Picture, arrays and report: {folder}")
    return again


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/own_torch_model"))
