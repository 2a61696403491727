/* Which TCP connections of a host have something to send, and at what rate they may.
 *
 * A flowlet begins with the first bytes that a program writes into an idle socket. It ends when all of them have been acknowledged
 * and nothing was written for `gap_ns`, or with the connection. User space learns of both from `events`, and puts rates into
 * `rates`; a walk over the sockets (`visit`) hands them to TCP and finds the flowlets that have ended.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* What is read of the kernel's structures; the loader finds where the running kernel has it. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct in6_addr {
	union {
		__u8 u6_addr8[16];
	} in6_u;
};
struct ns_common {
	unsigned int inum;
};
struct net {
	struct ns_common ns;
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
	struct kernfs_node *kn;
};
struct sock_cgroup_data {
	struct cgroup *cgroup;
};
struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
	struct sock_cgroup_data sk_cgrp_data;
};
struct tcp_sock {
	__u32 write_seq;
	__u32 snd_una;
};
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
#pragma clang attribute pop

enum { AF_INET6 = 10, IPPROTO_TCP = 6, TCP_CLOSE = 7, TCP_LISTEN = 10, SOL_SOCKET = 1, SO_MAX_PACING_RATE = 47 };

/* A rate that does not limit. */
#define NO_RATE 0xffffffffu

/* Set before loading. */
const volatile struct {
	__u64 gap_ns; /* the idle time that ends a flowlet */
	__u32 netns;  /* the network namespace whose sockets count, by its inode */
} settings = {};

/* A connection that has sent, by its cookie. */
struct flow {
	__u64 busy_ns; /* when it was last seen to have something to send */
	__u32 active;  /* a flowlet is under way */
	__u32 applied; /* the rate that TCP has been given, bytes a second */
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct flow);
} flows SEC(".maps");

/* Rates that user space wants, bytes a second. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u32);
} rates SEC(".maps");

enum { BEGINS = 1, ENDS = 2 };
struct event {
	__u64 cookie;
	__u64 cgroup;    /* of the socket */
	__u8 source[16]; /* IPv4 addresses are mapped into IPv6's */
	__u8 destination[16];
	__u16 source_port;
	__u16 destination_port;
	__u32 kind;
};
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

/* Flowlets that could not be told of, since a map was full. */
__u64 missed = 0;

static __always_inline int is_ours(struct sock_common *common)
{
	return BPF_CORE_READ(common, skc_net.net, ns.inum) == settings.netns;
}

static __always_inline void put_addresses(struct event *event, struct sock_common *common)
{
	event->source_port = BPF_CORE_READ(common, skc_num);
	event->destination_port = __builtin_bswap16(BPF_CORE_READ(common, skc_dport));
	if (BPF_CORE_READ(common, skc_family) == AF_INET6) {
		BPF_CORE_READ_INTO(&event->source, common, skc_v6_rcv_saddr.in6_u.u6_addr8);
		BPF_CORE_READ_INTO(&event->destination, common, skc_v6_daddr.in6_u.u6_addr8);
		return;
	}
	__be32 from = BPF_CORE_READ(common, skc_rcv_saddr), to = BPF_CORE_READ(common, skc_daddr);
	__builtin_memset(event->source, 0, 10);
	__builtin_memset(event->destination, 0, 10);
	event->source[10] = event->source[11] = event->destination[10] = event->destination[11] = 0xff;
	__builtin_memcpy(event->source + 12, &from, 4);
	__builtin_memcpy(event->destination + 12, &to, 4);
}

static __always_inline int tell(struct sock *sk, __u64 cookie, __u32 kind)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&missed, 1);
		return 0;
	}
	event->cookie = cookie;
	event->cgroup = BPF_CORE_READ(sk, sk_cgrp_data.cgroup, kn, id);
	event->kind = kind;
	put_addresses(event, &sk->__sk_common);
	bpf_ringbuf_submit(event, 0);
	return 1;
}

/* A connection has something to send. If it had not, a flowlet begins. */
static __always_inline void is_busy(struct sock *sk, __u64 cookie, __u64 now)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, &cookie);
	if (!flow) {
		struct flow fresh = { .applied = NO_RATE };
		bpf_map_update_elem(&flows, &cookie, &fresh, BPF_NOEXIST);
		flow = bpf_map_lookup_elem(&flows, &cookie);
		if (!flow) {
			__sync_fetch_and_add(&missed, 1);
			return;
		}
	}
	flow->busy_ns = now;
	if (!flow->active && tell(sk, cookie, BEGINS))
		flow->active = 1;
}

/* A program has written into a socket. Long writes return late: `visit` sees them before. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(writes, struct sock *sk, int sent)
{
	if (0 < sent && sk->sk_protocol == IPPROTO_TCP && is_ours(&sk->__sk_common))
		is_busy(sk, bpf_get_socket_cookie(sk), bpf_ktime_get_ns());
	return 0;
}

/* A connection is over. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(changes_state, struct sock *sk, int before, int state)
{
	if (state != TCP_CLOSE || !is_ours(&sk->__sk_common))
		return 0;
	__u64 cookie = bpf_get_socket_cookie(sk);
	struct flow *flow = bpf_map_lookup_elem(&flows, &cookie);
	if (flow && flow->active)
		tell(sk, cookie, ENDS);
	if (flow)
		bpf_map_delete_elem(&flows, &cookie);
	return 0;
}

/* Looks at a socket of this network namespace, on each walk over them. */
SEC("iter/tcp")
int visit(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tcp = common ? bpf_skc_to_tcp_sock(common) : 0;
	if (!tcp || common->skc_state == TCP_LISTEN)
		return 0;
	struct sock *sk = (struct sock *)tcp;
	__u64 cookie = bpf_get_socket_cookie(tcp), now = bpf_ktime_get_ns();
	/* A SYN or a FIN takes a number of the sequence too. */
	if (1 < tcp->write_seq - tcp->snd_una)
		is_busy(sk, cookie, now);
	struct flow *flow = bpf_map_lookup_elem(&flows, &cookie);
	if (!flow)
		return 0;
	__u32 *wanted = bpf_map_lookup_elem(&rates, &cookie), rate = wanted ? *wanted : NO_RATE;
	if (rate != flow->applied && !bpf_setsockopt(tcp, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)))
		flow->applied = rate;
	if (flow->active && flow->busy_ns + settings.gap_ns < now && tell(sk, cookie, ENDS))
		flow->active = 0;
	return 0;
}
