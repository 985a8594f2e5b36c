"""The greedy choice by the determinant, beside the plain formula."""

import torch

from contrafact.explainers.support.row_diversity import choose_diverse, diversity_kernel


def plain_choice(loss, kernel, k, weight):
    chosen = []
    for _ in range(k):
        values = {}
        for i in range(len(loss)):
            if i not in chosen:
                members = [*chosen, i]
                determinant = torch.linalg.det(kernel[members][:, members])
                values[i] = loss[members].sum() / k - weight * determinant
        chosen.append(min(values, key=values.get))
    return chosen


def test_kernel_is_that_of_the_paper():
    rows = torch.tensor([[[0.0, 0.0], [1.0, -2.0]]])
    expected = [[[1.0, 0.25], [0.25, 1.0]]]
    assert diversity_kernel(rows).tolist() == expected


def test_greedy_choice_is_that_of_the_determinant():
    generator = torch.Generator().manual_seed(0)
    rows = torch.rand(6, 9, 4, generator=generator)
    loss = torch.rand(6, 9, generator=generator).double()
    kernel = diversity_kernel(rows)
    for weight in (0.0, 0.5, 5.0):
        chosen = choose_diverse(loss, kernel, 4, weight)
        for pool in range(6):
            assert chosen[pool].tolist() == plain_choice(loss[pool], kernel[pool], 4, weight)


def test_equal_rows_are_not_chosen_twice():
    rows = torch.zeros(1, 3, 2)
    chosen = choose_diverse(torch.zeros(1, 3), diversity_kernel(rows), 3, 1.0)
    assert sorted(chosen[0].tolist()) == [0, 1, 2]
