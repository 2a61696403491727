/* PERC as a congestion control of TCP: the law at the sender, control packets in a TCP option at both ends, and the law of a link before
 * the queue of an egress port.
 *
 * Control packets ride on data (the paper's section 5 has piggybacking), so they take the paths of data. A sender writes one into a data
 * packet that leaves when the last has come back, or is taken for lost; the ports on the path answer in it; the receiver returns it with
 * its next packets. A flow leaves with its last byte, its FIN or its reset, and asks again when it has more to send. Where that is lost, ports forget
 * the flow.
 *
 * Before the first reply a flow sends two packets, of which the first asks: in the Rust law it sends nothing, but here something has to
 * carry the question. Rates are bits on the wire, of packets that all carry a control packet.
 *
 * What a record says concerns the flow of its packet alone: addresses and ports are the packet's, demands are at most the link's
 * capacity, and a link computes its answer from its table, not from sums that a record could shift. A packet's addresses are not
 * verified here; who may send as somebody else, may also ask as somebody else.
 */
#define OPTION_WORDS 6
#include "telemetry.h"
#define FR_LOOP(n, step, work) bpf_loop(n, step, work, 0)
#include "laws/perc.h"

FR_PARAMS(fr_perc_params)

/* Bytes of the headers of Ethernet, IPv4 and TCP with timestamps. */
#define HEADERS 66
/* Packets that return a record: one of them may be lost. */
#define N_ECHOES 4
/* Payload that stands for more than a socket shows: its program waits for room. */
#define MORE_TO_COME (1U << 30)
/* The same for a packet that leaves while its program is in the middle of a write, of which the socket shows nothing yet. */
#define MORE_OF_A_WRITE (64U << 10)
#define MSS_IS_ASKED 1
#define TCP_FIN 1
#define TCP_RST 4
#define TCP_PSH 8

struct flow {
    struct fr_perc_params params;
    struct fr_perc_state state;
    u64 replied_ns;
    u64 cut_until_ns; /* time until which losses are ignored */
};

FR_FLOWS

/* Links, by the device to which the program is attached. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 256);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct port_key);
    __type(value, struct fr_perc_link);
} points SEC(".maps");

/* Returns the base round-trip time. */
static __always_inline u64 base_rtt_of(const struct flow *flow, struct tcp_sock *tp)
{
    return flow->params.tau_ns ? flow->params.tau_ns : min_rtt_ns(tp);
}

/* Returns the payload of a full packet that carries a control packet. TCP's own number is without options that programs add. */
static __always_inline u64 payload_of(struct tcp_sock *tp)
{
    return fr_max(fr_less(tp->mss_cache, sizeof(struct option)), 1);
}

static __always_inline u64 wire_of(struct tcp_sock *tp)
{
    return payload_of(tp) + sizeof(struct option) + HEADERS;
}

static __always_inline void apply(struct sock *sk, struct flow *flow)
{
    struct tcp_sock *tp = tcp_sk(sk);
    u64 rate = flow->state.is_joined ? flow->state.rate : flow->params.initial;
    /* PERC has no window; the receiver's window and the pace limit a flow. */
    tp->snd_cwnd = rate ? 1 << 14 : 2;
    rate = rate ? fr_min(rate, flow->params.line) : flow->params.line;
    /* TCP paces payload. */
    set_pace(sk, fr_mul_div(rate >> 19, payload_of(tp), wire_of(tp)));
}

SEC("struct_ops") void fr_perc_init(u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    const struct fr_perc_params *params = params_of(sk);
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!flow || !params)
        return;
    *flow = (struct flow){.params = *params};
    fr_perc_start(&flow->state, &flow->params, min_rtt_ns(tcp_sk(sk)));
    /* It joins with its first data. */
    flow->state.phase = FR_PERC_GONE;
    flow->state.is_due = 0;
    begin_pacing(sk);
    count_socket(1);
    mark(sk);
    apply(sk, flow);
}

FR_RELEASE(fr_perc, leave_window(sk))

/* Halves the rate after losses, where no reply has come for long: acknowledgments that report losses may have no room for one. The
 * paper's network loses nothing.
 */
