"""Checks of arguments: numbers that are whole and in a range."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from fairrate._errors import ScenarioError

MOST_THREADS = 1024
"""Threads of a run at most."""

LARGEST_SEED = 2**63 - 1
"""The largest seed, as scenarios have it."""

LARGEST_FLOW = 2**32 - 1
"""The largest number of a flow, or of an iteration."""


def whole(value: Any, name: str, least: int, most: int | None = None) -> int:
    """Returns a whole number as an ``int``; those of numpy are whole numbers, too.

    Args:
        value: The number.
        name: The words for it in the error, as ``a seed``.
        least: The least number that is allowed.
        most: The largest one; ``None``: there is none.

    Raises:
        TypeError: If it is no whole number.
        ValueError: If it is out of the range.
    """
    to = f"from {least} to {most}" if most is not None else f"and at least {least}"
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r}") from None
    if found < least or (most is not None and most < found):
        raise ValueError(f"{name} is a whole number {to}, not {found}")
    return found


def seeds_of(seeds: Iterable[Any]) -> list[int]:
    """Returns seeds as whole numbers.

    Raises:
        TypeError: If they are no list, or one is no whole number.
        ScenarioError: If there are none, or one is out of range.
    """
    try:
        given = list(seeds)
    except TypeError:
        raise TypeError(f"seeds are a list of whole numbers, not {seeds!r}; write [{seeds!r}]") from None
    if not given:
        raise ScenarioError("the list of seeds is empty", key="seed", suggestion="give at least one, or leave `seeds` out")
    try:
        return [whole(seed, "a seed", 0, LARGEST_SEED) for seed in given]
    except ValueError as error:
        raise ScenarioError(str(error), key="seed") from None


def threads_of(threads: Any) -> int:
    """Returns a number of threads.

    Raises:
        TypeError: If it is no whole number.
        ValueError: If it is out of range.
    """
    return whole(threads, "`threads`", 1, MOST_THREADS)


def jobs_of(jobs: Any) -> int | None:
    """Returns a number of jobs; ``None`` stands for as many as there are cores.

    Raises:
        TypeError: If it is no whole number.
        ValueError: If it is below 1.
    """
    return None if jobs is None else whole(jobs, "`jobs`", 1)
