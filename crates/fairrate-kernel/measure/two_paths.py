#!/usr/bin/env python3
"""A connection of MPTCP over two bottlenecks of 200 Mb/s, and a flow of TCP on one of them that comes and goes (RateMP's Figures 3a and 4).

s - A - B - d and s - C - D - d are the connection's paths; x - A - B - y is the flow's, from 5 to 10 s. The ports from A to B and from C to D
have a token bucket and a queue of 240 KB. It prints, before the flow, beside it and after it, the rates of both, the queues, and the
smoothed round-trip times that `ss` tells of the connection. Needs root, iproute2, MPTCP and `fairrate-kernel` (in PATH, or by
FAIRRATE_KERNEL). `two-paths.toml` is the same for the simulator.
"""

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import threading
import time

from bottleneck import KERNEL, LIBC, Queue, sh

RATE_MBPS = 200
BUFFER = 240_000
MARKS = {"ratemp": "60KB", "dctcp": "30KB"}  # Kmax, and K
COMES, GOES, END = 5.0, 10.0, 15.0
PHASES = {"alone": (1.0, COMES), "beside": (COMES + 1, GOES), "after": (GOES + 1, END)}
NODES = "s d x y A B C D".split()
# Both ends of each link; it is 10.9.NUMBER.0/24, where the first end has 1 and the second 2.
LINKS = {11: "sA", 12: "sC", 13: "xA", 21: "AB", 22: "CD", 31: "dB", 32: "dD", 33: "yB"}
ROUTES = {
    "s": ["default via 10.9.11.2", "10.9.32.0/24 via 10.9.12.2 src 10.9.12.1"],
    "d": ["default via 10.9.31.2", "10.9.12.0/24 via 10.9.32.2 src 10.9.32.1"],
    "x": ["default via 10.9.13.2"],
    "y": ["default via 10.9.33.2"],
    "A": ["10.9.31.0/24 via 10.9.21.2", "10.9.33.0/24 via 10.9.21.2"],
    "B": ["10.9.11.0/24 via 10.9.21.1", "10.9.13.0/24 via 10.9.21.1"],
    "C": ["10.9.32.0/24 via 10.9.22.2"],
    "D": ["10.9.12.0/24 via 10.9.22.1"],
}
IPPROTO_MPTCP = 262
SO_SNDBUFFORCE = 32
SEND_BUFFER = 4 << 20


class Network:
    """The namespaces, for the time of a `with`."""

    def __init__(self, tag: str) -> None:
        self.tag = f"fr{tag}"

    def name(self, node: str) -> str:
        return self.tag + node

    def __enter__(self) -> "Network":
        for node in NODES:
            sh(f"ip netns add {self.name(node)}")
            sh(f"nsenter --net=/run/netns/{self.name(node)} sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0")
            sh(f"ip -n {self.name(node)} link set lo up")
        for number, (near, far) in LINKS.items():
            sh(f"ip link add name e{number} netns {self.name(near)} type veth peer name e{number} netns {self.name(far)}")
            for end, host in ((near, 1), (far, 2)):
                sh(f"ip -n {self.name(end)} addr add 10.9.{number}.{host}/24 dev e{number}")
                # Packets of one segment: a mark is of a packet.
                sh(f"ip -n {self.name(end)} link set e{number} up gso_max_segs 1")
        for node, routes in ROUTES.items():
            for route in routes:
                sh(f"ip -n {self.name(node)} route add {route}")
        for node, device in self.bottlenecks():
            sh(f"tc -n {node} qdisc add dev {device} root handle 1: tbf rate {RATE_MBPS}mbit burst 4k limit {4 * BUFFER}")
            sh(f"tc -n {node} qdisc add dev {device} parent 1:1 handle 10: bfifo limit {BUFFER}")
        # The receiver tells of its second address, and the sender makes a subflow to it.
        sh(f"ip -n {self.name('s')} mptcp limits set subflow 1 add_addr_accepted 1")
        sh(f"ip -n {self.name('d')} mptcp limits set subflow 1")
        sh(f"ip -n {self.name('d')} mptcp endpoint add 10.9.32.1 signal")
        return self

    def bottlenecks(self) -> list[tuple[str, str]]:
        return [(self.name("A"), "e21"), (self.name("C"), "e22")]

    def __exit__(self, *_: object) -> None:
        for node in NODES:
            subprocess.run(["ip", "netns", "del", self.name(node)], check=False)

    def socket(self, node: str, protocol: int) -> socket.socket:
        """A socket in a node's namespace."""
        home, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(f"/run/netns/{self.name(node)}", os.O_RDONLY)
        assert LIBC.setns(there, 0) == 0
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
        assert LIBC.setns(home, 0) == 0
        os.close(home)
        os.close(there)
        return made


