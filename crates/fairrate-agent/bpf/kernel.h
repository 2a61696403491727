/* The kernel's types, with the fields that the program reads. The loader finds their offsets in the running kernel. */
#ifndef FAIRRATE_KERNEL_H
#define FAIRRATE_KERNEL_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct in6_addr {
	union {
		__u32 u6_addr32[4];
	} in6_u;
};
struct ns_common {
	unsigned int inum;
};
struct netns_ipv4 {
	__u8 sysctl_tcp_tso_rtt_log;
};
struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
};
typedef struct {
	struct net *net;
} possible_net_t;
struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};
struct kernfs_node {
	__u64 id;
};
struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[0];
};
struct sock_cgroup_data {
	struct cgroup *cgroup;
};
typedef struct {
	unsigned int val;
} kuid_t;
struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
	unsigned long sk_max_pacing_rate;
	unsigned int sk_gso_max_size;
	__u16 sk_gso_max_segs;
	kuid_t sk_uid;
	struct sock_cgroup_data sk_cgrp_data;
};
struct minmax_sample {
	__u32 v;
};
struct minmax {
	struct minmax_sample s[3];
};
struct tcp_sock {
	__u32 write_seq;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 snd_cwnd;         /* packets */
	__u32 mss_cache;        /* bytes */
	struct minmax rtt_min;  /* microseconds */
	__u64 delivered_mstamp; /* microseconds */
	__u8 bpf_sock_ops_cb_flags;
};
struct inet_sock {
	struct sock sk;
};
struct udp_sock {
	struct inet_sock inet;
};
struct msghdr;
struct bpf_map;
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id;
	__u64 seq_num;
};
struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
	__u32 uid;
};
struct bpf_iter__udp {
	struct bpf_iter_meta *meta;
	struct udp_sock *udp_sk;
};
struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};
#pragma clang attribute pop

enum {
	AF_INET = 2,
	AF_INET6 = 10,
	IPPROTO_TCP = 6,
	IPPROTO_UDP = 17,
	TCP_CLOSE = 7,
	TCP_LISTEN = 10,
	SOL_SOCKET = 1,
	SO_MAX_PACING_RATE = 47,
	/* An option of BPF programs alone; headers before Linux 6.12 lack it. */
	TCP_BPF_SOCK_OPS_CB_FLAGS = 1008,
};

#endif
