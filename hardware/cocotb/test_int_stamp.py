"""PowerTCP's telemetry: the protocol, and headers worked by hand."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

LATENCY = 4


async def start(dut, of_arrivals=0):
    cocotb.start_soon(Clock(dut.clk, 5, unit="ns").start())
    dut.rate_code.value = 5
    dut.of_arrivals.value = of_arrivals
    dut.now_ns.value = 0
    dut.join_queue.value = dut.leave.value = 0
    dut.join_bytes.value = dut.leave_bytes.value = 0
    dut.rst.value = 1
    for _ in range(LATENCY):
        await FallingEdge(dut.clk)
    dut.rst.value = 0


async def run(dut, steps):
    """Gives the module a step a clock: (ns, bytes that join, bytes that leave). Returns the headers, as tuples of fields."""
    headers = []
    for ns, joins, leaves in [*steps, *[(0, 0, 0)] * LATENCY]:
        dut.now_ns.value = ns % (1 << 24)
        dut.join_queue.value, dut.join_bytes.value = joins != 0, joins
        dut.leave.value, dut.leave_bytes.value = leaves != 0, leaves
        await FallingEdge(dut.clk)
        if dut.stamped.value:
            word = int(dut.header.value)
            headers.append((word >> 61, word >> 37 & 0xFFFFFF, word >> 17 & 0xFFFFF, word & 0x1FFFF))
    return headers


@cocotb.test()
async def a_packet_by_hand(dut):
    await start(dut)
    # 3,000 bytes join; the first 1,000 leave at 7 ns: none were sent before, and 2,000 are left, 25 units of 80.
    # The next leave with 1,000 bytes sent: 7 units of 128. 1,000 are left: 12 units.
    assert await run(dut, [(0, 3000, 0), (7, 0, 1000), (9, 0, 1000)]) == [(5, 7, 0, 25), (5, 9, 7, 12)]


@cocotb.test()
async def a_packet_that_joins_as_another_leaves_is_in_the_queue(dut):
    await start(dut)
    assert await run(dut, [(0, 1000, 0), (1, 800, 1000)]) == [(5, 1, 0, 10)]


@cocotb.test()
async def the_counter_of_arrivals(dut):
    await start(dut, of_arrivals=1)
    # 12,800 bytes have joined, 100 units of 128, whatever was sent; with 1,280 more 110.
    assert await run(dut, [(0, 12800, 0), (1, 0, 1280), (2, 1280, 1280)]) == [(5, 1, 100, 144), (5, 2, 110, 144)]


@cocotb.test()
async def counters_wrap(dut):
    await start(dut)
    # 2^27 bytes sent are 2^20 units of 128: the counter is 0 again. 2^24 + 3 ns are 3.
    steps = [(0, 65535, 65535)] * 2048 + [(0, 2048, 2048)] + [((1 << 24) + 3, 64, 64)]
    assert (await run(dut, steps))[-1] == (5, 3, 0, 0)


@cocotb.test()
async def a_long_queue_is_divided_exactly(dut):
    await start(dut)
    total = 0
    for n in range(300):
        total += 65535
        joined = [(0, 65535, 0)]
        total -= 1
        assert (await run(dut, [*joined, (1, 0, 1)]))[-1][3] == total // 80 % (1 << 17), n
