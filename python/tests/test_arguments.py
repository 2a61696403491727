"""Wrong arguments: each has an error that names it, and numbers of numpy are numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import fairrate
from fairrate import Scenario
from fairrate.tune import Choice, Study


@pytest.fixture(scope="module")
def burst() -> Scenario:
    """Four flows of 20 KB into one host."""
    traffic = [{"kind": "incast", "receiver": "h0", "senders": 4, "bytes": "20KB"}]
    topology = {"kind": "star", "hosts": 5, "rate": "25Gbps"}
    return Scenario.from_dict({"stop": "all-flows-done", "topology": topology, "transport": {"cc": "dctcp"}, "traffic": traffic}, name="burst")


@pytest.fixture(scope="module")
def result(burst: Scenario) -> fairrate.Result:
    return fairrate.run(burst)


NAN, INF = float("nan"), float("inf")

OF_A_SWEEP: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"threads": 0}, ValueError, "`threads` is a whole number from 1 to 1024, not 0"),
    ({"threads": 1025}, ValueError, "`threads` is a whole number from 1 to 1024, not 1025"),
    ({"threads": 1.5}, TypeError, "`threads` is a whole number, not 1.5"),
    ({"jobs": -1}, ValueError, "`jobs` is a whole number and at least 1, not -1"),
    ({"jobs": 0}, ValueError, "`jobs` is a whole number and at least 1, not 0"),
    ({"seeds": [1.7]}, TypeError, "a seed is a whole number, not 1.7"),
    ({"seeds": ["1"]}, TypeError, "a seed is a whole number, not '1'"),
    ({"seeds": 3}, TypeError, "seeds are a list of whole numbers, not 3; write [3]"),
    ({"seeds": [-1]}, fairrate.ScenarioError, "`seed`: a seed is a whole number from 0 to 9223372036854775807, not -1"),
    ({"seeds": [2**63]}, fairrate.ScenarioError, "`seed`: a seed is a whole number from 0 to 9223372036854775807, not 9223372036854775808"),
    ({"grid": {"switch.dt_alpha": [1.0, NAN]}}, fairrate.ScenarioError, "`switch.dt_alpha`: `nan` is no number of a scenario"),
    ({"grid": {"switch.dt_alpha": 1.0}}, fairrate.ScenarioError, "`switch.dt_alpha`: the grid has a list of values for each key, not 1.0"),
    ({"grid": {"traffic.0.bytes": "9KB"}}, fairrate.ScenarioError, "the grid has a list of values for each key, not '9KB'"),
]


@pytest.mark.parametrize(("more", "kind", "message"), OF_A_SWEEP)
def test_arguments_of_a_sweep(burst: Scenario, more: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        fairrate.sweep(burst, ["dctcp"], **more)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("switch.dt_alpha", NAN, "`switch.dt_alpha`: `nan` is no number of a scenario"),
        ("switch.dt_alpha", numpy.float64(INF), "`switch.dt_alpha`: `inf` is no number of a scenario"),
        ("seed", 2**63, "`seed`: `9223372036854775808` is no number of a scenario"),
        ("traffic", [{"kind": "poisson", "load": NAN}], "`traffic.0.load`: `nan` is no number of a scenario"),
        ("traffic.0.bytes", None, "`traffic.0.bytes`: `None` is no value"),
    ],
)
def test_values_that_no_scenario_has(burst: Scenario, key: str, value: Any, message: str) -> None:
    with pytest.raises(fairrate.ScenarioError, match=re.escape(message)) as caught:
        burst.with_({key: value})
    assert caught.value.key is not None and caught.value.key.startswith(key)
    with pytest.raises(fairrate.ScenarioError, match=re.escape(message)):
        Scenario.from_dict({key: value})
    with pytest.raises(TypeError, match="complex is no value of a scenario"):
        burst.with_({key: 1j})


OF_A_RESULT: list[tuple[Callable[[fairrate.Result], object], type[Exception], str]] = [
    (lambda r: r.trace(-1), ValueError, "a flow is a whole number from 0 to 4294967295, not -1"),
    (lambda r: r.trace([0, 2**32]), ValueError, "a flow is a whole number from 0 to 4294967295, not 4294967296"),
    (lambda r: r.trace(1.0), TypeError, "a flow is a whole number, not 1.0"),  # type: ignore[arg-type]
    (lambda r: r.trace("1"), TypeError, "a flow is a whole number, not '1'"),  # type: ignore[arg-type]
    (lambda r: fairrate.explain(r, -1), ValueError, "a flow is a whole number from 0 to 4294967295, not -1"),
    (lambda r: fairrate.explain(r, 1.5), TypeError, "a flow is a whole number, not 1.5"),  # type: ignore[arg-type]
    (lambda r: fairrate.explain(r, iteration=-1), ValueError, "an iteration is a whole number from 0 to 4294967295, not -1"),
    (lambda r: fairrate.explain(r, worst=0), ValueError, "`worst` is a whole number and at least 1, not 0"),
    (lambda r: fairrate.run(r.scenario, threads=0), ValueError, "`threads` is a whole number from 1 to 1024, not 0"),
]


@pytest.mark.parametrize(("call", "kind", "message"), OF_A_RESULT)
def test_numbers_of_flows_and_threads(
    result: fairrate.Result, call: Callable[[fairrate.Result], object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        call(result)


def test_numbers_of_numpy_are_numbers(burst: Scenario, result: fairrate.Result, tmp_path: Path) -> None:
    one = numpy.int64(1)
    assert set(result.trace(one).to_polars()["flow"]) == {1} == set(result.trace(numpy.array([1])).to_polars()["flow"])
    assert fairrate.explain(result, one) == fairrate.explain(result, 1)
    sweep = fairrate.sweep(burst, ["dctcp"], seeds=numpy.arange(1, 3), jobs=one, threads=one)
    assert [run.seed for run in sweep] == [1, 2] and all(type(run.seed) is int for run in sweep)
    # A study keeps its seeds in a file of JSON.
    study = Study(burst, {"transport.cc": Choice(["dctcp", "hpcc"])}, ["slowdown-mean"], seeds=numpy.arange(1, 3), dir=tmp_path)
    assert study.seeds == (1, 2)
    assert burst.with_(seed=one).seed == 1 and burst.with_({"switch.dt_alpha": numpy.float32(0.5)}).resolved


def test_two_functions_of_one_name_are_two_columns_of_it(burst: Scenario) -> None:
    """The second lambda had the place of the first, without a word."""
    sweep = fairrate.sweep(burst, ["dctcp"])

    def label(result: fairrate.Result) -> float:
        return 1.0

    for metrics in [(lambda r: 1.0, lambda r: 2.0), (label,)]:
        with pytest.raises(ValueError, match="two columns are called '(<lambda>|label)'; define the function by `def`"):
            sweep.frame(*metrics)
    assert sweep.frame("goodput", "goodput", lambda r: 1.0).columns[-2:] == ["goodput", "<lambda>"]
    with pytest.raises(fairrate.TuneError, match="two metrics are called `<lambda>`"):
        Study(burst, ["switch.dt_alpha"], [lambda r: 1.0, lambda r: 2.0])


def test_arguments_of_a_study(burst: Scenario) -> None:
    with pytest.raises(TypeError, match=r"a seed is a whole number, not 1\.5"):
        Study(burst, ["switch.dt_alpha"], ["slowdown-mean"], seeds=[1.5])  # type: ignore[list-item]
    study = Study(burst, ["switch.dt_alpha"], ["slowdown-mean"], seeds=[1])
    with pytest.raises(ValueError, match="`jobs` is a whole number and at least 1, not 0"):
        study.run(1, jobs=0)
    with pytest.raises(ValueError, match="`threads` is a whole number from 1 to 1024, not 0"):
        study.run(1, threads=0)
    with pytest.raises(ValueError, match="`trials` is a whole number and at least 0, not -1"):
        study.run(-1)
    with pytest.raises(TypeError, match=r"a seed is a whole number, not 9\.5"):
        study.held_out([9.5])  # type: ignore[list-item]
