# θ-PowerTCP beside CUBIC on another kernel: a bottleneck of 20 Mb/s in namespaces, run by `cargo xtask vm` (docs/kernel.md).
fairrate-kernel attach theta-powertcp || exit 1
ip netns add h1; ip netns add sw; ip netns add h2
ip link add name va netns h1 type veth peer name vb netns sw
ip link add name vc netns sw type veth peer name vd netns h2
ip -n h1 addr add 10.1.0.1/24 dev va; ip -n sw addr add 10.1.0.2/24 dev vb; ip -n sw addr add 10.2.0.1/24 dev vc; ip -n h2 addr add 10.2.0.2/24 dev vd
for x in "h1 va" "sw vb" "sw vc" "h2 vd"; do ip -n ${x% *} link set ${x#* } up; done
ip -n h1 route add default via 10.1.0.2; ip -n h2 route add default via 10.2.0.1
ip netns exec sw sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
tc -n sw qdisc add dev vc root tbf rate 20mbit burst 4000 limit 200000
ip netns exec h2 iperf3 -s -D; sleep 1
for cc in cubic fr_theta; do
echo "== $cc"; ip netns exec h1 iperf3 -c 10.2.0.2 -t 4 -C $cc -i 0 2>&1 | grep sender &
sleep 2; tc -n sw -s qdisc show dev vc | grep backlog; sleep 1;  tc -n sw -s qdisc show dev vc | grep backlog; wait
done
fairrate-kernel status; fairrate-kernel detach; echo detach $?