static __always_inline void cut(struct flow *flow, u64 now, u64 rtt)
{
    u64 patience = fr_perc_times(rtt, flow->params.resend_q16);
    if (!flow->state.is_joined || now < flow->cut_until_ns || fr_less(now, flow->replied_ns) < patience)
        return;
    flow->state.rate = fr_max(flow->state.rate >> 1, FR_PERC_BPS);
    flow->state.n_raises = 0;
    flow->cut_until_ns = now + patience;
}

static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    if (!flow)
        return;
    u64 now = bpf_ktime_get_ns();
    fr_perc_tick(&flow->state, now);
    if (rs->losses > 0)
        cut(flow, now, fr_max(base_rtt_of(flow, tcp_sk(sk)), (tcp_sk(sk)->srtt_us >> 3) * 1000ULL));
    apply(sk, flow);
}

FR_CONG_CONTROL(fr_perc, on_ack)

/* Handles a connection that sends after an idle time. */
SEC("struct_ops") void fr_perc_cwnd_event(u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    if (!flow || (u32)ctx[1] != CA_EVENT_TX_START)
        return;
    fr_perc_tick(&flow->state, bpf_ktime_get_ns());
    apply(sk, flow);
}

FR_PACED_OPS(fr_perc, .cwnd_event = fr_perc_cwnd_event, .flags = TCP_CONG_NON_RESTRICTED)

/* The receiver's part: a record, and the number of packets that are still to return it. */
struct pending {
    struct option record;
    u32 n_left;
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct pending);
} pendings SEC(".maps");

static __always_inline int is_ours(struct bpf_sock_ops *ctx)
{
    u64 cookie = bpf_get_netns_cookie(ctx);
    return bpf_map_lookup_elem(&params, &cookie) != 0;
}

/* Returns the number of bytes that a packet which is about to leave leaves behind. */
static __always_inline u32 left_behind(struct tcp_sock *tp, u32 end)
{
    struct socket *socket = tp->inet_conn.icsk_inet.sk.sk_socket;
    if (socket && BPF_CORE_READ(socket, flags) >> SOCK_NOSPACE & 1)
        return MORE_TO_COME;
    u32 sent = (int)(tp->snd_nxt - end) > 0 ? tp->snd_nxt : end;
    int left = tp->write_seq - sent;
    return left < 0 ? 0 : left;
}

/* Reserves room where the packet may carry something, and in TCP's computation of a full packet. */
static __always_inline void reserve(struct bpf_sock_ops *ctx)
{
    void *sk = ctx->sk;
    int wants = ctx->args[0] == MSS_IS_ASKED;
    struct pending *pending = sk ? bpf_sk_storage_get(&pendings, sk, 0, 0) : 0;
    struct flow *flow = sk ? bpf_sk_storage_get(&flows, sk, 0, 0) : 0;
    struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
    if (flow && tp)
        wants |= flow->state.is_due || flow->state.phase != FR_PERC_MEMBER || tp->write_seq - tp->snd_nxt <= ctx->skb_len ||
                 ctx->skb_tcp_flags & (TCP_FIN | TCP_RST);
    if (wants || (pending && pending->n_left))
        bpf_reserve_hdr_opt(ctx, sizeof(struct option), 0);
}

/* Writes the flow's control packet into a packet that is about to leave; returns 0 if it has none. */
static __always_inline int ask(struct bpf_sock_ops *ctx, struct flow *flow, struct tcp_sock *tp)
{
    struct option option = {.kind = OPTION_KIND, .length = sizeof(option), .what = OPTION_RECORD};
    struct fr_perc_record record = {};
    u8 *header = ctx->skb_data;
    if ((void *)(header + 20) > ctx->skb_data_end)
        return 0;
    u32 length = (header[12] >> 4) * 4, payload = ctx->skb_len > length ? ctx->skb_len - length : 0;
    u32 seq = (u32)header[4] << 24 | (u32)header[5] << 16 | (u32)header[6] << 8 | header[7];
    int is_end = (ctx->skb_tcp_flags & (TCP_FIN | TCP_RST)) != 0;
    if (!payload && !is_end)
        return 0;
    u64 unsent = is_end ? 0 : left_behind(tp, seq + payload), now = bpf_ktime_get_ns();
    fr_perc_tick(&flow->state, now);
    /* The last packet of a write has the flag PSH. */
    if (!unsent && !is_end && !(ctx->skb_tcp_flags & TCP_PSH))
        unsent = MORE_OF_A_WRITE;
    /* A packet that is sent again at the end may be the one that told of it. */
    if (!unsent && flow->state.phase == FR_PERC_LEAVING)
        flow->state.is_due = 1;
    if (!fr_perc_ask(&flow->state, &flow->params, now, base_rtt_of(flow, tp), unsent, payload_of(tp), wire_of(tp), &record))
        return 0;
    __builtin_memcpy(option.words, &record, sizeof(record));
    bpf_store_hdr_opt(ctx, &option, sizeof(option), 0);
    return 1;
}

