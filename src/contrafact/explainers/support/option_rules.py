"""Rules for parameters that several methods share; upper limits keep memory and numbers finite."""

from __future__ import annotations

from ...validation import Integer, Real

#: steps, epochs and other numbers that are gone through one by one
STEPS = Integer(at_least=1, at_most=1_000_000)
#: things that are held in memory at the same time
COUNT = Integer(at_least=1, at_most=100_000)
#: weight of a term of a loss
WEIGHT = Real(at_least=0, at_most=1e9)
#: step size
RATE = Real(above=0, at_most=1e6)
#: probability to reach
PROBABILITY = Real(above=0, below=1)
