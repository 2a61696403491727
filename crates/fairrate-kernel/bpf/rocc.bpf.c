/* RoCC: the congestion point at a switch's port, the reaction point at the sender.
 *
 * The congestion point computes at the end of every period T, when the next packet leaves; after periods without packets, in which the
 * queue was empty, it makes up for at most 64 of them. Notices are carried by data: the packets that are in the queue at that time
 * carry the fair rate to the receiver, which returns it. So only the flows with packets in the queue get the rate. If a packet passes
 * several ports, the lowest rate arrives.
 */
#include "telemetry.h"
#include "laws/rocc.h"

FR_PARAMS(fr_rocc_params)

struct flow {
    struct fr_rocc_params params;
    struct fr_rocc_state state;
    u64 notice; /* the last notice's port and number: receivers return it again and again */
    u64 cut_until_ns; /* time until which losses are ignored: there was a notice, or a cut */
};

FR_FLOWS

/* A congestion point, by the device to which its program is attached. */
struct congestion_point {
    struct fr_rocc_port_params params;
    struct fr_rocc_port_state state;
    u64 period_ns;
    u64 ticked_ns;
    u64 n_ticks;
    u64 tell_until; /* count of sent bytes at which all packets that were in the queue at the last tick have left */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 256);
    __type(key, struct port_key);
    __type(value, struct congestion_point);
} points SEC(".maps");

static __always_inline void apply(struct sock *sk, struct flow *flow)
{
    fr_rocc_advance(&flow->state, &flow->params, bpf_ktime_get_ns() + 1);
    /* RoCC has no window; the receiver's window and the pace limit a flow. */
    tcp_sk(sk)->snd_cwnd = 1 << 14;
    set_pace(sk, fr_rocc_rate(&flow->state, &flow->params) / 8);
}

SEC("struct_ops") void fr_rocc_init(u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    const struct fr_rocc_params *params = params_of(sk);
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!flow || !params)
        return;
    *flow = (struct flow){.params = *params};
    begin_pacing(sk);
    count_socket(1);
    mark(sk);
    apply(sk, flow);
}

FR_RELEASE(fr_rocc, leave_window(sk))

/* Halves the rate after losses without notices, once in the time after which it would double. The paper's network loses nothing; here
 * acknowledgments that report many losses have no room for a notice.
 */
static __always_inline void cut(struct flow *flow, u64 now)
{
    flow->state.rate_bps = fr_max(fr_rocc_rate(&flow->state, &flow->params) >> 1, flow->params.min_bps);
    flow->state.due_ns = now + flow->params.rise_ns;
}

static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    struct brought *brought = bpf_sk_storage_get(&options, sk, 0, 0);
    if (!flow)
        return;
    u64 now = bpf_ktime_get_ns();
    u64 notice = brought ? (u64)brought->echo.words[1] << 32 | brought->echo.words[2] : 0;
    if (brought && notice != flow->notice) {
        flow->notice = notice;
        fr_rocc_on_notice(&flow->state, &flow->params, now, brought->echo.words[0], brought->echo.words[1]);
    } else if (rs->losses > 0 && flow->cut_until_ns <= now) {
        cut(flow, now);
    } else {
        return apply(sk, flow);
    }
    flow->cut_until_ns = now + flow->params.rise_ns;
    apply(sk, flow);
}

FR_CONG_CONTROL(fr_rocc, on_ack)

/* Gives a connection that sends after an idle time the rate that its timer has reached. */
SEC("struct_ops") void fr_rocc_cwnd_event(u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    if (flow && (u32)ctx[1] == CA_EVENT_TX_START)
        apply(sk, flow);
}

FR_PACED_OPS(fr_rocc, .cwnd_event = fr_rocc_cwnd_event, .flags = TCP_CONG_NON_RESTRICTED)

static __always_inline int is_ours(struct bpf_sock_ops *ctx)
{
    u64 cookie = bpf_get_netns_cookie(ctx);
    return bpf_map_lookup_elem(&params, &cookie) != 0;
}

/* Handles the header options of connections: those in namespaces that have parameters of their own carry notices. */
SEC("sockops") int fr_rocc_options(struct bpf_sock_ops *ctx)
{
    return on_options(ctx, is_ours);
}

/* Runs algorithm 1 at the ends of all periods up to now. One processor computes, others continue. */
static __always_inline void tick(struct congestion_point *point, u64 tx_bytes, u64 queue_bytes)
{
    u64 now = bpf_ktime_get_ns(), last = point->ticked_ns;
    u64 n = (now - last) / fr_max(point->period_ns, 1);
    if (!n || __sync_val_compare_and_swap(&point->ticked_ns, last, last + n * point->period_ns) != last)
        return;
    for (int i = 0; i < 64; i++)
        if (i + 1 < n)
            fr_rocc_port_tick(&point->state, &point->params, 0);
    fr_rocc_port_tick(&point->state, &point->params, queue_bytes);
    point->n_ticks += 1;
    point->tell_until = tx_bytes + queue_bytes;
}

/* The program at the other end of a port's link: writes the fair rate into a packet that was in the queue, unless the packet has a
 * lower one.
 */
SEC("tc") int fr_rocc_port(struct __sk_buff *skb)
{
    struct net_device *dev = device_of(skb);
    struct port *port = port_of(dev);
    struct port_key key = key_of(dev);
    struct congestion_point *point = bpf_map_lookup_elem(&points, &key);
    struct option old = {}, new = {};
    if (!port || !point)
        return TC_ACT_UNSPEC;
    u64 tx_bytes = __sync_fetch_and_add(&port->tx_bytes, skb->len);
    tick(point, tx_bytes, backlog_of(peer_of(dev)));
    if (point->tell_until <= tx_bytes)
        return TC_ACT_UNSPEC;
    u32 at = find_record(skb);
    if (!at || bpf_skb_load_bytes(skb, at, &old, sizeof(old)))
        return TC_ACT_UNSPEC;
    u32 told = fr_rocc_told(&point->state, &point->params);
    if (old.words[3] && old.words[0] < told)
        return TC_ACT_UNSPEC;
    new = old;
    new.words[0] = told;
    new.words[1] = port->id;
    new.words[2] = point->n_ticks;
    new.words[3] = 1;
    rewrite(skb, at, &old, &new);
    return TC_ACT_UNSPEC;
}
