"""Parameters of a study: ranges with units, choices, and their values as a scenario has them."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fairrate import _native
from fairrate._errors import ScenarioError, TuneError
from fairrate._scenario import Scenario

if TYPE_CHECKING:
    import optuna

UNITS: dict[str, dict[str, float]] = {
    "size": {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
    "rate": {"bps": 1, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9, "Tbps": 1e12},
    "time": {"ps": 1e-3, "ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9},
}
"""Units of quantities, as scenarios have them: in bytes, bits per second and nanoseconds."""

SUFFIXES = {"size": "_bytes", "rate": "_bps", "time": "_ns"}
"""Ends of the names of columns in these units."""

DIGITS = 3
"""Significant digits of the values that are tried."""


@dataclass(frozen=True)
class Quantity:
    """A size, a rate or a time.

    Attributes:
        kind: ``size``, ``rate`` or ``time``.
        value: In bytes, bits per second or nanoseconds.
        unit: The unit that it was written in.
    """

    kind: str
    value: float
    unit: str


def quantity(text: str) -> Quantity | None:
    """Returns the quantity that a text such as ``20KB`` says; ``None`` if it says none."""
    found = re.fullmatch(r"\s*([0-9][0-9_]*\.?[0-9]*|\.[0-9]+)\s*([A-Za-zµ]+)\s*", text)
    for kind, units in UNITS.items():
        if found is not None and found[2] in units:
            return Quantity(kind, float(Decimal(found[1].replace("_", "")) * Decimal(str(units[found[2]]))), found[2])
    return None


@dataclass(frozen=True)
class Range:
    """A range of values, both ends included.

    Values have the unit of the ends and three significant digits. Two whole numbers give whole numbers; write ``1.0`` for real
    ones.

    Attributes:
        low: Lower end: a number, or a text with its unit, as ``"20KB"``.
        high: Upper end, of the same kind.
        log: Whether equal ratios, and not equal differences, are as likely as each other.
        of: Key of another parameter of the study. Values are then multiples of that one's, and the ends plain numbers.
    """

    low: float | str
    high: float | str
    log: bool = False
    of: str | None = None


@dataclass(frozen=True, init=False)
class Choice:
    """Some values, without an order.

    Attributes:
        values: The values, as a scenario has them.
    """

    values: tuple[str | float | bool, ...]

    def __init__(self, values: Any) -> None:
        object.__setattr__(self, "values", tuple(values))


Parameter = Range | Choice | None
"""The values of a key; ``None``: the range that :func:`usual` gives it."""

Parameters = Mapping[str, Parameter] | Iterable[str]
"""Values by key; or keys alone, each with the range that :func:`usual` gives it."""


def parse_param(text: str) -> tuple[str, Parameter]:
    """Reads a parameter of the command line.

    ``KEY=LOW..HIGH``, with ``:log`` and ``:of=KEY`` behind it; ``KEY=A|B|C``; or ``KEY`` alone for the usual range.

    Raises:
        TuneError: If the text has none of these forms.
    """
    key, equals, rest = (part.strip() for part in text.partition("="))
    if not key:
        raise _bad(f"`{text}` names no key", "write it as 'switch.ecn.kmin=20KB..2MB:log'")
    if not equals:
        return key, None
    if "|" in rest:
        return key, Choice(_plain(word) for word in rest.split("|"))
    ends, *options = rest.split(":")
    low, dots, high = (part.strip() for part in ends.partition(".."))
    if not dots or not low or not high:
        raise _bad(f"`{rest}` of `{key}` is no range", "write LOW..HIGH, as 20KB..2MB, or words with | between them")
    log, of = False, None
    for option in options:
        if option.strip() == "log":
            log = True
        elif option.strip().startswith("of="):
            of = option.strip()[3:]
        else:
            raise _bad(f"`{key}` has an unknown option `{option}`", "options are `log` and `of=KEY`")
    return key, Range(_plain(low), _plain(high), log, of)


def full_key(key: str) -> str:
    """Returns a key of a scenario; ``dcqcn.ai`` is short for ``transport.dcqcn.ai``."""
    algorithm, dot, rest = key.partition(".")
    return f"transport.{key}" if dot and "." not in rest and _native.tune_ranges(algorithm) is not None else key


def by_key(params: Parameters) -> dict[str, Parameter]:
    """Returns parameters by their full keys.

    Raises:
        TuneError: If one is given twice, or ``params`` is no list.
    """
    if isinstance(params, str):
        raise _bad(f"the parameters are {params!r}, which is no list", f"write params=[{params!r}]")
    pairs = params.items() if isinstance(params, Mapping) else ((key, None) for key in params)
    found: dict[str, Parameter] = {}
    for short, given in pairs:
        key = full_key(short)
        if key in found:
            raise _bad(f"`{key}` is given twice", "leave one of them out")
        found[key] = replace(given, of=full_key(given.of)) if isinstance(given, Range) and given.of else given
    return found


def _plain(text: str) -> Any:
    """Returns the number or truth value that a text says, or else the text."""
    text = text.strip().strip("\"'")
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True)
class Axis:
    """A parameter that was checked.

    Attributes:
        key: Key of the scenario.
        kind: ``size``, ``rate``, ``time``, ``real``, ``whole`` or ``choice``.
        low: Lower end, in base units.
        high: Upper end.
        units: Units of the ends.
        log: Whether its scale is logarithmic.
        of: Key of the parameter that its values are multiples of.
        values: Values of a choice.
    """

    key: str
    kind: str
    low: float = 0
    high: float = 0
    units: tuple[str, ...] = ()
    log: bool = False
    of: str | None = None
    values: tuple[str | float | bool, ...] = ()

    def distribution(self) -> optuna.distributions.BaseDistribution:
        """Returns Optuna's form of it."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.kind == "choice":
            return CategoricalDistribution(self.values)
        if self.kind == "whole":
            return IntDistribution(int(self.low), int(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)

    def written(self, drawn: Any) -> Any:
        """Returns a drawn value as a scenario has it: rounded, with its unit."""
        if self.kind == "choice":
            return drawn
        if self.kind == "whole":
            return int(drawn)
        value = min(max(float(f"{drawn:.{DIGITS}g}"), self.low), self.high)
        if self.kind == "real":
            return value
        return _in_units(self.kind, value, self.units)

    def about(self) -> dict[str, Any]:
        """Returns its definition, for files."""
        if self.kind == "choice":
            return {"values": list(self.values)}
        ends = [self.low, self.high] if not self.units else [_in_units(self.kind, x, self.units) for x in (self.low, self.high)]
        return {"low": ends[0], "high": ends[1], "log": self.log, **({"of": self.of} if self.of else {})}


def _in_units(kind: str, value: float, units: tuple[str, ...]) -> str:
    """Writes a quantity in the largest of the units that leaves at least 1, or in the smallest; a size in whole bytes."""
    factors = UNITS[kind]
    fitting = [u for u in units if factors[u] <= value * (1 + 1e-9)] or [min(units, key=lambda u: factors[u])]
    unit = max(fitting, key=lambda u: factors[u])
    number = Decimal(f"{value / factors[unit]:.{DIGITS + 3}g}").normalize()
    if kind == "size" and number * Decimal(factors[unit]) % 1:
        return f"{round(value)}B"
    return f"{number:f}{unit}"


def axes(scenario: Scenario, params: Parameters) -> list[Axis]:
    """Checks the parameters of a study against its scenario.

    Raises:
        ScenarioError: If the scenario has no such key, or refuses an end of a range.
        TuneError: If a range is none, or of another algorithm; or if a parameter without a range has no suggested one.
    """
    named = by_key(params)
    if not named:
        raise _bad("there are no parameters", "give one at least, as {'switch.ecn.kmin': Range('20KB', '2MB', log=True)}")
    _check_suggested(key for key, given in named.items() if given is None)
    found = [axis_of(key, usual(scenario, key) if given is None else given) for key, given in named.items()]
    known = {axis.key: axis for axis in found}
    for axis in found:
        if axis.of is not None and (axis.of not in known or known[axis.of].kind == "choice" or known[axis.of].of):
            message = f"`{axis.key}` is a multiple of `{axis.of}`, which is no parameter with a range of its own"
            raise _bad(message, f"ranges of their own have {', '.join(a.key for a in found if not a.of and a.low < a.high)}")
    ends = [settings(found, {a.key: (a.values[0] if a.values else a.low) for a in found})]
    ends.append(settings(found, {a.key: (a.values[-1] if a.values else a.high) for a in found}))
    for axis in found:
        _check(scenario, axis, ends)
    return found


def axis_of(key: str, given: Range | Choice) -> Axis:
    """Checks a parameter alone."""
    if isinstance(given, Choice):
        if len(given.values) < 2:
            raise _bad(f"`{key}` has {len(given.values)} values to choose from", "give two at least")
        return Axis(key, "choice", values=given.values)
    if not isinstance(given, Range):
        raise _bad(f"`{key}` is {given!r}", "give a fairrate.tune.Range or a fairrate.tune.Choice")
    sides = (given.low, given.high)
    if all(isinstance(x, int | float) and not isinstance(x, bool) for x in sides):
        kind = "whole" if all(isinstance(x, int) for x in sides) and given.of is None else "real"
        low, high, units = float(given.low), float(given.high), ()
    else:
        read = [quantity(x) if isinstance(x, str) else None for x in sides]
        first, last = read
        if first is None or last is None or first.kind != last.kind:
            known = "; ".join(f"{kind}s in {', '.join(units)}" for kind, units in UNITS.items())
            raise _bad(f"`{given.low}` and `{given.high}` of `{key}` are no ends of a range", f"write plain numbers, or {known}")
        if given.of is not None:
            raise _bad(f"`{key}` is a multiple of `{given.of}`", "write its ends as plain numbers, as 1.5 and 10")
        kind, low, high = first.kind, first.value, last.value
        units = tuple(dict.fromkeys((first.unit, last.unit)))  # type: ignore[assignment]
    if not (math.isfinite(low) and low < high and math.isfinite(high)):
        raise _bad(f"the range of `{key}` goes from {given.low} to {given.high}", "give the lower end first")
    if given.log and low <= 0:
        raise _bad(f"the range of `{key}` begins at {given.low}, and has a logarithmic scale", "begin above zero")
    return Axis(key, kind, low, high, units, given.log, given.of)


def settings(found: list[Axis], drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values as a scenario has them, multiples worked out."""
    plain = {axis.key: axis.written(drawn[axis.key]) for axis in found}
    known = {axis.key: axis for axis in found}
    for axis in found:
        if axis.of is None:
            continue
        base = known[axis.of]
        text, factor = plain[axis.of], float(plain[axis.key])
        read = quantity(text) if isinstance(text, str) else None
        if read is None:
            multiple = float(f"{text * factor:.{DIGITS}g}")
            plain[axis.key] = round(multiple) if base.kind == "whole" else multiple
        else:
            plain[axis.key] = _in_units(base.kind, float(f"{read.value * factor:.{DIGITS}g}"), base.units)
    return plain


def number(value: Any) -> float | None:
    """Returns a scenario's value in base units; ``None`` for words."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    read = quantity(value) if isinstance(value, str) else None
    return None if read is None else read.value


def usual(scenario: Scenario, key: str) -> Range | Choice:
    """Returns the range of a parameter that was given none.

    A numeric parameter of a built-in algorithm has the one that the registry of algorithms suggests. Elsewhere it is a tenth to ten
    times the scenario's value, on a logarithmic scale.

    Raises:
        TuneError: If there is no suggested range, or the value is no number above zero.
        ScenarioError: If the scenario has no such key.
    """
    _check_suggested([key])
    suggested = suggestions(key).get(key)
    if suggested is not None:
        return suggested
    value = present(scenario, key)
    if isinstance(value, bool):
        return Choice((False, True))
    base = number(value)
    if base is None or base <= 0:
        if value is None:
            # The scenario says what is wrong with the key, with a suggestion.
            scenario.with_({key: "?"})
        raise _bad(f"`{key}` has no range", f"the scenario's value is {value!r}; give a range, as '{key}=LOW..HIGH'")
    if isinstance(value, str):
        read = quantity(value)
        assert read is not None
        ends = [_in_units(read.kind, base * factor, (read.unit,)) for factor in (0.1, 10)]
        return Range(ends[0], ends[1], log=True)
    if isinstance(value, int):
        return Range(max(1, value // 10), value * 10, log=True)
    return Range(base / 10, base * 10, log=True)


def suggestions(key: str) -> dict[str, Range | None]:
    """Returns the suggested ranges of all numeric parameters of the built-in algorithm that ``key`` belongs to, by key."""
    section, _, name = key.rpartition(".")[0].partition(".")
    known = (_native.tune_ranges(name) if section == "transport" and name else None) or []

    def one(low: str, high: str, log: bool) -> Range:
        return Range(_plain(low), _plain(high), log)

    return {f"transport.{name}.{param}": None if ends is None else one(*ends) for param, ends in known}


def _check_suggested(keys: Iterable[str]) -> None:
    """Refuses numeric parameters of built-in algorithms that have no suggested range."""
    lacking = [key for key in keys if suggestions(key).get(key, True) is None]
    if not lacking:
        return
    with_one = {key: None for each in lacking for key, ends in suggestions(each).items() if ends is not None}
    names = ", ".join(f"`{key}`" for key in lacking)
    others = f"; suggested ranges have {', '.join(key.removeprefix('transport.') for key in with_one)}" if with_one else ""
    raise _bad(f"no range is suggested for {names}", f"give one, as '{lacking[0]}=LOW..HIGH'{others}")


def present(scenario: Scenario, key: str) -> Any:
    """Returns the value of a key in the resolved scenario; ``None`` if it is not there."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    at: Any = tomllib.loads(scenario.resolved)
    for part in key.split("."):
        if isinstance(at, dict):
            at = at.get(part)
        elif isinstance(at, list) and part.isdigit() and int(part) < len(at):
            at = at[int(part)]
        else:
            return None
    return at


def _check(scenario: Scenario, axis: Axis, ends: list[dict[str, Any]]) -> None:
    """Tries both ends of a parameter, alone or, if they need it, with the same ends of all others."""
    for all_of_them in ends:
        try:
            scenario.with_({axis.key: all_of_them[axis.key]})
        except ScenarioError as alone:
            try:
                scenario.with_(all_of_them)
            except ScenarioError:
                raise alone from None
    # A section that the resolved scenario lacks is one of another algorithm, unless the algorithm is a parameter, too.
    first, *section = axis.key.split(".")[:-1] or [""]
    varies = {"transport.cc", "transport.kind"} & set(ends[0])
    if first == "transport" and section and not varies and present(scenario, f"transport.{section[0]}") is None:
        message = f"`{axis.key}` changes nothing in `{scenario.name}`, whose algorithm is `{scenario.cc}`"
        raise _bad(message, "leave it out, or give another algorithm by `cc`")


def _bad(message: str, suggestion: str) -> TuneError:
    return TuneError(message, code="tune::bad_parameter", suggestion=suggestion)
