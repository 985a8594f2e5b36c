"""Choose cases: all single strange arguments in a seeded order, then pairs of them."""

import random
from itertools import islice

from doors import DOORS
from judging import Case, values_for


def singles(door):
    """All cases of a door with one strange argument, in a seeded order."""
    cases = [
        Case(door.name, ((name, value),))
        for name in door.parameters
        for value in values_for(door, name)
    ]
    random.Random(door.name).shuffle(cases)
    return cases


def pairs(door):
    """Cases of a door with two strange arguments, without end."""
    parameters = list(door.parameters)
    rng = random.Random(f"two of {door.name}")
    while len(parameters) > 1:
        two = sorted(rng.sample(parameters, 2))
        yield Case(door.name, tuple((name, rng.choice(values_for(door, name))) for name in two))


def choose(door, count):
    """The first cases of a door: single ones, then pairs."""
    first = singles(door)[:count]
    return first + list(islice(pairs(door), max(0, count - len(first))))


def counts(total):
    """Share a number of cases among the doors, by their weights."""
    weights = {}
    for name, door in DOORS.items():
        parameters = door.parameters
        weights[name] = door.weight * len(parameters) ** 0.5 if parameters else 0
    unit = total / sum(weights.values())
    return {name: round(unit * weight) for name, weight in weights.items()}