static __always_inline void write_record(struct bpf_sock_ops *ctx)
{
    void *sk = ctx->sk;
    struct flow *flow = sk ? bpf_sk_storage_get(&flows, sk, 0, 0) : 0;
    struct pending *pending = sk ? bpf_sk_storage_get(&pendings, sk, 0, 0) : 0;
    struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
    if (flow && tp && ask(ctx, flow, tp))
        return;
    if (!pending || !pending->n_left)
        return;
    struct option option = pending->record;
    option.what = OPTION_ECHO;
    if (!bpf_store_hdr_opt(ctx, &option, sizeof(option), 0))
        pending->n_left -= 1;
}

static __always_inline void take_reply(void *sk, const struct option *echo)
{
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
    struct fr_perc_record record;
    if (!flow || !tp)
        return;
    u64 now = bpf_ktime_get_ns();
    __builtin_memcpy(&record, echo->words, sizeof(record));
    if (fr_perc_returned(&flow->state, &flow->params, now, base_rtt_of(flow, tp), &record))
        flow->replied_ns = now;
}

static __always_inline void read_records(struct bpf_sock_ops *ctx)
{
    struct option record, echo;
    void *sk = ctx->sk;
    if (!sk)
        return;
    if (load_option(ctx, &echo, OPTION_ECHO))
        take_reply(sk, &echo);
    if (!load_option(ctx, &record, OPTION_RECORD))
        return;
    struct pending *pending = bpf_sk_storage_get(&pendings, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (pending)
        *pending = (struct pending){.record = record, .n_left = N_ECHOES};
}

/* Handles the header options of connections: those in namespaces that have parameters of their own carry control packets. */
SEC("sockops") int fr_perc_options(struct bpf_sock_ops *ctx)
{
    return handle_options(ctx, is_ours, reserve, write_record, read_records);
}

/* Waits for another processor, which needs some microseconds for a record. */
static long try_lock(u32 i, void *context)
{
    struct fr_perc_work *w = context;
    w->at = __sync_val_compare_and_swap(&w->link->lock, 0, 1) == 0;
    return w->at;
}

/* The program before a port's queue: answers the control packet that a packet carries. */
SEC("tc") int fr_perc_port(struct __sk_buff *skb)
{
    struct net_device *dev = device_of(skb);
    struct port *port = port_of(dev);
    struct port_key key = key_of(dev);
    struct fr_perc_work work = {};
    struct fr_perc_record record;
    struct option old = {}, new = {};
    u8 version;
    if (!port)
        return TC_ACT_UNSPEC;
    work.link = bpf_map_lookup_elem(&points, &key);
    u32 at = find_record(skb);
    if (!work.link || !at || bpf_skb_load_bytes(skb, at, &old, sizeof(old)) || !old.words[OPTION_WORDS - 1])
        return TC_ACT_UNSPEC;
    if (bpf_skb_load_bytes(skb, 26, &work.entry.hosts, 8) || bpf_skb_load_bytes(skb, 14, &version, 1) ||
        bpf_skb_load_bytes(skb, 14 + (version & 15) * 4, &work.entry.ports, 4))
        return TC_ACT_UNSPEC;
    new = old;
    __builtin_memcpy(&record, old.words, sizeof(record));
    work.entry.seen_ns = bpf_ktime_get_ns();
    bpf_loop(1 << 12, try_lock, &work, 0);
    if (work.at) {
        fr_perc_on_record(&work, port->id, &record);
        __sync_lock_test_and_set(&work.link->lock, 0);
    } else {
        record.seq_and_flags |= FR_PERC_VOID;
    }
    __builtin_memcpy(new.words, &record, sizeof(record));
    rewrite(skb, at, &old, &new);
    return TC_ACT_UNSPEC;
}
