"""Reference networks for images: sizes and layers."""

import pytest
import torch

from contrafact.nn.image_networks import ResidualBlock, ResNet8, SmallCNN


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("size", [(4, 4), (4, 9), (28, 28), (33, 5)])
def test_small_cnn_takes_images_of_any_size(size):
    assert SmallCNN(3, 7)(torch.zeros(2, 3, *size)).shape == (2, 7)


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("size", [(4, 4), (8, 8), (28, 28), (32, 32), (33, 5)])
def test_resnet8_takes_images_of_any_size(size):
    assert ResNet8(3, 7)(torch.zeros(2, 3, *size)).shape == (2, 7)


@pytest.mark.usefixtures("own_random_numbers")
def test_resnet8_has_eight_layers_and_quarters_the_image():
    network = ResNet8(3, 7)
    layers = [m for m in network.modules() if isinstance(m, torch.nn.Conv2d | torch.nn.Linear)]
    assert (
        len([m for m in layers if getattr(m, "kernel_size", None) != (1, 1)]) == 8
    )  # shortcuts apart
    assert network.blocks(torch.rand(6, 3, 32, 32)).shape == (6, 64, 8, 8)


@pytest.mark.usefixtures("own_random_numbers")
def test_a_residual_block_adds_to_its_input():
    """With its body silenced, only the way around it is left."""
    block = ResidualBlock(4, 4, stride=1).eval()
    torch.nn.init.zeros_(block.body[-1].weight)
    x = torch.randn(6, 4, 6, 6)
    assert torch.equal(block(x), x.relu())
