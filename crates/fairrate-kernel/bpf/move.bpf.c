/* Moves the sockets of an algorithm that is removed from the kernel to another algorithm: an iterator over the sockets of a network
 * namespace.
 *
 * A detached algorithm has lost its inputs: records that ports stamped, rates, marks. Its connections would keep their last window. A
 * listening socket that was given the algorithm by name passes it on to its connections, so it is moved as well; all others pass on
 * the default of the namespace. With the algorithm goes the DSCP that it has given its connections.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define IPPROTO_TCP 6
#define TCP_CONGESTION 13
#define TCP_LISTEN 10
#define NAME 16

/* The loader's request. */
struct move {
    char from[NAME];
    char to[NAME];
    u32 tos; /* byte with the DSCP that the algorithm has given its connections; 0: none */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct move);
} moves SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common___state {
    volatile unsigned char skc_state;
};

struct tcp_congestion_ops___name {
    char name[NAME];
};

struct inet_connection_sock___ops {
    const struct tcp_congestion_ops___name *icsk_ca_ops;
    u8 icsk_ca_state : 5, icsk_ca_initialized : 1, icsk_ca_setsockopt : 1;
};

struct bpf_iter__tcp {
    void *meta;
    struct sock_common *sk_common;
    u32 uid;
};

#pragma clang attribute pop

static __always_inline int is_same(const char *a, const char *b)
{
    for (int i = 0; i < NAME; i++) {
        if (a[i] != b[i])
            return 0;
        if (!a[i])
            return 1;
    }
    return 1;
}

SEC("iter/tcp") int fr_move(struct bpf_iter__tcp *ctx)
{
    u32 zero = 0;
    struct move *move = bpf_map_lookup_elem(&moves, &zero);
    struct sock_common *common = ctx->sk_common;
    struct tcp_sock *tp = common ? bpf_skc_to_tcp_sock(common) : 0;
    char name[NAME] = {};
    if (!move || !tp)
        return 0;
    struct inet_connection_sock___ops *icsk = (void *)tp;
    BPF_CORE_READ_STR_INTO(&name, icsk, icsk_ca_ops, name);
    if (!is_same(name, move->from))
        return 0;
    u8 state = BPF_CORE_READ((struct sock_common___state *)common, skc_state);
    if (state == TCP_LISTEN && !BPF_CORE_READ_BITFIELD_PROBED(icsk, icsk_ca_setsockopt))
        return 0;
    __builtin_memcpy(name, move->to, NAME);
    bpf_setsockopt(tp, IPPROTO_TCP, TCP_CONGESTION, name, NAME);
    /* Its class was for the algorithm's short queues. */
    int none = 0;
    if (move->tos && (BPF_CORE_READ((struct inet_sock *)tp, tos) & DSCP_MASK) == move->tos)
        bpf_setsockopt(tp, SOL_IP, IP_TOS, &none, sizeof(none));
    return 0;
}
