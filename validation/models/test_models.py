"""Every number of every model is inside its tolerance or a known finding, and wrong rules are noticed."""

import pytest

import compare


@pytest.mark.parametrize("model", compare.MODELS)
def test_numbers_are_inside_or_known(model):
    known = compare.findings()
    rows = list(compare.rows_of(compare.BINARY, [model]))
    assert rows
    unexpected = [row for row in rows if row[-1] == ((row[0], row[1]) in known)]
    assert not unexpected


# A rule that differs from the model's by a little moves numbers out of tolerance: the comparison is not empty.
WRONG = {
    "perc-chain": {"transport.perc.increase_wait": 1.5},
    "perc-chain5": {"transport.perc.first_rate_waits": "true"},
    "charny-chain": {"transport.charny.increase_wait": 1.0},
    "rcp-start": {"transport.rcp.alpha": 0.45},
    "rcp-join": {"transport.rcp.alpha": 0.45},
    "rcp-gentle": {"transport.rcp.beta": 0.35},
    "xcp-join": {"transport.xcp.gamma": 0.12},
    "xcp-start": {"transport.xcp.beta": 0.15},
    "rdcn-one": {"topology.day": "224.9us"},
    "retcp": {"transport.retcp.jump_up": 1.9},
    "retcp-voq": {"transport.retcp.voq": "150KB"},
    "pfabric-burst": {"transport.pfabric.timeout_rtts": 3.5},
    "pfabric-incast": {"switch.queue_limit": "31440B"},
    "pfabric-srpt": {"transport.pfabric.initial_window": 0.9},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_rule_is_outside(case):
    cases = {name: entry for model in compare.MODELS for name, entry in compare.module(model).CASES.items()}
    scenario, settings, check = cases[case]
    results, directory = compare.run(compare.BINARY, scenario, settings | WRONG[case])
    results.scenario = compare.values_of(scenario, settings)
    with directory:
        assert not all(abs(got - want) <= tolerance for _, want, got, tolerance in check(results))