class Flow:
    """A connection that sends without end."""

    def __init__(self, net: Network, cc: str, nodes: str, address: str, protocol: int) -> None:
        listener = net.socket(nodes[1], protocol)
        listener.bind(("", 5001))
        listener.listen()
        self.sender = net.socket(nodes[0], protocol)
        self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        # What the kernel finds by itself goes by the windows, which are two packets here, and half of it waits on the slower path.
        self.sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER)
        self.sender.connect((address, 5001))
        self.receiver, _ = listener.accept()
        self.received = 0
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self.send, self.take)]
        for thread in self.threads:
            thread.start()

    def send(self) -> None:
        block = bytes(1 << 16)
        try:
            while True:
                self.sender.sendall(block)
        except OSError:
            pass

    def take(self) -> None:
        buffer = bytearray(1 << 18)
        try:
            while n := self.receiver.recv_into(buffer):
                self.received += n
        except OSError:
            pass

    def stop(self) -> None:
        # What is unsent goes with it.
        self.sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
        self.sender.shutdown(socket.SHUT_RDWR)
        self.sender.close()


def rtts_ms(net: Network) -> list[float]:
    """Smoothed round-trip times of the subflows that send."""
    told = sh(f"nsenter --net=/run/netns/{net.name('s')} ss -tinH dst 10.9.0.0/16")
    return [float(found) for found in re.findall(r" rtt:([0-9.]+)/", told)]


def run(net: Network, cc: str) -> dict:
    queues = [Queue(node, device) for node, device in net.bottlenecks()]
    began, flow, rows = time.monotonic(), None, []
    connection = Flow(net, cc, "sd", "10.9.31.1", IPPROTO_MPTCP)
    while (now := time.monotonic() - began) < END:
        if flow is None and COMES <= now < GOES:
            flow = Flow(net, cc, "xy", "10.9.33.1", 0)
        if flow is not None and GOES <= now and flow.sender.fileno() >= 0:
            flow.stop()
        rtts = rtts_ms(net) if len(rows) % 10 == 0 else []
        rows.append((now, connection.received, flow.received if flow else 0, *(queue.backlog() for queue in queues), rtts))
        time.sleep(0.02)
    connection.stop()
    found = {}
    for phase, (start, end) in PHASES.items():
        of_phase = [row for row in rows if start <= row[0] < end]
        seconds = of_phase[-1][0] - of_phase[0][0]
        found[phase] = {
            "connection_mbps": (of_phase[-1][1] - of_phase[0][1]) * 8e-6 / seconds,
            "flow_mbps": (of_phase[-1][2] - of_phase[0][2]) * 8e-6 / seconds,
            "queue_ab_kb": statistics.mean(row[3] for row in of_phase) / 1e3,
            "queue_cd_kb": statistics.mean(row[4] for row in of_phase) / 1e3,
            "rtt_ms": statistics.mean(rtt for row in of_phase for rtt in row[5]),
            "rtt_deviation_ms": statistics.pstdev(rtt for row in of_phase for rtt in row[5]),
        }
        found[phase] = {key: round(value, 3) for key, value in found[phase].items()}
    return found


def attach(net: Network, algorithm: str) -> str:
    hosts = " ".join(f"--netns {net.name(node)}" for node in "sdxy")
    marks = MARKS[algorithm.split(":")[0]]
    ports = " ".join(f"--switch-port {node}/{device}:{marks}" for node, device in net.bottlenecks())
    return sh(f"{KERNEL} attach {algorithm} {hosts} --line-rate {RATE_MBPS}Mbps {ports} --print-name").strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithms", nargs="+", default=["ratemp:capacity=200Mbps,kmax=60KB", "dctcp", "cubic", "reno"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tag", default="p", help="in the names of the namespaces")
    options = parser.parse_args()
    for algorithm in options.algorithms:
        of_ours = algorithm.split(":")[0] in MARKS
        for i in range(options.runs):
            with Network(options.tag) as net:
                name = attach(net, algorithm) if of_ours else algorithm
                try:
                    print(algorithm, i + 1, json.dumps(run(net, name)), flush=True)
                finally:
                    if of_ours:
                        sh(f"{KERNEL} detach {algorithm.split(':')[0]} --force")


if __name__ == "__main__":
    main()
