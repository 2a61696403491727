#!/usr/bin/env python3
"""Congestion controls at one bottleneck of 200 Mb/s between network namespaces: goodput, queue, RTT.

h1 - switch - h2; the port to h2 has a token bucket and a queue of 500 KB. Each algorithm gets three runs of ten seconds with one flow
of iperf3, or as many as `--flows` says, and `--beside cubic` puts a flow of CUBIC beside them. The queue is read fifty times a second. Needs root, iproute2, iperf3 and `fairrate-kernel` (in
PATH, or by FAIRRATE_KERNEL).
"""

import argparse
import ctypes
import json
import os
import socket
import statistics
import struct
import subprocess
import time

RATE_MBPS = 200
BUFFER = 500_000
MARK_FROM = 60_000  # DCTCP's K
KMAX = 150_000  # RateMP's
KERNEL = os.environ.get("FAIRRATE_KERNEL", "fairrate-kernel")
LIBC = ctypes.CDLL(None, use_errno=True)


def sh(command: str) -> str:
    done = subprocess.run(command, shell=True, check=True, capture_output=True, text=True)
    return done.stdout


class Network:
    """The namespaces, for the time of a `with`."""

    def __init__(self, tag: str, burst: str) -> None:
        self.burst = burst
        self.h1, self.switch, self.h2 = (f"fr{tag}{n}" for n in ("h1", "sw", "h2"))
        self.port = f"fr{tag}c"
        self.tag = tag

    def __enter__(self) -> "Network":
        h1, sw, h2, t = self.h1, self.switch, self.h2, f"fr{self.tag}"
        for name in (h1, sw, h2):
            sh(f"ip netns add {name}")
        sh(f"ip link add name {t}a netns {h1} type veth peer name {t}b netns {sw}")
        sh(f"ip link add name {t}c netns {sw} type veth peer name {t}d netns {h2}")
        ends = [(h1, "a", "10.9.1.1"), (sw, "b", "10.9.1.2"), (sw, "c", "10.9.2.2"), (h2, "d", "10.9.2.1")]
        for name, device, address in ends:
            sh(f"ip -n {name} addr add {address}/24 dev {t}{device}")
            # Packets of one segment: a stamp and a mark are of a packet.
            sh(f"ip -n {name} link set {t}{device} up gso_max_segs 1")
        sh(f"ip -n {h1} route add default via 10.9.1.2 && ip -n {h2} route add default via 10.9.2.2")
        sh(f"nsenter --net=/run/netns/{sw} sysctl -qw net.ipv4.ip_forward=1")
        sh(f"tc -n {sw} qdisc add dev {t}c root handle 1: tbf rate {RATE_MBPS}mbit burst {self.burst} limit {4 * BUFFER}")
        sh(f"tc -n {sw} qdisc add dev {t}c parent 1:1 handle 10: bfifo limit {BUFFER}")
        return self

    def __exit__(self, *_: object) -> None:
        for name in (self.h1, self.switch, self.h2):
            subprocess.run(["ip", "netns", "del", name], check=False)


class Queue:
    """The backlog of a device's root queue, asked by netlink: starting `tc` fifty times a second would slow the flow."""

    def __init__(self, namespace: str, device: str) -> None:
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        assert LIBC.setns(there, 0) == 0
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.ifindex = socket.if_nametoindex(device)
        assert LIBC.setns(home, 0) == 0
        os.close(home)
        os.close(there)

    def backlog(self) -> int:
        # RTM_GETQDISC, all of them: nlmsghdr, then tcmsg.
        self.socket.send(struct.pack("=IHHII", 36, 38, 0x301, 1, 0) + struct.pack("=BxxxiIII", 0, self.ifindex, 0, 0, 0))
        found = 0
        while True:
            data = self.socket.recv(65536)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                if kind == 3:
                    return found
                _, ifindex, _, parent, _ = struct.unpack_from("=BxxxiIII", data, 16)
                if ifindex == self.ifindex and parent == 0xFFFFFFFF:
                    found = self.queued(data[36:length])
                data = data[(length + 3) & ~3 :]

    @classmethod
    def queued(cls, attributes: bytes) -> int:
        while len(attributes) >= 4:
            length, kind = struct.unpack_from("=HH", attributes)
            if kind & 0x3FFF == 7:  # TCA_STATS2
                return cls.queued(attributes[4:length])
            if kind & 0x3FFF == 3 and length == 24:  # TCA_STATS_QUEUE: qlen, backlog, ...
                return struct.unpack_from("=II", attributes, 4)[1]
            attributes = attributes[(length + 3) & ~3 :]
        return 0


