/* The common parts of the algorithms as congestion controls of TCP: parameters by network namespace, a count of sockets, and the
 * contents of an acknowledgment.
 */
#ifndef FAIRRATE_FLOW_H
#define FAIRRATE_FLOW_H

#include "kernel.h"
#include "laws/fixed.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Number of established connections that the algorithm controls. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, u64);
} sockets SEC(".maps");

/* Notes on the namespaces whose default the algorithm became: the default before, the setup and the namespace's path, as text. Key 0
 * is the note for all namespaces without one, if the algorithm was attached for them. Only the loader uses them.
 */
struct note {
    char before[16];
    char setup[240];
    char path[256];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, u64);
    __type(value, struct note);
} namespaces SEC(".maps");

/* Bytes with the DSCP, without ECN, that connections of a namespace get in their packets, by the keys of the parameters. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, u64);
    __type(value, u32);
} marks SEC(".maps");

/* Parameters by the cookie of a network namespace; 0: of all namespaces that have none. */
#define FR_PARAMS(type_name)                                                                                                           \
    struct {                                                                                                                           \
        __uint(type, BPF_MAP_TYPE_HASH);                                                                                               \
        __uint(max_entries, 4096);                                                                                                     \
        __uint(map_flags, BPF_F_NO_PREALLOC);                                                                                          \
        __type(key, u64);                                                                                                              \
        __type(value, struct type_name);                                                                                               \
    } params SEC(".maps");                                                                                                             \
                                                                                                                                       \
    static __always_inline const struct type_name *params_of(struct sock *sk)                                                         \
    {                                                                                                                                  \
        u64 cookie = sk->__sk_common.skc_net.net->net_cookie, other = 0;                                                               \
        const struct type_name *found = bpf_map_lookup_elem(&params, &cookie);                                                         \
        return found ? found : bpf_map_lookup_elem(&params, &other);                                                                   \
    }                                                                                                                                  \
                                                                                                                                       \
    /* Gives a connection its DSCP, unless its program has chosen one. */                                                              \
    static __always_inline void mark(struct sock *sk)                                                                                  \
    {                                                                                                                                  \
        u64 cookie = sk->__sk_common.skc_net.net->net_cookie, key = bpf_map_lookup_elem(&params, &cookie) ? cookie : 0;                \
        u32 *found = bpf_map_lookup_elem(&marks, &key);                                                                                \
        int tos = found ? *found : 0;                                                                                                  \
        if (tos && !(((struct inet_sock *)sk)->tos & DSCP_MASK))                                                                       \
            bpf_setsockopt(sk, SOL_IP, IP_TOS, &tos, sizeof(tos));                                                                     \
    }

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
    return (struct tcp_sock *)sk;
}

static __always_inline void count_socket(s64 by)
{
    u32 zero = 0;
    u64 *n = bpf_map_lookup_elem(&sockets, &zero);
    if (n)
        __sync_fetch_and_add(n, by);
}

/* Returns the smallest round-trip time of the last minutes (the kernel's own filter), in nanoseconds; 1 ms before there is a sample. */
static __always_inline u64 min_rtt_ns(struct tcp_sock *tp)
{
    u32 us = tp->rtt_min.s[0].v;
    return us == ~0U ? 1000000 : fr_max(us, 1) * 1000;
}

static __always_inline u64 in_flight_packets(struct tcp_sock *tp)
{
    return fr_less(tp->packets_out + tp->retrans_out, tp->sacked_out + tp->lost_out);
}

/* Reads the acknowledgment that TCP is processing. Sequence numbers count acknowledged bytes from the start of the connection. */
static __always_inline void read_ack(struct tcp_sock *tp, const struct rate_sample *rs, struct fr_ack *ack)
{
    ack->now_ns = bpf_ktime_get_ns();
    ack->ack_seq = tp->bytes_acked;
    ack->snd_nxt = tp->bytes_acked + (tp->snd_nxt - tp->snd_una);
    ack->rtt_ns = rs->rtt_us > 0 ? rs->rtt_us * 1000 : 0;
    ack->in_flight = in_flight_packets(tp) * tp->mss_cache;
    ack->app_limited = rs->is_app_limited;
}

