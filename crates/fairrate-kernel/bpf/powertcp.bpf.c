/* PowerTCP as a congestion control of TCP: the law at the sender, telemetry in a TCP option at both ends, and stamps where a switch's
 * port has sent a packet.
 *
 * The window in force when a packet was sent is stored at every sixteenth of a window. The paper's network loses nothing; here a loss
 * halves the window once a round trip, and a timeout leaves a packet.
 */
#include "telemetry.h"
#include "laws/powertcp.h"

FR_PARAMS(fr_powertcp_params)

/* Telemetry of a port, in the words of an option. */
struct record {
    u32 ts_ns;       /* the lower bits */
    u32 tx_bytes;    /* the lower bits */
    u32 qlen_and_id; /* 24 bits of 4 bytes each, and the port's number */
    u32 rate_kbps;
};

/* Number of windows that are stored. */
#define N_SENT 32

struct sent {
    u64 from; /* first byte that was sent */
    u64 cwnd; /* with this window, in bytes */
};

struct flow {
    struct fr_powertcp_params params;
    struct fr_powertcp_state state;
    struct fr_hop hop; /* last echo, with whole counters */
    u64 n_echoes;
    u64 cut_until;
    u32 hop_id;
    u32 next_sent;
    struct sent sent[N_SENT];
};

FR_FLOWS

static __always_inline u64 tau_of(const struct fr_powertcp_params *params, struct tcp_sock *tp)
{
    return params->tau_ns ? params->tau_ns : min_rtt_ns(tp);
}

static __always_inline void apply(struct sock *sk, struct flow *flow, u64 tau)
{
    set_cwnd(tcp_sk(sk), flow->state.law.cwnd_q16);
    set_pace(sk, fr_min(fr_bytes_per_s(flow->state.law.cwnd_q16, fr_time(tau)), flow->params.law.line_bps / 8));
}

SEC("struct_ops") void fr_powertcp_init(u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    const struct fr_powertcp_params *params = params_of(sk);
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!flow || !params)
        return;
    u64 tau = tau_of(params, tcp_sk(sk));
    flow->params = *params;
    fr_powertcp_start(&flow->state, &flow->params, tcp_sk(sk)->mss_cache, tau, bpf_ktime_get_ns());
    begin_pacing(sk);
    count_socket(1);
    mark(sk);
    apply(sk, flow, tau);
}

FR_RELEASE(fr_powertcp)

/* Returns the window in force when the byte before `seq` was sent. */
static __always_inline u64 cwnd_at_send(const struct flow *flow, u64 seq)
{
    u64 from = 0, cwnd = flow->state.law.cwnd_q16 >> 16;
    for (u32 i = 0; i < N_SENT; i++) {
        const struct sent *sent = &flow->sent[i];
        if (sent->cwnd && sent->from < seq && from <= sent->from) {
            from = sent->from;
            cwnd = sent->cwnd;
        }
    }
    return cwnd;
}

/* Stores the present window for the bytes sent from `seq` on. */
static __always_inline void remember(struct flow *flow, u64 seq)
{
    u32 last = (flow->next_sent - 1) & (N_SENT - 1), next = flow->next_sent & (N_SENT - 1);
    u64 cwnd = flow->state.law.cwnd_q16 >> 16;
    if (flow->sent[last].cwnd && seq - flow->sent[last].from < cwnd / 16)
        return;
    flow->sent[next].from = seq;
    flow->sent[next].cwnd = cwnd;
    flow->next_sent += 1;
}

