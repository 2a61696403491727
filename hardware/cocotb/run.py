"""Runs the tests by cocotb on Icarus Verilog: `python hardware/cocotb/run.py [MODULE ...]`."""

import argparse
import sys
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

HERE = Path(__file__).resolve().parent
RTL = HERE.parent / "rtl"
# A small table has the same corners as one of 1,024 entries, and is simulated in seconds.
PARAMETERS = {"flow_table": {"ENTRIES": 8, "WIDTH": 16}, "perc_port": {"FLOWS": 8}}


def main() -> int:
    known = sorted(path.stem.removeprefix("test_") for path in HERE.glob("test_*.py"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of {', '.join(known)} [all]")
    parser.add_argument("--build", type=Path, default=Path("target/hardware/cocotb"), help="directory of what is built")
    arguments = parser.parse_args()
    for module in arguments.modules:
        if module not in known:
            parser.error(f"there is no module `{module}`; there are {', '.join(known)}")
    sys.path.insert(0, str(HERE))
    passed = failed = 0
    for module in arguments.modules or known:
        directory = arguments.build.resolve() / module
        runner = get_runner("icarus")
        runner.build(
            sources=[RTL / f"{module}.sv"],
            hdl_toplevel=module,
            parameters=PARAMETERS.get(module, {}),
            build_dir=directory,
            timescale=("1ns", "1ps"),
            always=True,
        )
        results = runner.test(
            hdl_toplevel=module, test_module=f"test_{module}", build_dir=directory, test_dir=HERE, results_xml=str(directory / "results.xml")
        )
        n_tests, n_failed = get_results(results)
        passed, failed = passed + n_tests - n_failed, failed + n_failed
    print(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