/* Sets the window in packets, cut to whole ones. A receiver acknowledges every second packet at once, so a window below two would wait
 * for its timer.
 */
static __always_inline void set_cwnd(struct tcp_sock *tp, u64 cwnd_q16)
{
    u64 packets = (cwnd_q16 >> 16) / fr_max(tp->mss_cache, 1);
    tp->snd_cwnd = fr_clamp(packets, 2, 1 << 20);
}

static __always_inline void set_pace(struct sock *sk, u64 bytes_per_s)
{
    sk->sk_pacing_rate = fr_max(bytes_per_s, 1);
}

/* Begins pacing by TCP, unless the queue of the host's port does it. */
static __always_inline void begin_pacing(struct sock *sk)
{
    if (!sk->sk_pacing_status)
        sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* Ends pacing, as the next algorithm may not pace, and would keep the pace of this one. A limit that the program has set stays in
 * force.
 */
static __always_inline void stop_pacing(struct sock *sk)
{
    if (sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0UL)
        sk->sk_pacing_status = SK_PACING_NONE;
}

/* The state of each connection under an algorithm: its `struct flow`. */
#define FR_FLOWS                                                                                                                       \
    struct {                                                                                                                           \
        __uint(type, BPF_MAP_TYPE_SK_STORAGE);                                                                                         \
        __uint(map_flags, BPF_F_NO_PREALLOC);                                                                                          \
        __type(key, int);                                                                                                              \
        __type(value, struct flow);                                                                                                    \
    } flows SEC(".maps");

/* Handles the end of a connection, or its change to another algorithm; what follows the name is done to its `sk` and `flow`. */
#define FR_RELEASE(name, ...)                                                                                                          \
    SEC("struct_ops") void name##_release(u64 *ctx)                                                                                    \
    {                                                                                                                                  \
        struct sock *sk = (struct sock *)ctx[0];                                                                                       \
        struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);                                                                      \
        if (flow) {                                                                                                                    \
            count_socket(-1);                                                                                                          \
            stop_pacing(sk);                                                                                                           \
            __VA_ARGS__;                                                                                                               \
        }                                                                                                                              \
        bpf_sk_storage_delete(&flows, sk);                                                                                             \
    }

/* Leaves the packets in flight as the window, after an algorithm whose window limits nothing: the next one would send all of it at once. */
static __always_inline void leave_window(struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);
    tp->snd_cwnd = fr_clamp(in_flight_packets(tp), 10, 1 << 14);
}

SEC("struct_ops") u32 fr_ssthresh(u64 *ctx)
{
    return fr_max(tcp_sk((struct sock *)ctx[0])->snd_cwnd >> 1, 2);
}

SEC("struct_ops") u32 fr_undo_cwnd(u64 *ctx)
{
    return tcp_sk((struct sock *)ctx[0])->snd_cwnd;
}

/* The algorithm as a congestion control of TCP, in both forms; more members follow. */
#define FR_OPS(name_, ...)                                                                                                             \
    SEC(".struct_ops") struct tcp_congestion_ops name_ = {.cong_control = name_##_cong_control, FR_MEMBERS(name_), __VA_ARGS__};       \
    SEC(".struct_ops") struct tcp_congestion_ops name_##_old = {                                                                       \
        .cong_control = name_##_cong_control_old, FR_MEMBERS(name_), __VA_ARGS__};

#define FR_MEMBERS(name_)                                                                                                              \
    .init = name_##_init, .release = name_##_release, .ssthresh = fr_ssthresh, .undo_cwnd = fr_undo_cwnd, .name = #name_

/* The same for an algorithm that paces: each packet by itself. */
#define FR_PACED_OPS(name_, ...)                                                                                                       \
    SEC("struct_ops") u32 fr_one_segment(u64 *ctx)                                                                                     \
    {                                                                                                                                  \
        return 1;                                                                                                                      \
    }                                                                                                                                  \
    FR_OPS(name_, .min_tso_segs = fr_one_segment, __VA_ARGS__)

#endif
