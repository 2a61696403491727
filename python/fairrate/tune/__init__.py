"""Tuning: a search for settings of a scenario, on Optuna.

    >>> from fairrate.tune import Range, Study
    >>> study = Study("fabric.toml", {"switch.ecn.kmin": Range("20KB", "2MB", log=True)}, ["slowdown-p99:short"], dir="tuned")
    >>> study.run(60).best
"""

from fairrate.tune._goals import Constraint, Objective
from fairrate.tune._held_out import HeldOut
from fairrate.tune._space import Choice, Range
from fairrate.tune._study import Study
from fairrate.tune._trials import Trial

__all__ = ["Choice", "Constraint", "HeldOut", "Objective", "Range", "Study", "Trial"]
