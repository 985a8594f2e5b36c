"""What the reference networks share: the arrangement and the scaling of their input."""

from __future__ import annotations

from torch import Tensor, nn

from .scaling import Standardize


class Network(nn.Module):
    """Arrange and standardize the input; base class of the reference networks.

    Parameters
    ----------
    n_channels : int
        Number of channels, or of features for rows.
    """

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.standardize = Standardize(n_channels)

    def arrange(self, x: Tensor) -> Tensor:
        """Bring instances into the shape (n, channels, ...); series may lack the channel axis."""
        return x.unsqueeze(1) if x.dim() == 2 else x

    def _scaled(self, x: Tensor) -> Tensor:
        """Return the arranged and standardized input."""
        scaled: Tensor = self.standardize(self.arrange(x))
        return scaled
