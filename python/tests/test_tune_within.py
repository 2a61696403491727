"""Pruning within runs: what a run is asked, what its answers end, and what that saves."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import fairrate
from fairrate import Scenario, _native
from fairrate.tune import Choice, Study, _cli, _within
from fairrate.tune._verdicts import Verdicts
from test_tune import executor, incasts, study  # noqa: F401 (fixtures)

TIMES = "25%,50%,75%"

MANY: dict[str, Any] = {"objectives": ["slowdown-mean:short"], "sampler": "random", "seeds": [1, 2], "seed": 3}


def told(one: Study) -> list[Any]:
    return [(t.number, t.state, t.settings, t.runs, t.ends, t.stopped) for t in one.trials]


def test_pruning_within_runs_saves_a_third_and_finds_the_same_best_trial(incasts: Scenario, executor: Any) -> None:  # noqa: F811
    # At random, so that the same settings are tried.
    whole = study(incasts, prune=False, **MANY).run(28, executor=executor)
    pruned = study(incasts, prune=TIMES, **MANY).run(28, executor=executor)
    assert [t.settings for t in whole.trials] == [t.settings for t in pruned.trials]
    assert whole.best is not None and pruned.best is not None and pruned.best.number == whole.best.number
    assert whole.costs.stopped == 0 == whole.costs.saved_ns
    assert pruned.costs.simulated_ns <= 2 / 3 * whole.costs.simulated_ns, (pruned.costs, whole.costs)
    stopped = [t for t in pruned.trials if t.stopped]
    assert len(stopped) == pruned.costs.stopped > 0 and {t.state for t in stopped} == {"pruned"}
    # Not before five complete trials are there to compare with.
    assert all(sum(t.state == "complete" and t.number < s.number for t in pruned.trials) >= 5 for s in stopped)
    frame = pruned.frame()
    assert frame["stopped_ns"].drop_nulls().len() == len(stopped)


def test_runs_are_stopped_alike_for_any_number_of_jobs_and_from_a_cache(incasts: Scenario, executor: Any, tmp_path: Path) -> None:  # noqa: F811
    alone = study(incasts, prune=TIMES, **MANY).run(16, executor=executor)
    assert any(t.stopped for t in alone.trials)
    assert told(study(incasts, prune=TIMES, **MANY).run(16, jobs=2)) == told(alone)
    # Complete runs that others have left are judged as if they were under way.
    study(incasts, prune=False, **MANY).run(16, executor=executor, cache=tmp_path)
    n = len(list(tmp_path.rglob("summary.json")))
    assert told(study(incasts, prune=TIMES, **MANY).run(16, executor=executor, cache=tmp_path)) == told(alone)
    assert len(list(tmp_path.rglob("summary.json"))) == n
    # What was stopped is not kept.
    study(incasts, prune=TIMES, **MANY).run(16, executor=executor, cache=tmp_path / "new")
    kept = list((tmp_path / "new").rglob("summary.json"))
    assert all(json.loads(file.read_text())["state"] == "complete" for file in kept)
    complete = sum(len(t.runs) for t in alone.trials)
    assert complete <= len(kept) <= complete + 2


@pytest.mark.parametrize("objectives", [["slowdown-mean:short"], ["slowdown-mean:short", "slowdown-mean:long"]])
def test_a_study_with_stopped_runs_goes_on_as_if_nothing_had_happened(
    incasts: Scenario, executor: Any, tmp_path: Path, objectives: list[str]  # noqa: F811
) -> None:
    more = MANY | {"objectives": objectives, "sampler": "tpe", "prune": TIMES}
    straight = study(incasts, **more).run(16, executor=executor)
    assert any(t.stopped for t in straight.trials)
    for last in (13, 22):
        done = 0

        class Interrupted(ThreadPoolExecutor):
            def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
                nonlocal done
                done += 1
                if done == last:
                    raise KeyboardInterrupt
                return super().submit(fn, *args, **kwargs)

        dir = tmp_path / str(last)
        with Interrupted(1) as short, pytest.raises(KeyboardInterrupt):
            study(incasts, dir, **more).run(16, executor=short)
        assert any(t.state == "running" for t in study(incasts, dir, **more).trials)
        assert told(study(incasts, dir, **more).run(16, executor=executor)) == told(straight)


@pytest.mark.parametrize("objectives", [["slowdown-mean:short"], ["slowdown-mean:short", "slowdown-mean:long"]])
def test_runs_of_equal_settings_are_judged_as_if_they_were_done_again(
    incasts: Scenario, executor: Any, monkeypatch: pytest.MonkeyPatch, objectives: list[str]  # noqa: F811
) -> None:
    ranges = {"switch.ecn.kmin": Choice(["5KB", "20KB", "200KB"]), "switch.ecn.pmax": Choice([0.01, 1.0])}
    more = MANY | {"objectives": objectives, "params": ranges, "prune": TIMES}
    one = study(incasts, **more).run(24, executor=executor)
    assert any(t.reused for t in one.trials) and any(t.stopped and t.reused for t in one.trials)
    assert one.costs.runs + one.costs.stopped < sum(len(t.ends) + len(t.stopped) for t in one.trials)
    assert told(study(incasts, **more).run(24, jobs=2)) == told(one)
    monkeypatch.setattr(Verdicts, "take_over", lambda *arguments: False)
    again = study(incasts, **more).run(24, executor=executor)
    assert told(again) == told(one) and not any(t.reused for t in again.trials)


def test_a_run_under_way_shows_what_its_table_shows_later(incasts: Scenario, tmp_path: Path) -> None:  # noqa: F811
    names = ["slowdown-mean:short", "slowdown-p99:all", "unfinished-share:all", "query-mean:all"]
    result = fairrate.run(incasts)
    end_ns = result.summary["sim_s"] * 1e9
    times = [round(end_ns * i / 20) for i in range(1, 20)]
    for threads in (1, 2):
        shown: list[list[float | None]] = []

        def goes_on(question: int, values: Any, shown: list[list[float | None]] = shown) -> bool:
            assert question == len(shown)
            shown.append(list(values))
            return True

        dir = tmp_path / str(threads)
        assert _native.run(incasts._native, dir, [], threads, None, (times, names, goes_on)) == "complete"
        later = _native.values_at(incasts._native, dir, times, names)
        # The last slice may end the run before the last questions are asked.
        assert len(shown) > 9 and shown == later[: len(shown)]
        # Questions change nothing.
        assert fairrate.load(dir).fingerprint == result.fingerprint
    last = _native.values_at(incasts._native, result.dir, [round(end_ns) + 1], names)[0]
    assert last == [result.metrics[name] for name in names]
    # A flow that has taken long counts before it is done.
    assert any(values[2] and values[0] and values[0] > 1 for values in shown)


def test_the_pruner_of_the_user_sees_every_time(incasts: Scenario, executor: Any) -> None:  # noqa: F811
    import optuna

    # Nothing is better than a slowdown of 1.
    none = optuna.pruners.ThresholdPruner(upper=1.0, n_warmup_steps=6)
    one = study(incasts, prune=TIMES, pruner=none, **(MANY | {"seeds": [1, 2, 3], "objectives": ["slowdown-mean:long"]}))
    one.run(3, executor=executor)
    first = one.trials[0]
    # Steps 1 to 3 are the times under the first seed, 4 its end, 5 to 7 the times under the second one.
    assert list(first.runs) == [1] and list(first.stopped) == [2], first
    steps = one.optuna_study.get_trials()[0].intermediate_values
    assert list(steps) == [1, 2, 3, 4, 5, 6] and steps[4] == first.runs[1]["slowdown-mean:long"]


@pytest.mark.parametrize(
    ("more", "message", "help"),
    [
        ({"prune": "25"}, "`25` is no time", "25%,50%,75%"),
        ({"prune": ["100%"]}, "`100%` is no time", ""),
        ({"prune": "5KB"}, "`5KB` is no time", "200us"),
        ({"prune": []}, "there are no times", ""),
        ({"prune": TIMES, "objectives": ["goodput"]}, "`goodput` is known only at the end", "slowdowns"),
        ({"prune": TIMES, "objectives": [lambda result: 1.0]}, "is known only at the end", ""),
    ],
)
def test_what_cannot_be_asked_is_said_before_anything_runs(
    incasts: Scenario, more: dict[str, Any], message: str, help: str  # noqa: F811
) -> None:
    with pytest.raises(fairrate.TuneError, match=re.escape(message)) as caught:
        study(incasts, **more)
    assert help in caught.value.suggestion


def test_pruners_with_notes_of_their_own_are_refused(incasts: Scenario) -> None:  # noqa: F811
    import optuna

    with pytest.raises(fairrate.TuneError, match="`HyperbandPruner` keeps notes"):
        study(incasts, objectives=["slowdown-mean"], prune=TIMES, pruner=optuna.pruners.HyperbandPruner())


def test_times_of_questions() -> None:
    moments = _within.moments_of("25%, 1us,0.5ms,50%")
    assert [str(moment) for moment in moments] == ["25%", "1000ns", "500000ns", "50%"]
    assert _within.times_of(moments, 1e6) == (1_000, 250_000, 500_000)


def test_the_command_judges_runs_under_way(incasts: Scenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    file = tmp_path / "incasts.toml"
    file.write_text(incasts.resolved)
    words = [str(file), "--param", "switch.ecn.kmin=5KB..200KB:log", "--param", "transport.dcqcn.ai", "--jobs", "1", "--sampler", "random"]
    words += ["--objective", "slowdown-mean:short", "--trials", "16", "--seeds", "1..2", "--held-out", "11..12"]
    out = tmp_path / "out"
    assert _cli.main([*words, "--prune", TIMES, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"simulated [0-9.]+ ms in \d+ runs; \d+ of them were stopped while they went on, which saved about [0-9.]+ ms", printed)
    saved = json.loads((out / "tune.json").read_text())
    assert saved["costs"]["stopped"] == sum("stopped_ns" in t for t in saved["trials"]) > 0
    assert _cli.main([*words, "--prune", TIMES, "--no-pruning", "--out", str(tmp_path / "new")]) == 2
    assert not (tmp_path / "new").exists()
    assert _cli.main([*words, "--prune", "soon", "--out", str(tmp_path / "new")]) == 2
    assert "`soon` is no time at which runs can be judged" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
