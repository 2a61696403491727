/* DCTCP as a congestion control of TCP: the sender's law, and the receiver's echo of marks (RFC 8257 section 3.2), for which both ends
 * must use it. At a switch's port a program marks packets that join a queue longer than K.
 */
#include "ecn.h"
#include "flow.h"
#include "port.h"
#include "laws/dctcp.h"

FR_PARAMS(fr_dctcp_params)

struct flow {
    struct fr_dctcp_params params;
    struct fr_dctcp_state state;
    u64 acked; /* bytes acknowledged before this acknowledgment */
    u32 delivered;
    u32 delivered_ce;
    struct receiver receiver;
};

FR_FLOWS

SEC("struct_ops") void fr_dctcp_init(u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    struct tcp_sock *tp = tcp_sk(sk);
    const struct fr_dctcp_params *params = params_of(sk);
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!flow || !params)
        return;
    flow->params = *params;
    flow->acked = tp->bytes_acked;
    flow->delivered = tp->delivered;
    flow->delivered_ce = tp->delivered_ce;
    flow->receiver = (struct receiver){.prior_rcv_nxt = tp->rcv_nxt};
    /* Without a rate of the path the bandwidth-delay product is unknown: the first window is ten packets then, as over TCP. */
    fr_dctcp_start(&flow->state, &flow->params, 10 * tp->mss_cache, tp->mss_cache);
    set_cwnd(tp, flow->state.cwnd_q16);
    count_socket(1);
    mark(sk);
}

FR_RELEASE(fr_dctcp)

static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    struct fr_ack ack = {};
    if (!flow)
        return;
    read_ack(tp, rs, &ack);
    ack.newly_acked = ack.ack_seq - flow->acked;
    ack.delivered = (u64)(tp->delivered - flow->delivered) * tp->mss_cache;
    ack.ecn_marked = tp->delivered_ce != flow->delivered_ce;
    flow->acked = ack.ack_seq;
    flow->delivered = tp->delivered;
    flow->delivered_ce = tp->delivered_ce;
    fr_dctcp_on_ack(&flow->state, &flow->params, &ack, tp->mss_cache);
    if (rs->losses > 0)
        fr_dctcp_on_gap(&flow->state, &flow->params, tp->mss_cache);
    set_cwnd(tp, flow->state.cwnd_q16);
}

FR_CONG_CONTROL(fr_dctcp, on_ack)

SEC("struct_ops") void fr_dctcp_set_state(u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    if (flow && (u8)ctx[1] == TCP_CA_LOSS)
        fr_dctcp_on_timeout(&flow->state, &flow->params, bpf_ktime_get_ns(), tcp_sk(sk)->mss_cache);
}

SEC("struct_ops") void fr_dctcp_cwnd_event(u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    if (flow)
        on_data(tcp_sk(sk), &flow->receiver, ctx[1]);
}

/* Marks a packet that joins a queue of more than K bytes; it runs before the queue. */
SEC("tc") int fr_dctcp_port(struct __sk_buff *skb)
{
    struct net_device *dev = device_of(skb);
    struct port *port = port_of(dev);
    if (port && port->setting < backlog_of(dev))
        bpf_skb_ecn_set_ce(skb);
    return TC_ACT_UNSPEC;
}

FR_OPS(fr_dctcp, .set_state = fr_dctcp_set_state, .cwnd_event = fr_dctcp_cwnd_event,
       .flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN)