/* Takes the record of the last echo, with whole counters; returns false if there is no new one. */
static __always_inline int take_echo(struct sock *sk, struct flow *flow)
{
    struct brought *brought = bpf_sk_storage_get(&options, sk, 0, 0);
    if (!brought || brought->n_echoes == flow->n_echoes)
        return 0;
    struct record echo;
    __builtin_memcpy(&echo, brought->echo.words, sizeof(echo));
    u32 since = echo.ts_ns - (u32)flow->hop.ts_ns, id = echo.qlen_and_id & 255;
    flow->n_echoes = brought->n_echoes;
    /* Older than the last echo: acknowledgments arrived out of order. */
    if (flow->hop_id == id && since >> 31)
        return 0;
    flow->hop.ts_ns += since;
    flow->hop.tx_bytes += (u32)(echo.tx_bytes - (u32)flow->hop.tx_bytes);
    flow->hop.qlen = echo.qlen_and_id >> 8 << 2;
    flow->hop.rate_kbps = echo.rate_kbps;
    /* Records of two different ports have no difference. */
    if (flow->hop_id != id)
        flow->state.prev[0].rate_kbps = 0;
    flow->hop_id = id;
    return 1;
}

static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    struct fr_ack ack = {};
    if (!flow)
        return;
    u64 tau = tau_of(&flow->params, tp), mss = tp->mss_cache;
    read_ack(tp, rs, &ack);
    ack.cwnd_at_send = cwnd_at_send(flow, ack.ack_seq);
    if (take_echo(sk, flow))
        fr_powertcp_on_ack(&flow->state, &flow->params, &ack, &flow->hop, 1, mss, tau);
    if (rs->losses > 0 && flow->cut_until <= ack.ack_seq) {
        flow->state.law.cwnd_q16 = fr_max(flow->state.law.cwnd_q16 >> 1, mss << 16);
        flow->cut_until = ack.snd_nxt;
    }
    remember(flow, ack.snd_nxt);
    apply(sk, flow, tau);
}

FR_CONG_CONTROL(fr_powertcp, on_ack)

SEC("struct_ops") void fr_powertcp_set_state(u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    if (flow && (u8)ctx[1] == TCP_CA_LOSS)
        flow->state.law.cwnd_q16 = (u64)tcp_sk(sk)->mss_cache << 16;
}

FR_PACED_OPS(fr_powertcp, .set_state = fr_powertcp_set_state, .flags = TCP_CONG_NON_RESTRICTED)

static __always_inline int is_ours(struct bpf_sock_ops *ctx)
{
    u64 cookie = bpf_get_netns_cookie(ctx);
    return bpf_map_lookup_elem(&params, &cookie) != 0;
}

/* Handles the header options of connections: those in namespaces that have parameters of their own carry telemetry. */
SEC("sockops") int fr_powertcp_options(struct bpf_sock_ops *ctx)
{
    return on_options(ctx, is_ours);
}

/* Stamps a packet that has left the queue of `from`, unless it is of another class than the one that counts, or the port of its present
 * stamp takes longer to empty its queue.
 */
static __always_inline void stamp(struct __sk_buff *skb, struct net_device *from, struct port *port)
{
    struct option old = {}, new = {};
    struct record before, record;
    u8 tos;
    if (port->queue && (bpf_skb_load_bytes(skb, 15, &tos, 1) || (tos & 0xfc) != port->tos))
        return;
    u64 sent = __sync_fetch_and_add(&port->tx_bytes, skb->len) + skb->len;
    u32 at = find_record(skb);
    if (!at || bpf_skb_load_bytes(skb, at, &old, sizeof(old)))
        return;
    u32 backlog = port->queue ? backlog_of_class(from, port->queue) : backlog_of(from);
    u64 qlen = fr_min(backlog >> 2, 0xffffff);
    __builtin_memcpy(&before, old.words, sizeof(before));
    if (before.rate_kbps && qlen * before.rate_kbps < (u64)(before.qlen_and_id >> 8) * port->setting)
        return;
    record.ts_ns = bpf_ktime_get_ns();
    record.tx_bytes = sent;
    record.qlen_and_id = qlen << 8 | (port->id & 255);
    record.rate_kbps = port->setting;
    new = old;
    __builtin_memcpy(new.words, &record, sizeof(record));
    rewrite(skb, at, &old, &new);
}

/* The program at the other end of a port's link. */
SEC("tc") int fr_powertcp_port(struct __sk_buff *skb)
{
    struct net_device *dev = device_of(skb);
    struct port *port = port_of(dev);
    if (port)
        stamp(skb, peer_of(dev), port);
    return TC_ACT_UNSPEC;
}
