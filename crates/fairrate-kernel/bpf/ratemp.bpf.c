/* RateMP as a congestion control of TCP and of the subflows of an MPTCP connection, whose rates it adds up. Both ends must use it, for
 * the receiver's echo of marks. At a switch's port a program marks with the probability queue / Kmax.
 *
 * A timeout leaves a packet; below a packet a round trip a flow is paced, with two packets in flight at most.
 */
#include "ecn.h"
#include "flow.h"
#include "port.h"
#include "laws/ratemp.h"

FR_PARAMS(fr_ratemp_params)

/* Number of subflows of a connection that are added up. A subflow that joins later is treated as a connection of its own. */
#define N_SUBFLOWS 8
#define ALONE N_SUBFLOWS
/* Bytes of the headers of Ethernet, IPv4 and TCP with timestamps. */
#define HEADERS 66

/* A connection: the rates of its subflows, in packets/s. */
struct connection {
    u64 x_q32[N_SUBFLOWS];
    u32 n_joined;
    u32 n_alive;
};

/* Connections by the kernel's address of an MPTCP connection. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, u64);
    __type(value, struct connection);
} connections SEC(".maps");

struct flow {
    struct fr_ratemp_params params;
    struct fr_ratemp_state state;
    u64 connection; /* 0: plain TCP */
    u64 acked;
    u32 slot;
    u32 delivered_ce;
    struct receiver receiver;
};

FR_FLOWS

static __always_inline u64 connection_of(struct tcp_sock *tp)
{
    struct mptcp_subflow_context *subflow = tp->inet_conn.icsk_ulp_data;
    return tp->is_mptcp && subflow ? (u64)BPF_CORE_READ(subflow, conn) : 0;
}

static __always_inline void join(struct flow *flow, struct tcp_sock *tp)
{
    static const struct connection empty;
    u64 key = connection_of(tp);
    flow->connection = key;
    flow->slot = ALONE;
    if (!key)
        return;
    bpf_map_update_elem(&connections, &key, &empty, BPF_NOEXIST);
    struct connection *connection = bpf_map_lookup_elem(&connections, &key);
    if (!connection)
        return;
    __sync_fetch_and_add(&connection->n_alive, 1);
    flow->slot = fr_min(__sync_fetch_and_add(&connection->n_joined, 1), ALONE);
}

static __always_inline void leave(struct flow *flow)
{
    u64 key = flow->connection;
    struct connection *connection = key ? bpf_map_lookup_elem(&connections, &key) : 0;
    if (!connection)
        return;
    if (flow->slot < N_SUBFLOWS)
        connection->x_q32[flow->slot] = 0;
    if (__sync_fetch_and_add(&connection->n_alive, -1) == 1)
        bpf_map_delete_elem(&connections, &key);
}

/* Returns the sum of the connection's rates, with the flow's present one. */
static __always_inline u64 total_q32(struct flow *flow)
{
    u64 key = flow->connection, total = 0;
    struct connection *connection = key ? bpf_map_lookup_elem(&connections, &key) : 0;
    if (!connection || flow->slot >= N_SUBFLOWS)
        return flow->state.x_q32;
    connection->x_q32[flow->slot] = flow->state.x_q32;
    for (u32 i = 0; i < N_SUBFLOWS; i++)
        total = fr_add(total, connection->x_q32[i]);
    return total;
}

static __always_inline u64 wire_bits(struct tcp_sock *tp)
{
    return (tp->mss_cache + HEADERS) * 8;
}

static __always_inline void apply(struct sock *sk, struct flow *flow)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct fr_ratemp_allowance allowed = fr_ratemp_allowed(&flow->state, &flow->params, wire_bits(tp));
    tp->snd_cwnd = fr_clamp(allowed.cwnd, 2, 1 << 20);
    set_pace(sk, (allowed.paced_bps ? allowed.paced_bps : flow->params.line_bps) / 8);
}

SEC("struct_ops") void fr_ratemp_init(u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    struct tcp_sock *tp = tcp_sk(sk);
    const struct fr_ratemp_params *params = params_of(sk);
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!flow || !params)
        return;
    flow->params = *params;
    flow->acked = tp->bytes_acked;
    flow->delivered_ce = tp->delivered_ce;
    flow->receiver = (struct receiver){.prior_rcv_nxt = tp->rcv_nxt};
    fr_ratemp_start(&flow->state, &flow->params, min_rtt_ns(tp), bpf_ktime_get_ns());
    join(flow, tp);
    begin_pacing(sk);
    count_socket(1);
    mark(sk);
    apply(sk, flow);
}

FR_RELEASE(fr_ratemp, leave(flow))

static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    struct fr_ack ack = {};
    if (!flow)
        return;
    read_ack(tp, rs, &ack);
    ack.newly_acked = ack.ack_seq - flow->acked;
    ack.ecn_marked = tp->delivered_ce != flow->delivered_ce;
    flow->acked = ack.ack_seq;
    flow->delivered_ce = tp->delivered_ce;
    fr_ratemp_on_ack(&flow->state, &flow->params, &ack, total_q32(flow), tp->mss_cache, wire_bits(tp));
    if (rs->losses > 0)
        fr_ratemp_on_gap(&flow->state);
    apply(sk, flow);
}

FR_CONG_CONTROL(fr_ratemp, on_ack)

SEC("struct_ops") void fr_ratemp_set_state(u64 *ctx)
{
    struct flow *flow = bpf_sk_storage_get(&flows, (struct sock *)ctx[0], 0, 0);
    if (flow && (u8)ctx[1] == TCP_CA_LOSS)
        fr_ratemp_on_timeout(&flow->state);
}

SEC("struct_ops") void fr_ratemp_cwnd_event(u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    if (flow)
        on_data(tcp_sk(sk), &flow->receiver, ctx[1]);
}

FR_PACED_OPS(fr_ratemp, .set_state = fr_ratemp_set_state, .cwnd_event = fr_ratemp_cwnd_event,
             .flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN)

/* Eq. (5): marks with the probability queue / Kmax, before the queue. */
SEC("tc") int fr_ratemp_port(struct __sk_buff *skb)
{
    struct net_device *dev = device_of(skb);
    struct port *port = port_of(dev);
    if (port && (u64)bpf_get_prandom_u32() * port->setting < (u64)backlog_of(dev) << 32)
        bpf_skb_ecn_set_ce(skb);
    return TC_ACT_UNSPEC;
}
