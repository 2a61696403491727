"""Studies: what they search, what they refuse, and what an interruption leaves."""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import fairrate
from fairrate import Scenario
from fairrate.tune import Choice, Constraint, Objective, Range, Study, _cli, _goals, _place, _results, _space, _trials

PARAMS: dict[str, Any] = {
    "switch.ecn.kmin": Range("5KB", "0.2MB", log=True),
    "switch.ecn.kmax": Range(1.5, 10, of="switch.ecn.kmin"),
    "transport.dcqcn.ai": Range("20Mbps", "2Gbps", log=True),
}


@pytest.fixture
def incasts() -> Scenario:
    """Incasts on a long flow and short ones, of some milliseconds: 0.01 s a run."""
    def flows(senders: list[int], size: str, start: str) -> dict[str, Any]:
        hosts = [f"h{i}" for i in senders]
        return {"kind": "incast", "receiver": "h0", "senders": hosts, "bytes": size, "start": start, "jitter": "100us"}

    return Scenario.from_dict(
        {
            "duration": "20ms",
            "stop": "all-flows-done",
            "topology": {"kind": "star", "hosts": 8, "rate": "25Gbps"},
            "transport": {"cc": "dcqcn"},
            "traffic": [flows([1, 2], "2MB", "0s"), flows([3, 4, 5, 6, 7], "9KB", "500us"), flows([3, 4, 5], "9KB", "900us")],
        },
        name="incasts",
    )


def study(scenario: Scenario, dir: Path | None = None, **more: Any) -> Study:
    given: dict[str, Any] = {"params": PARAMS, "objectives": ["slowdown-mean:short", "slowdown-mean:long"], "seeds": [1, 2, 3]}
    return Study(scenario, dir=dir, **(given | more))


@pytest.fixture
def executor() -> Any:
    with ThreadPoolExecutor(1) as threads:
        yield threads


def told(one: Study) -> list[Any]:
    return [(t.number, t.state, t.settings, t.runs) for t in one.trials]


def test_a_study_finds_better_settings_and_writes_them(incasts: Scenario, executor: Any, tmp_path: Path) -> None:
    one = study(incasts, tmp_path / "study").run(12, executor=executor)
    assert len(one.trials) == 12 and {t.state for t in one.trials} <= {"complete", "pruned", "infeasible"}
    best = one.best
    assert best is not None and best in one.front and list(best.runs) == [1, 2, 3]
    assert all(re.fullmatch(r"[0-9.]+(KB|MB)", best.settings[key]) for key in ("switch.ecn.kmin", "switch.ecn.kmax"))
    frame = one.frame()
    assert {"switch.ecn.kmin_bytes", "switch.ecn.kmax_bytes", "transport.dcqcn.ai_bps", "slowdown-mean:long"} <= set(frame.columns)
    assert frame.filter(frame["switch.ecn.kmax_bytes"] < 1.4 * frame["switch.ecn.kmin_bytes"]).is_empty()
    table = one.held_out(executor=executor)
    assert table.seeds == tuple(range(4, 14)) and table.trials[0].number == best.number
    assert "slowdown-mean:short" in str(table) and "as given" in str(table)
    assert table.frame().height == len(table.trials) * 3
    one.save(tmp_path / "out", table)
    saved = json.loads((tmp_path / "out/tune.json").read_text())
    assert saved["best"] == best.number and len(saved["trials"]) == 12
    assert (tmp_path / "out/trials.csv").read_text().startswith("trial,state,seeds,")
    assert (tmp_path / "out/pareto.svg").read_text().startswith("<?xml")
    given = one.given
    assert given is not None
    worse = [o.name for o in one.goals.objectives if (given.mean(o.name) or 0) < (best.mean(o.name) or 0)]
    said = _results.losses_against_given(one, best)
    assert len(said) == len(worse) and all(f" % worse in {name} than " in text for name, text in zip(worse, said, strict=True))
    comments = [line for line in (tmp_path / "out/best.toml").read_text().splitlines() if line.startswith("# ")]
    assert comments[1:1 + len(said)] == [f"# {text}." for text in said]
    again = fairrate.run(tmp_path / "out/best.toml")
    assert again.metrics["slowdown-mean:short"] == best.runs[1]["slowdown-mean:short"]
    assert set(one.importance()) <= {"slowdown-mean:short", "slowdown-mean:long"}


