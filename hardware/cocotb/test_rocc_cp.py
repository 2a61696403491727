"""RoCC's congestion point: the protocol, and periods worked by hand.

The configuration is that of section VI for 40 Gb/s in whole units: Fmin 10, Fmax 4,000, Qref 250, Qmid 500 and Qmax 600 units of 600
bytes. Gains are 0.25 and 1.5, which are exact in binary.
"""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

LATENCY = 14
UNIT = 600


def start_clock(dut):
    cocotb.start_soon(Clock(dut.clk, 5, unit="ns").start())


async def configure(dut, f_first=4000, **changes):
    """Resets the module; `changes` are other values of the configuration."""
    configuration = {
        "f_first": f_first,
        "f_min": 10,
        "f_max": 4000,
        "q_ref": 250,
        "q_mid": 500,
        "q_max": 600,
        "whole_below": 0,
        "alpha": 1 << 30,
        "beta": 3 << 31,
        "unit_recip": -(-(1 << 34) // UNIT),
        **changes,
    }
    for name, value in configuration.items():
        getattr(dut, name).value = value
    dut.tick.value = 0
    dut.queue_bytes.value = 0
    dut.rst.value = 1
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    for _ in range(4):
        await FallingEdge(dut.clk)


async def tick(dut, queue_bytes):
    """Ends a period; returns F."""
    dut.tick.value = 1
    dut.queue_bytes.value = queue_bytes
    await FallingEdge(dut.clk)
    dut.tick.value = 0
    # The queue goes on to change.
    dut.queue_bytes.value = 0xFFFFFF
    for _ in range(LATENCY - 1):
        assert dut.done.value == 0
        await FallingEdge(dut.clk)
    assert dut.done.value == 1
    f = int(dut.f.value)
    await FallingEdge(dut.clk)
    assert dut.done.value == 0, "done lasts a clock"
    return f


@cocotb.test()
async def a_period_by_hand(dut):
    start_clock(dut)
    await configure(dut)
    # 0.25 (350 - 250) + 1.5 (350 - 0) = 25 + 525 less than 4,000.
    assert await tick(dut, 350 * UNIT) == 3450
    # 0.25 (300 - 250) + 1.5 (300 - 350) = 12.5 - 75: 62.5 more, rounded down.
    assert await tick(dut, 300 * UNIT) == 3512


@cocotb.test()
async def a_long_queue_sets_fmin_and_fast_growth_halves(dut):
    start_clock(dut)
    await configure(dut)
    assert await tick(dut, 500 * UNIT) == 2000
    assert await tick(dut, 600 * UNIT) == 10
    # At or below Fmax/8 there is no such cut: 10 - (0.25 350 + 1.5 0)/32 is below Fmin.
    assert await tick(dut, 600 * UNIT) == 10


@cocotb.test()
async def gains_shrink_with_the_region_of_f(dut):
    start_clock(dut)
    # The regions begin at Fmax/2, /4, /8, /16 and /32; an empty queue raises F by 0.25 250 / ratio, rounded down.
    for f, ratio in [(2000, 1), (1999, 2), (1000, 2), (999, 4), (500, 4), (250, 8), (125, 16), (124, 32), (10, 32)]:
        await configure(dut, f_first=f)
        assert await tick(dut, 0) == f + int(62.5 / ratio), f
    # All gains are whole while both queue lengths are below a bound.
    await configure(dut, f_first=10, whole_below=31)
    assert await tick(dut, 0) == 10 + 62


@cocotb.test()
async def f_stays_between_its_limits(dut):
    start_clock(dut)
    await configure(dut)
    assert await tick(dut, 0) == 4000
    await configure(dut, f_first=0)
    assert await tick(dut, 599 * UNIT) == 10, "F starts at 0 as in the authors' code, and the first period gives Fmin"


@cocotb.test()
async def bytes_are_whole_units(dut):
    start_clock(dut)
    # With alpha = 1, beta = 0 and a large F, a period lowers F by Qcur - Qref.
    large = {"f_first": 1 << 20, "f_max": 1 << 20, "f_min": 1, "q_ref": 100, "q_mid": 131071, "q_max": 131071}
    for unit in (64, 80, 600, 1000, 1024):
        for n in (101, 1000, 9999, 16000):
            await configure(dut, alpha=1 << 32, beta=0, unit_recip=-(-(1 << 34) // unit), **large)
            assert await tick(dut, n * unit + unit - 1) == (1 << 20) - (n - 100), (unit, n)


@cocotb.test()
async def a_reset_forgets_the_period_under_way(dut):
    start_clock(dut)
    await configure(dut)
    dut.tick.value = 1
    dut.queue_bytes.value = 400 * UNIT
    await FallingEdge(dut.clk)
    dut.tick.value = 0
    dut.rst.value = 1
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    for _ in range(2 * LATENCY):
        assert dut.done.value == 0 and dut.f.value == 4000
        await FallingEdge(dut.clk)