def iperf(net: Network, arguments: str, port: int = 5201) -> tuple[subprocess.Popen, subprocess.Popen]:
    # Before others: a flow that waits for the processor tells nothing of the network.
    first = ["nice", "-n", "-15"]
    server = subprocess.Popen([*first, "nsenter", f"--net=/run/netns/{net.h2}", "iperf3", "-s", "-1", "-p", str(port)], stdout=subprocess.DEVNULL)
    time.sleep(0.4)
    client = [*first, "nsenter", f"--net=/run/netns/{net.h1}", "iperf3", "-c", "10.9.2.1", "-p", str(port), "-J", *arguments.split()]
    return server, subprocess.Popen(client, stdout=subprocess.PIPE, text=True)


def base_rtt_us(net: Network) -> int:
    """The mean RTT that TCP measures for single full packets on the idle network."""
    server, client = iperf(net, "-C cubic -t 2 -b 2M -l 1448")
    told = json.loads(client.communicate()[0])
    server.wait()
    return round(told["end"]["streams"][0]["sender"]["mean_rtt"])


def idle_share(before: list[int], after: list[int]) -> float:
    """Of the processors' time between two readings of /proc/stat."""
    spent = [b - a for a, b in zip(before, after)]
    return (spent[3] + spent[4]) / sum(spent)


def processor_time() -> list[int]:
    with open("/proc/stat", encoding="ascii") as file:
        return [int(number) for number in file.readline().split()[1:9]]


def run(net: Network, cc: str, seconds: int, flows: int, beside: str | None) -> dict:
    queue = Queue(net.switch, net.port)
    other = iperf(net, f"-C {beside} -t {seconds} -O 1", 5202) if beside else None
    server, client = iperf(net, f"-C {cc} -t {seconds} -P {flows} -O 1")
    seconds += 1
    end, backlogs, before = time.monotonic() + seconds, [], processor_time()
    time.sleep(1.0)  # the start
    while time.monotonic() < end - 0.2:
        backlogs.append(queue.backlog())
        time.sleep(0.02)
    idle = idle_share(before, processor_time())
    told = json.loads(client.communicate()[0])
    server.wait()
    if "error" in told:
        raise SystemExit(told["error"])
    found = {}
    if other:
        found["beside_mbps"] = json.loads(other[1].communicate()[0])["end"]["sum_received"]["bits_per_second"] / 1e6
        other[0].wait()
    sender = told["end"]["streams"][0]["sender"]
    goodputs = [stream["receiver"]["bits_per_second"] / 1e6 for stream in told["end"]["streams"]]
    return {
        "goodput_mbps": sum(goodputs),
        "least_mbps": min(goodputs),
        "most_mbps": max(goodputs),
        "queue_bytes": statistics.mean(backlogs),
        "rtt_us": sender["mean_rtt"],
        "cpu_idle": 100.0 * idle,
        "retransmits": told["end"]["sum_sent"]["retransmits"],
        **found,
    }


def attach(net: Network, algorithm: str, tau_us: int) -> str:
    port = f"{net.switch}/{net.port}"
    extra = {
        "powertcp": f"--netns {net.h1} --netns {net.h2} --tau {tau_us}us --switch-port {port}:{RATE_MBPS}Mbps",
        "theta-powertcp": f"--netns {net.h1} --tau {tau_us}us",
        "rocc": f"--netns {net.h1} --netns {net.h2} --line-rate {RATE_MBPS}Mbps --switch-port {port}:{RATE_MBPS}Mbps",
        "ratemp": f"--netns {net.h1} --netns {net.h2} --line-rate {RATE_MBPS}Mbps --switch-port {port}:{KMAX // 1000}KB",
        "dctcp": f"--netns {net.h1} --netns {net.h2} --switch-port {port}:{MARK_FROM // 1000}KB",
    }
    return sh(f"{KERNEL} attach {algorithm} {extra.get(algorithm.split(':')[0], '')} --print-name").strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithms", nargs="+", default=["cubic", "theta-powertcp", "dctcp", "powertcp"])
    parser.add_argument("--flows", type=int, default=1)
    parser.add_argument("--beside", help="a congestion control that has a flow of its own beside each run")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tau-us", type=int, help="instead of the base RTT that TCP measures on the idle network")
    parser.add_argument("--burst", default="4k", help="of the token bucket")
    parser.add_argument("--tag", default="m", help="in the names of the namespaces")
    options = parser.parse_args()
    with Network(options.tag, options.burst) as net:
        tau_us = options.tau_us or base_rtt_us(net)
        print(f"tau {tau_us} us")
        for algorithm in options.algorithms:
            of_ours = algorithm not in ("cubic", "reno", "bbr")
            name = attach(net, algorithm, tau_us) if of_ours else algorithm
            try:
                for i in range(options.runs):
                    found = {k: round(v, 1) for k, v in run(net, name, options.seconds, options.flows, options.beside).items()}
                    print(algorithm, i + 1, json.dumps(found), flush=True)
            finally:
                if of_ours:
                    sh(f"{KERNEL} detach {algorithm.split(':')[0]} --force")


if __name__ == "__main__":
    main()