def test_one_objective_is_pruned_by_the_median_and_the_best_is_found(incasts: Scenario, executor: Any) -> None:
    one = study(incasts, objectives=["slowdown-mean:short"], seeds=[1, 2, 3, 4]).run(20, executor=executor)
    pruned = [t for t in one.trials if t.state == "pruned"]
    assert pruned and all(len(t.runs) in (1, 2) for t in pruned)
    complete = [t.mean("slowdown-mean:short") for t in one.trials if t.state == "complete"]
    assert one.best is not None and one.best.mean("slowdown-mean:short") == min(m for m in complete if m is not None)
    assert one.front == [one.best]
    whole = study(incasts, objectives=["slowdown-mean:short"], prune=False).run(6, executor=executor)
    assert {t.state for t in whole.trials} == {"complete"}


def test_a_study_goes_on_as_if_nothing_had_stopped_it(incasts: Scenario, executor: Any, tmp_path: Path) -> None:
    straight = told(study(incasts).run(12, executor=executor))
    done = 0

    class Interrupted(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            nonlocal done
            done += 1
            if done == 17:
                raise KeyboardInterrupt
            return super().submit(fn, *args, **kwargs)

    with Interrupted(1) as executor_of_17, pytest.raises(KeyboardInterrupt):
        study(incasts, tmp_path).run(12, executor=executor_of_17)
    between = study(incasts, tmp_path)
    assert any(t.state == "running" for t in between.trials) and len(between.trials) < 12
    assert told(study(incasts, tmp_path).run(12, executor=executor)) == straight
    # Nothing is left to do, and more trials can be asked for.
    with Interrupted(1) as unused:
        done = 16
        assert told(study(incasts, tmp_path).run(12, executor=unused)) == straight
    assert told(study(incasts, tmp_path).run(13, executor=executor))[:12] == straight


def test_jobs_change_no_trial(incasts: Scenario, executor: Any, tmp_path: Path) -> None:
    alone = told(study(incasts).run(6, executor=executor))
    assert told(study(incasts).run(6, jobs=2, cache=tmp_path)) == alone
    # The cache is that of sweeps.
    assert len(list(tmp_path.rglob("summary.json"))) >= 6
    number, _, settings, runs = alone[0]
    grid = {key: [value] for key, value in settings.items()}
    assert fairrate.sweep(incasts, grid=grid, seeds=[1], cache=tmp_path)[0].taken_over, number


def mean_of_the_finished(result: fairrate.Result) -> float | None:
    """A metric that a tuner can fool: it leaves out flows that did not finish."""
    return result.flows.to_polars()["slowdown"].mean()  # type: ignore[return-value]


def test_starving_flows_wins_nothing(incasts: Scenario, executor: Any) -> None:
    # At the second value the long flows never recover from their marks within 20 ms.
    params = {"transport.dcqcn.increase_interval": Choice(["55us", "1s"])}
    starving = incasts.with_({"switch.ecn.kmin": "1KB", "switch.ecn.kmax": "2KB", "switch.ecn.pmax": 1.0, "duration": "4ms"})
    starving = starving.with_({"transport.dcqcn.count_bytes": False})

    def winner(**more: Any) -> tuple[Study, Any]:
        found = study(starving, params=params, sampler="random", **more).run(6, executor=executor)
        assert {t.settings["transport.dcqcn.increase_interval"] for t in found.trials} == {"55us", "1s"}
        return found, found.best

    fooled, best = winner(objectives=[mean_of_the_finished], allow_unfinished=True)
    assert not fooled.goals.constraints
    assert best.settings == {"transport.dcqcn.increase_interval": "1s"}
    held, best = winner(objectives=[mean_of_the_finished])
    assert best.settings == {"transport.dcqcn.increase_interval": "55us"}
    assert all(t.broken == ["unfinished=0"] for t in held.trials if t.settings != best.settings)
    # A metric of fairrate counts them, and says that its value is only a lower bound.
    bounded, best = winner(objectives=["slowdown-p50:long"], allow_unfinished=True)
    assert best.settings == {"transport.dcqcn.increase_interval": "55us"}
    assert any(t.broken == ["slowdown-p50:long is no mere lower bound"] for t in bounded.trials)


def test_constraints_are_kept_under_every_seed(incasts: Scenario, executor: Any) -> None:
    free = study(incasts, objectives=["slowdown-mean:short"], prune=False).run(8, executor=executor)
    marks = sorted(max(v for run in t.runs.values() if (v := run["slowdown-mean:short"]) is not None) for t in free.trials)
    bound = (marks[2] + marks[3]) / 2
    held = study(incasts, objectives=["slowdown-mean:long"], constraints=[f"slowdown-mean:short<={bound}"])
    kept = held.run(8, executor=executor)
    complete = [t for t in kept.trials if t.state == "complete"]
    assert complete and all((run["slowdown-mean:short"] or 0) <= bound for t in complete for run in t.runs.values())
    broken = [t for t in kept.trials if t.state == "infeasible"]
    assert broken and all(t.broken == [f"slowdown-mean:short<={bound:g}"] and t.excess > 0 for t in broken)
    none = study(incasts, constraints=["goodput>=26Gbps"]).run(4, executor=executor)
    assert none.best is None and none.front == [] and "No trial keeps every constraint" in _cli.summary(none, None)
    breaks = r"it breaks `goodput>=26`: goodput is [0-9.]+ Gb/s, [0-9.]+ % off, under seed 1 \(broken under 1 of 1 seeds\)"
    assert re.search(breaks, _cli.summary(none, None))
    said = _cli.summary(kept, None)
    breaks = rf"\d of 8 trials break `slowdown-mean:short<={bound:g}`: slowdown-mean:short is [0-9.]+, [0-9.]+ % off, under seed"
    assert re.search(breaks, said), said
    given, best = kept.given, kept.best
    assert given is not None and best is not None
    is_worse = (given.mean("slowdown-mean:long") or 0) < (best.mean("slowdown-mean:long") or 0)
    assert ("% worse in slowdown-mean:long than the scenario as given" in said) == is_worse


class Counted(ThreadPoolExecutor):
    """An executor that counts."""

    n = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.n += 1
        return super().submit(fn, *args, **kwargs)


CHOICES: dict[str, Any] = {"params": {"switch.pfc": Choice([False, True]), "transport.recovery": Choice(["go-back-n", "selective-repeat"])}}


def test_equal_settings_are_run_once_and_listed_once(incasts: Scenario, tmp_path: Path) -> None:
    """Four settings under two seeds are eight runs at most, and two of the scenario as given, for any number."""
    with Counted(1) as counted:
        one = study(incasts, tmp_path, **CHOICES, seeds=[1, 2], prune=False).run(12, executor=counted)
        assert counted.n <= 4 * 2 + 2
        told_of_one = told(one)
        assert told(study(incasts, tmp_path, **CHOICES, seeds=[1, 2], prune=False).run(12, executor=counted)) == told_of_one
    settings = [_trials.written(t.settings) for t in one.trials]
    assert len(one.trials) == 12 and {t.state for t in one.trials} == {"complete"} and len(set(settings)) <= 4
    firsts = [settings.index(text) for text in settings]
    for trial, first in zip(one.trials, firsts, strict=True):
        assert trial.runs == one.trials[first].runs and trial.reused == (frozenset() if first == trial.number else {1, 2})
    assert one.costs.runs == 2 * len(set(settings))
    assert len(one.front) == len({_trials.written(t.settings) for t in one.front}) and all(not t.reused for t in one.front)
    document = _results.document(one, None)
    assert document["front"] == [t.number for t in one.front]
    assert [each.get("reused") for each in document["trials"]] == [sorted(t.reused) or None for t in one.trials]
    n = 12 - len(set(settings))
    assert f"{n} trials have the settings of an earlier one, whose runs were not done again" in _cli.summary(one, None)


def test_values_are_printed_as_set_takes_them() -> None:
    trial = _trials.Trial(0, "complete", {"switch.pfc": True, "transport.dcqcn.g": 0.5, "transport.recovery": "go-back-n"}, {})
    assert str(trial) == "switch.pfc=true, transport.dcqcn.g=0.5, transport.recovery=go-back-n"


def constant(result: fairrate.Result) -> float:
    """A metric that no parameter changes."""
    return 7.0


def test_nothing_is_important_where_all_trials_are_equal(incasts: Scenario, executor: Any) -> None:
    one = study(incasts, objectives=[constant, "slowdown-mean:long"], seeds=[1], prune=False).run(5, executor=executor)
    assert list(one.importance()) == ["slowdown-mean:long"]
    said = _cli.summary(one, None)
    assert "Importance for constant: none, all 5 complete trials have the same value" in said and "Importance for slowdown-mean:long: " in said


def test_settings_that_no_scenario_has_together_cost_no_run(incasts: Scenario, executor: Any) -> None:
    params = {"switch.ecn.kmin": Range("5KB", "200KB"), "switch.ecn.kmax": Range("10KB", "300KB")}
    one = study(incasts, params=params, sampler="random").run(8, executor=executor)
    refused = [t for t in one.trials if t.state == "refused"]
    assert refused and all(not t.runs and "above `kmax`" in (t.reason or "") for t in refused)


@pytest.mark.parametrize(
    ("more", "message", "help"),
    [
        ({"params": {"switch.ecn.kmn": Range("5KB", "9KB")}}, "no key `kmn`", "`kmin`"),
        ({"params": {"switch.ecn.kmn": None}}, "no key `kmn`", "`kmin`"),
        ({"params": {"transport.dcqcn.aii": Range("5Mbps", "9Mbps")}}, "no key `aii`", "`ai`"),
        ({"params": {"transport.dcqcn.g": Range(0.001, 3.0)}}, "out of range", "0.0001 to 1"),
        ({"params": {"transport.recovery": Choice(["go-back-n", "selective"])}}, "`selective`", "`selective-repeat`"),
        ({"params": {"switch.ecn.kmin": Range("9KB", "5KB")}}, "from 9KB to 5KB", "lower end first"),
        ({"params": {"switch.ecn.kmin": Range("9KB", "5us")}}, "no ends of a range", "KB"),
        ({"params": {"switch.ecn.pmax": Range(0.0, 1.0, log=True)}}, "logarithmic", "above zero"),
        ({"params": {"switch.ecn.kmax": Range(1.5, 3, of="switch.ecn.kmin")}}, "multiple of `switch.ecn.kmin`", ""),
        ({"params": {"transport.hpcc.eta": Range(0.8, 0.9)}}, "changes nothing", "algorithm"),
        ({"params": {}}, "no parameters", "kmin"),
        ({"params": "dcqcn.ai"}, "no list", "params=['dcqcn.ai']"),
        ({"params": ["dcqcn.ai", "transport.dcqcn.ai"]}, "`transport.dcqcn.ai` is given twice", ""),
        ({"params": ["dcqcn.gg"]}, "no key `gg`", "`g`"),
        ({"params": ["hpcc.eta"]}, "changes nothing", "algorithm"),
        (
            {"params": ["rocc.table_size", "dcqcn.ai", "cubic.beta"]},
            "no range is suggested for `transport.rocc.table_size`, `transport.cubic.beta`",
            "'transport.rocc.table_size=LOW..HIGH'; suggested ranges have rocc.period, ",
        ),
        ({"objectives": ["slowdown-p98:short"]}, "`slowdown-p98:short`", "`slowdown-p9"),
        ({"objectives": []}, "list of objectives", ""),
        ({"constraints": ["pfc-pause=0"]}, "`pfc-pause`", "`pfc-pauses`"),
        ({"constraints": ["pfc-pauses"]}, "is no constraint", "pfc-pauses=0"),
        ({"constraints": ["goodput>=5KB"]}, "no bound", "Gb/s"),
        ({"constraints": ["goodput>=nan"]}, "`nan` is no bound of `goodput`", "a number of Gb/s"),
        ({"constraints": ["utilisation<=inf%"]}, "`inf%` is no bound of `utilisation`", "a number of %"),
        ({"constraints": [Constraint("goodput", ">=", float("nan"))]}, "`nan` is no bound of `goodput`", "finite"),
        ({"sampler": "grid"}, "no sampler `grid`", "`tpe`"),
        ({"objectives": ["slowdown-p99:shrt"]}, "no metric is called `slowdown-p99:shrt`", "`slowdown-p99:short`"),
        ({"constraints": ["slowdown-p99:incast<=9"]}, "no metric is called `slowdown-p99:incast`", "blocks of the scenario: block0"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(incasts: Scenario, more: dict[str, Any], message: str, help: str) -> None:
    with pytest.raises((fairrate.TuneError, fairrate.ScenarioError), match=re.escape(message)) as caught:
        study(incasts, **more)
    assert help in caught.value.suggestion


def test_a_metric_that_the_scenario_lacks_is_an_error(incasts: Scenario, executor: Any) -> None:
    with pytest.raises(fairrate.TuneError, match="has no `queue-p99` under seed 1"):
        study(incasts, objectives=["queue-p99"]).run(2, executor=executor)
    with pytest.raises(fairrate.TuneError, match="no metric is called 'goodput_bsp'"):
        study(incasts, objectives=["max:goodput_bsp"]).run(2, executor=executor)


def test_another_study_keeps_its_directory(incasts: Scenario, tmp_path: Path) -> None:
    study(incasts, tmp_path)
    with pytest.raises(fairrate.TuneError, match="the objectives and the seeds differ"):
        study(incasts, tmp_path, objectives=["slowdown-max"], seeds=[1])
    with pytest.raises(fairrate.TuneError, match="the scenario differs"):
        study(incasts.with_(duration="21ms"), tmp_path)


def test_a_file_that_is_no_study_is_an_error(incasts: Scenario, tmp_path: Path) -> None:
    (tmp_path / "study.db").write_text("a text of some length, so that it is no empty database" * 100)
    with pytest.raises(fairrate.TuneError, match=r"study.db` cannot be read"):
        study(incasts, tmp_path)


def test_a_directory_with_something_else_is_refused_and_left_as_it_is(
    incasts: Scenario, executor: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, mine = tmp_path / "incasts.toml", {"best.toml": "mine", "nearest.toml": "mine", "trials.csv": "1,2", "tune.json": "{}"}
    file.write_text(incasts.resolved)
    out = tmp_path / "out"
    out.mkdir()
    for name, text in mine.items():
        (out / name).write_text(text)
    words = [str(file), "--param", "transport.dcqcn.ai", "--objective", "slowdown-mean:short", "--trials", "1", "--jobs", "1"]
    for dir in (out, out / "best.toml"):
        assert _cli.main([*words, "--out", str(dir)]) == 2
        assert f"`{dir}` holds something else than a study" in capsys.readouterr().err
    one = study(incasts).run(1, executor=executor)
    with pytest.raises(fairrate.TuneError, match="something else than a study"):
        one.save(out)
    assert {path.name: path.read_text() for path in out.iterdir()} == mine
    # A directory that was saved to takes the next state of the study.
    one.save(tmp_path / "saved")
    one.save(tmp_path / "saved")


def test_studies_of_another_program_keep_their_file(incasts: Scenario, tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    optuna.create_study(storage=storage, study_name="mine")
    with pytest.raises(fairrate.TuneError, match="has studies of another program"):
        study(incasts, tmp_path)
    assert optuna.get_all_study_names(storage) == ["mine"]


def test_held_out_seeds_are_not_those_of_the_trials(incasts: Scenario, executor: Any) -> None:
    with pytest.raises(fairrate.TuneError, match="have seen 3 of the held-out seeds"):
        study(incasts).held_out(range(3, 6), executor=executor)


def test_every_metric_has_a_nature(incasts: Scenario) -> None:
    metrics = set(fairrate.run(incasts).metrics)
    assert set(_goals.NATURES) == {name for name in metrics if ":block" not in name}
    assert all(_goals.nature(name) for name in metrics)
    assert _goals.nature("slowdown-p99:block1") == ("min", "")
    assert _goals.Objective.of("unfinished-share:block0").direction == "min"
    assert _goals.nature("slowdown-p98:block1") is None
    assert _goals.nature("completion:incast") == ("min", "µs") == _goals.nature("query-p99.9:block1")
    assert Constraint.of("completion:incast<=3ms").bound == 3_000
    assert _goals.nature("slowdown-p99:incast") == ("min", "") and _goals.nature("utilisation:incast") is None
    assert _goals.nature("goodput:incast") == _goals.nature("goodput") and _goals.nature("share:incast") == ("max", "%")


def test_parameters_of_the_command_line() -> None:
    parse = _space.parse_param
    assert parse("switch.ecn.kmin=20KB..2MB:log") == ("switch.ecn.kmin", Range("20KB", "2MB", log=True))
    assert parse("a.b=1..10:of=c.d:log") == ("a.b", Range(1, 10, log=True, of="c.d"))
    assert parse("a=0.1..1") == ("a", Range(0.1, 1))
    assert parse("a=go-back-n|selective-repeat") == ("a", Choice(["go-back-n", "selective-repeat"]))
    assert parse("a=true|false") == ("a", Choice([True, False]))
    assert parse("a") == ("a", None)
    for wrong in ("=1..2", "a=1", "a=1..", "a=1..2:lin"):
        with pytest.raises(fairrate.TuneError):
            parse(wrong)
    assert _cli.parse_seeds("1..3,7") == [1, 2, 3, 7]


def test_values_keep_their_units(incasts: Scenario) -> None:
    axis = _space.axis_of("k", Range("20KB", "2MB", log=True))
    assert [axis.written(x) for x in (20_000, 123_456, 999_999, 1_234_567, 2e6)] == ["20KB", "123KB", "1MB", "1.23MB", "2MB"]
    assert _space.axis_of("k", Range("1KiB", "64KiB")).written(1_259.5) == "1260B"
    assert _space.axis_of("k", Range("1B", "2KB")).written(12.34) == "12B"
    assert _space.axis_of("t", Range("1.5us", "90us")).written(12_345.6) == "12.3us"
    assert _space.axis_of("n", Range(1, 8)).written(3) == 3
    assert _space.axis_of("x", Range(0.01, 1.0)).written(0.123456) == 0.123
    assert _space.usual(incasts, "transport.dcqcn.ai") == Range("4Mbps", "4Gbps", log=True)
    assert _space.usual(incasts, "switch.ecn.kmin") == Range("10KB", "1000KB", log=True)
    assert _space.usual(incasts, "switch.pfc") == Choice([False, True])
    with pytest.raises(fairrate.TuneError, match="has no range"):
        _space.usual(incasts, "switch.queue")


def test_parameters_without_a_range_have_the_suggested_one(incasts: Scenario, executor: Any) -> None:
    ratio = {"transport.dcqcn.hai": Range(2.0, 10.0, of="dcqcn.ai")}
    assert _space.by_key({"dcqcn.ai": None, **ratio}) == {
        "transport.dcqcn.ai": None,
        "transport.dcqcn.hai": Range(2.0, 10.0, of="transport.dcqcn.ai"),
    }
    one = study(incasts, params=["dcqcn.ai", "transport.dcqcn.g", "dcqcn.fast_recovery"], sampler="random")
    assert [(axis.key, axis.kind, axis.log) for axis in one.params] == [
        ("transport.dcqcn.ai", "rate", True),
        ("transport.dcqcn.g", "real", True),
        ("transport.dcqcn.fast_recovery", "whole", False),
    ]
    found = one.run(4, executor=executor).trials
    assert len({trial.settings["transport.dcqcn.ai"] for trial in found}) == 4
    assert all(1 <= trial.settings["transport.dcqcn.fast_recovery"] <= 10 for trial in found)
    assert all(0.001 <= trial.settings["transport.dcqcn.g"] <= 0.25 for trial in found)


@pytest.mark.parametrize(
    "cc", "dcqcn dctcp hpcc powertcp theta-powertcp swift timely patched-timely rocc d2tcp hull dcqcn-pi pacc eqds ndp".split()
)
def test_scenarios_take_both_ends_of_every_suggested_range(incasts: Scenario, cc: str) -> None:
    kept = [key for key, ends in _space.suggestions(f"transport.{cc}.").items() if ends is not None]
    found = _space.axes(incasts.with_({"transport.cc": cc}), kept)
    assert found and [axis.key for axis in found] == kept


def test_objectives_and_constraints() -> None:
    assert Objective.of("slowdown-p99") == Objective("slowdown-p99:all", "min")
    assert Objective.of("goodput").direction == "max" and Objective.of("min:goodput").direction == "min"
    assert Constraint.of("goodput>=50Gbps") == Constraint("goodput", ">=", 50.0)
    assert Constraint.of("queue-p99 <= 0.2MB") == Constraint("queue-p99", "<=", 200.0)
    assert Constraint.of("utilisation>=90%").bound == 90
    bound = Constraint.of("pfc-pauses=0")
    assert bound.excess(0) == 0 and 0 < bound.excess(2) < bound.excess(9) and bound.excess(None) > 0
    names = [str(c) for c in _goals.constraints_of(["unfinished<=3"], False)]
    assert names == ["unfinished<=3"] and _goals.constraints_of([], True) == []


def test_fronts_and_the_rule_that_prunes() -> None:
    points = [[1.0, 4.0], [2.0, 2.0], [4.0, 1.0], [3.0, 3.0], [5.0, 5.0]]
    assert _trials.layers(points) == [0, 0, 0, 1, 2]
    assert not _trials.is_behind([9.0, 9.0], points[:4])
    assert _trials.is_behind([9.0, 9.0], points) and not _trials.is_behind([0.5, 9.0], points)
    # For one objective it is the median.
    line = [[float(i)] for i in range(1, 6)]
    assert _trials.is_behind([3.5], line) and not _trials.is_behind([2.5], line)


def test_the_command(incasts: Scenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "incasts.toml"
    file.write_text(incasts.resolved)
    words = [str(file), "--param", "switch.ecn.kmin=5KB..200KB:log", "--param", "transport.dcqcn.ai", "--jobs", "1"]
    words += ["--objective", "slowdown-mean:short", "--constraint", "pfc-pauses=0", "--trials", "4", "--seeds", "1..2"]
    words += ["--held-out", "11..15", "--out", str(tmp_path / "out")]
    assert _cli.main(words) == 0
    printed = capsys.readouterr().out
    assert "Best trial" in printed and "Held-out seeds 11..15" in printed and "constraints pfc-pauses=0, unfinished=0" in printed
    for name in ("tune.json", "trials.csv", "pareto.svg", "best.toml"):
        assert (tmp_path / "out" / name).exists()
    assert _cli.main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "fairrate.tune/1"
    assert _cli.main([*words, "--out", str(tmp_path / "new"), "--held-out", "2..3"]) == 2
    assert "have seen 2 of the held-out seeds" in capsys.readouterr().err
    assert _cli.main([*words, "--objective", "goodputt"]) == 2
    assert "did you mean `goodput`?" in capsys.readouterr().err


def test_a_search_without_a_solution_says_so_and_fails(
    incasts: Scenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "incasts.toml", tmp_path / "out"
    file.write_text(incasts.resolved)
    words = [str(file), "--param", "transport.dcqcn.ai", "--jobs", "1", "--objective", "slowdown-mean:short", "--trials", "3"]
    words += ["--constraint", "goodput>=26Gbps", "--seeds", "1..2", "--held-out", "11..12", "--out", str(out)]
    assert _cli.main(words) == 1
    printed = capsys.readouterr().out
    assert "No trial keeps every constraint: no setting that was tried is a solution" in printed and "Best trial" not in printed
    assert re.search(r"As given: slowdown-mean:short [0-9.]+\n  it breaks `goodput>=26`: .* % off, under seed \d", printed), printed
    nearest = re.search(r"Nearest, trial (\d): slowdown-mean:short [0-9.]+; transport.dcqcn.ai=\S+\n  it breaks `goodput>=26`", printed)
    assert nearest is not None, printed
    assert "Held-out seeds 11, 12" in printed and "the scenario as given breaks `goodput>=26` under 2 of 2 seeds" in printed
    saved = json.loads((out / "tune.json").read_text())
    assert saved["best"] is None and saved["nearest"] == int(nearest[1]) and saved["given"]["broken"] == ["goodput>=26"]
    assert not (out / "best.toml").exists()
    head = (out / "nearest.toml").read_text().splitlines()[:2]
    assert head[0].startswith("# No trial of this search with fairrate tune keeps every constraint.") and "goodput>=26" in head[1]


def test_where_the_scenario_as_given_breaks_a_constraint_it_is_said(incasts: Scenario, executor: Any) -> None:
    params = {"transport.dcqcn.ai": Range("20Mbps", "2Gbps", log=True)}
    free = study(incasts, params=params, objectives=["slowdown-mean:long"], prune=False).run(6, executor=executor)
    given, best = free.given, free.best
    assert given is not None and best is not None and given.state == "complete" and "it breaks" not in _cli.summary(free, None)
    worst = [max(run["slowdown-mean:long"] or 0 for run in t.runs.values()) for t in (given, best)]
    assert worst[1] < worst[0]
    bound = sum(worst) / 2
    held = study(incasts, params=params, objectives=["slowdown-mean:long"], constraints=[f"slowdown-mean:long<={bound}"], prune=False)
    held.run(6, executor=executor)
    assert held.best is not None and held.given is not None and held.given.broken == [f"slowdown-mean:long<={bound:g}"]
    assert re.search(r"As given: .*\n  it breaks `slowdown-mean:long<=", _cli.summary(held, None))


def test_a_directory_has_one_process_at_a_time(incasts: Scenario, executor: Any, tmp_path: Path) -> None:
    one = study(incasts, tmp_path)
    with _place.lock(tmp_path), pytest.raises(fairrate.TuneError, match="another process works on the study"):
        one.run(1, executor=executor)


def test_without_optuna_the_error_says_how_to_get_it(incasts: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(fairrate.Error, match="needs Optuna") as caught:
        study(incasts)
    assert "pip install" in caught.value.suggestion
