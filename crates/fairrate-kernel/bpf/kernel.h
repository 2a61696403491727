/* The kernel's types as the programs use them. The structs have only the fields that are used; libbpf finds their offsets in the
 * running kernel (CO-RE), so no header of a kernel is needed.
 */
#ifndef FAIRRATE_KERNEL_H
#define FAIRRATE_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef signed short __s16;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;
typedef _Bool bool;

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_SK_STORAGE 24
#define BPF_F_NO_PREALLOC 1
#define BPF_NOEXIST 1
#define BPF_SK_STORAGE_GET_F_CREATE 1

#define TCP_CA_RECOVERY 3
#define TCP_CA_LOSS 4
#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CONG_NEEDS_ECN 2
#define CA_EVENT_TX_START 0
#define CA_EVENT_ECN_NO_CE 4
#define CA_EVENT_ECN_IS_CE 5
#define TCP_ECN_DEMAND_CWR 4
#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW 16
#define SK_PACING_NONE 0
#define SOL_IP 0
#define IP_TOS 1
#define DSCP_MASK 0xfc
#define SK_PACING_NEEDED 1
#define SOCK_NOSPACE 2

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net {
    u64 net_cookie;
};

typedef struct {
    struct net *net;
} possible_net_t;

struct sock_common {
    possible_net_t skc_net;
};

struct socket {
    unsigned long flags;
};

struct sock {
    struct sock_common __sk_common;
    struct socket *sk_socket;
    u32 sk_pacing_status;
    unsigned long sk_pacing_rate;
    unsigned long sk_max_pacing_rate;
};

struct inet_sock {
    struct sock sk;
    u8 tos;
};

struct inet_connection_sock {
    struct inet_sock icsk_inet;
    void *icsk_ulp_data;
    struct {
        u8 pending;
    } icsk_ack;
};

struct minmax_sample {
    u32 t;
    u32 v;
};

struct minmax {
    struct minmax_sample s[3];
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    u32 mss_cache;
    u32 snd_cwnd;
    u32 snd_ssthresh;
    u32 snd_una;
    u32 snd_nxt;
    u32 write_seq;
    u32 srtt_us;
    u32 rcv_nxt;
    u32 packets_out;
    u32 sacked_out;
    u32 lost_out;
    u32 retrans_out;
    u32 delivered;
    u32 delivered_ce;
    u64 bytes_acked;
    u8 ecn_flags;
    bool is_mptcp;
    struct minmax rtt_min;
};

struct mptcp_subflow_context {
    struct sock *conn;
};

struct rate_sample {
    long rtt_us;
    int losses;
    bool is_app_limited;
};

#pragma clang attribute pop

/* TCP's table of a congestion control. Programs get the array of their arguments. */
struct tcp_congestion_ops {
    void (*init)(u64 *);
    void (*release)(u64 *);
    u32 (*ssthresh)(u64 *);
    void (*cong_control)(u64 *);
    u32 (*undo_cwnd)(u64 *);
    void (*set_state)(u64 *);
    void (*cwnd_event)(u64 *);
    u32 (*min_tso_segs)(u64 *);
    char name[16];
    u32 flags;
};

/* Each algorithm has two forms of `cong_control`: kernels from 6.10 on pass (sk, ack, flag, rs), older ones (sk, rs). The loader takes
 * the form that the running kernel has.
 */
#define FR_CONG_CONTROL(name, on_ack)                                                                                                  \
    SEC("struct_ops") void name##_cong_control(u64 *ctx)                                                                               \
    {                                                                                                                                  \
        on_ack((struct sock *)ctx[0], (const struct rate_sample *)ctx[3]);                                                             \
    }                                                                                                                                  \
    SEC("struct_ops") void name##_cong_control_old(u64 *ctx)                                                                           \
    {                                                                                                                                  \
        on_ack((struct sock *)ctx[0], (const struct rate_sample *)ctx[1]);                                                             \
    }

#endif
