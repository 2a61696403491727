/* Detects in TCP connections to the fabric that flowlets begin and end, and limits their rates. Sockets of UDP that ask for a rate have
 * flowlets too; their programs read the rate and keep to it.
 *
 * A flowlet begins with the first bytes that a program writes into an idle socket. It ends when all of them have been acknowledged
 * and nothing was written for `gap_ns`, or with the connection. User space gets both from `events` and puts rates into `rates`.
 *
 * Nothing here runs while no connection to the fabric is active, except `look_at_all`, which user space calls seldom:
 *
 *   writes           handles a program's write: a flowlet may begin
 *   steers           is called once a round trip, and before the first packet after a pause: a rate comes into force; a flowlet whose
 *                    write takes long may begin
 *   changes_state    handles the close of a connection: its flowlet ends
 *   look_at_tracked  looks at the sockets with storage in `flows`, and no others, for flowlets that are over
 *   look_at_all      looks at every socket, for flowlets that the others missed
 *
 * If user space attaches them, there are three more for UDP:
 *
 *   asks             handles a program's reading of its rate, a socket option that Linux does not have: the socket asks for rates from then on
 *   closes           handles the close of a socket: its flowlet ends
 *   look_at_askers   looks at the sockets that ask, for flowlets that the others missed
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The value of a rate without limit. */
#define NO_RATE 0xffffffffu

/* Settings, written before loading. */
const volatile struct {
	__u64 gap_ns;  /* idle time that ends a flowlet */
	__u64 late_ns; /* time without `steers` after which a rate that is not in force counts as late */
} settings = {};

/* A connection that has or had a flowlet. */
struct flow {
	__u64 cookie;
	__u64 wrote_ns;    /* time of the last write */
	__u64 steered_ns;  /* time of the last look at its limit */
	__u32 own;         /* limit that the program has set itself, bytes a second */
	__u32 set;         /* limit that was last set here */
	__u32 meant;       /* limit that `set` would be without the least one */
	__u8 is_active;    /* a flowlet is under way, and user space has its begin event */
	__u8 hears_writes; /* `steers` has asked to be called before packets */
	__u8 asks;         /* a socket of UDP, whose program reads its rate */
};
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

/* Rates that user space wants, by cookie, in bytes a second. User space sets the sizes of maps before loading, and is the only writer
 * of this map. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u32);
} rates SEC(".maps");

/* An address of IPv6, or one of IPv4 mapped into it. */
struct address {
	__be32 words[4];
};

/* Destinations whose flowlets count. */
struct prefix {
	__u32 bits;
	struct address address;
};
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct prefix);
	__type(value, __u8);
} fabric SEC(".maps");

/* Addresses on which allocators listen. Address 0 is any address of this host. */
struct place {
	struct address address;
	__u32 port;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct place);
	__type(value, __u8);
} servers SEC(".maps");

/* Network namespaces whose sockets count, by inode. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8);
} namespaces SEC(".maps");

/* Control groups that have a weight, by number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u8);
} groups SEC(".maps");

enum { BEGINS = 1, ENDS = 2, GOES_ON = 3 };
struct event {
	__u64 cookie;
	__u64 time_ns;
	__u64 group; /* nearest control group that has a weight; 0: none */
	__u64 owner; /* owner of the socket: places for flows are shared out among owners */
	struct address source;
	struct address destination;
	__u32 kind;
	__u32 unused;
};
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

/* Number of events that `events` had no room for. */
__u64 lost SEC(".data.lost") = 0;

/* 1 until the first look is over: a limit that looks as if an agent had set it was left by an agent that died. */
__u32 takes_over SEC(".data.takes_over") = 1;

/* The result of the last look at tracked sockets. */
struct {
	__u64 soonest_ns; /* time at which the next flowlet may be over; ~0: there is none */
	__u32 n_active;
	__u32 n_late;     /* number of rates that have not come into force for `late_ns` */
} tracked SEC(".data.tracked") = {};

struct ends {
	struct address source;
	struct address destination;
	__u16 source_port;
	__u16 destination_port;
};

static __always_inline struct address mapped(__be32 address)
{
	struct address mapped = { .words = { 0, 0, __builtin_bswap32(0xffff), address } };
	return mapped;
}

static __always_inline int is_same(struct address *a, struct address *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1] && a->words[2] == b->words[2] && a->words[3] == b->words[3];
}

/* Reads the two ends of a connection; returns 0 if it uses another protocol. */
static __always_inline int ends_of(struct sock_common *common, struct ends *ends)
{
	if (common->skc_family == AF_INET6) {
		for (int i = 0; i < 4; i++) {
			ends->source.words[i] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
			ends->destination.words[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
		}
	} else if (common->skc_family == AF_INET) {
		ends->source = mapped(common->skc_rcv_saddr);
		ends->destination = mapped(common->skc_daddr);
	} else {
		return 0;
	}
	ends->source_port = common->skc_num;
	ends->destination_port = __builtin_bswap16(common->skc_dport);
	return 1;
}

static __always_inline int is_server(struct address *address, __u16 port)
{
	struct place place = { .address = *address, .port = port };
	return bpf_map_lookup_elem(&servers, &place) != 0;
}

/* Returns true if a connection goes from a network namespace that counts to the fabric, and is not one of an allocator with an agent. Traffic
 * of a host to itself takes no link. */
static __always_inline int counts(struct sock_common *common, struct ends *ends)
{
	__u32 netns = common->skc_net.net->ns.inum;
	if (!bpf_map_lookup_elem(&namespaces, &netns) || !ends_of(common, ends) || is_same(&ends->source, &ends->destination))
		return 0;
	struct prefix to = { .bits = 128, .address = ends->destination };
	struct address anywhere = {};
	if (!bpf_map_lookup_elem(&fabric, &to))
		return 0;
	return !is_server(&ends->destination, ends->destination_port) && !is_server(&ends->source, ends->source_port) &&
	       !is_server(&anywhere, ends->source_port);
}

/* Depth limit: control groups below it have the weight of their ancestor at this depth. */
#define MAX_DEPTH 32

/* The depth of the group that stands for a user or a service, as in `user.slice/user-1000.slice`: users cannot leave it. */
#define OWNER_DEPTH 2

static __always_inline __u64 ancestor(struct cgroup *cgroup, int depth)
{
	struct cgroup *at = 0;
	bpf_core_read(&at, sizeof(at), (void *)cgroup + bpf_core_field_offset(cgroup->ancestors) + depth * sizeof(at));
	return BPF_CORE_READ(at, kn, id);
}

/* Sets the owner of a socket: a control group near the root, or a user where there are no groups. */
static __always_inline void put_owner(struct event *event, struct sock *sk)
{
	struct cgroup *cgroup = BPF_CORE_READ(sk, sk_cgrp_data.cgroup);
	int depth = BPF_CORE_READ(cgroup, level);
	event->owner = depth ? ancestor(cgroup, depth < OWNER_DEPTH ? depth : OWNER_DEPTH)
			     : 1ull << 63 | BPF_CORE_READ(sk, sk_uid.val);
	event->group = 0;
	for (int at = 0; at < MAX_DEPTH; at++) {
		if (depth < at)
			break;
		__u64 id = ancestor(cgroup, at);
		if (bpf_map_lookup_elem(&groups, &id))
			event->group = id;
	}
}

static __always_inline void describe(struct event *event, struct sock *sk, struct ends *ends, __u64 cookie, __u32 kind)
{
	event->cookie = cookie;
	event->time_ns = bpf_ktime_get_ns();
	event->source = ends->source;
	event->destination = ends->destination;
	event->kind = kind;
	event->unused = 0;
	event->owner = event->group = 0;
	if (kind != ENDS)
		put_owner(event, sk);
}

static __always_inline int tell(struct sock *sk, struct ends *ends, __u64 cookie, __u32 kind)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	describe(event, sk, ends, cookie, kind);
	bpf_ringbuf_submit(event, 0);
	return 1;
}

/* Returns the socket's limit in 32 bits, the width that `SO_MAX_PACING_RATE` has here. */
static __always_inline __u32 limit_of(struct sock *sk)
{
	unsigned long limit = sk->sk_max_pacing_rate;
	return limit < NO_RATE ? limit : NO_RATE;
}

/* Rates that agents set have, below their first eleven bits, the bits of this number, so that a new agent recognises the limits of a
 * dead one. */
#define MARK 0xb5a5a5a5u

static __always_inline int is_marked(__u32 limit)
{
	__u32 low = 0;
	for (__u32 top = limit >> 11; top; top >>= 1)
		low = low << 1 | 1;
	return low && limit != NO_RATE && ((limit ^ MARK) & low) == 0;
}

static __always_inline __u32 marked(__u32 limit)
{
	__u32 low = 0;
	for (__u32 top = limit >> 11; top; top >>= 1)
		low = low << 1 | 1;
	return (limit & ~low) | (MARK & low);
}

/* Returns true if the limit of a socket was set by a dead agent, which had asked to be called for each round trip. */
static __always_inline int is_left(struct tcp_sock *tcp)
{
	return takes_over && tcp->bpf_sock_ops_cb_flags & BPF_SOCK_OPS_RTT_CB_FLAG && is_marked(limit_of((struct sock *)tcp));
}

/* Begins to track a connection. */
static __always_inline struct flow *follow(struct tcp_sock *tcp, __u64 cookie)
{
	struct flow *flow = bpf_sk_storage_get(&flows, tcp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	flow->cookie = cookie;
	flow->set = limit_of((struct sock *)tcp);
	flow->own = flow->meant = is_left(tcp) ? NO_RATE : flow->set;
	flow->steered_ns = bpf_ktime_get_ns();
	return flow;
}

/* Returns true if a connection has something to send. A SYN or a FIN takes a sequence number too. */
static __always_inline int is_busy(struct tcp_sock *tcp)
{
	return ((struct sock_common *)tcp)->skc_state != TCP_CLOSE && 1 < tcp->write_seq - tcp->snd_una;
}

/* Begins a flowlet, unless the event to user space is lost: then it begins with the next write or round trip. */
static __always_inline void begin(struct flow *flow, struct sock *sk, struct ends *ends)
{
	flow->wrote_ns = bpf_ktime_get_ns();
	flow->is_active = tell(sk, ends, flow->cookie, BEGINS);
}

/* Handles a program's write into a socket. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(writes, struct sock *sk, int sent)
{
	struct ends ends;
	if (sent <= 0 || (sk->sk_protocol != IPPROTO_TCP && sk->sk_protocol != IPPROTO_UDP))
		return 0;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (flow && flow->is_active) {
		flow->wrote_ns = bpf_ktime_get_ns();
		return 0;
	}
	/* A socket of UDP that is not connected is in this state too. */
	if (sk->__sk_common.skc_state == TCP_CLOSE || !counts(&sk->__sk_common, &ends))
		return 0;
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	if (!flow && tcp)
		flow = follow(tcp, bpf_get_socket_cookie(sk));
	if (flow && flow->asks)
		flow->cookie = bpf_get_socket_cookie(sk);
	if (flow)
		begin(flow, sk, &ends);
	return 0;
}

/* Handles the end of a connection. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(changes_state, struct sock *sk, int before, int state)
{
	if (state != TCP_CLOSE || sk->sk_protocol != IPPROTO_TCP)
		return 0;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	struct ends nowhere = {};
	if (flow && flow->is_active) {
		flow->is_active = 0;
		tell(sk, &nowhere, flow->cookie, ENDS);
	}
	return 0;
}

/* Returns the limit that a socket should have. */
static __always_inline __u32 target(struct flow *flow, __u32 own)
{
	__u32 *wanted = bpf_map_lookup_elem(&rates, &flow->cookie);
	return wanted && *wanted < own ? *wanted : own;
}

/* Least number of the longest segments that a limit lets through in a second. After a segment TCP waits for the time that it takes at the
 * limit of then, however much the limit grows meanwhile: a 20th of a second. */
#define LEAST_SEGMENTS 20

/* Returns the length of the longest segments that a connection has at low rates: at most half its window, and the shorter its round
 * trips the longer (the kernel's `tcp_cwnd_test` and `tcp_tso_autosize`). */
static __always_inline __u32 longest_segment(struct tcp_sock *tcp)
{
	struct sock *sk = (struct sock *)tcp;
	__u32 halvings = tcp->rtt_min.s[0].v >> (sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_tso_rtt_log & 31);
	__u32 longest = halvings < 32 ? sk->sk_gso_max_size >> halvings : 0;
	__u32 mss = tcp->mss_cache, half_window = tcp->snd_cwnd / 2 * mss, most = sk->sk_gso_max_segs * mss;
	if (longest < 2 * mss)
		longest = 2 * mss;
	if (half_window < longest)
		longest = half_window;
	if (most < longest)
		longest = most;
	return longest < mss ? mss : longest;
}

/* Returns the limit for a connection that should have `meant`, whose program has set `own`. */
static __always_inline __u32 limit_for(struct tcp_sock *tcp, __u32 meant, __u32 own)
{
	__u32 least = longest_segment(tcp) * LEAST_SEGMENTS;
	if (own <= meant || least <= meant)
		return meant;
	least = marked(least);
	return least < own ? least : own;
}

/* Looks at a socket with storage in `flows`. */
SEC("iter/bpf_sk_storage_map")
int look_at_tracked(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	if (ctx->meta->seq_num == 0) {
		tracked.soonest_ns = ~0ull;
		tracked.n_active = tracked.n_late = 0;
	}
	struct flow *flow = ctx->value;
	struct sock *sk = ctx->sk;
	struct tcp_sock *tcp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
	if (!sk || !flow || !flow->is_active || !(tcp || flow->asks))
		return 0;
	__u64 now = bpf_ktime_get_ns(), idle_since = flow->wrote_ns;
	if (tcp && is_busy(tcp))
		idle_since = now;
	else if (tcp && idle_since < tcp->delivered_mstamp * 1000)
		idle_since = tcp->delivered_mstamp * 1000;
	if (idle_since + settings.gap_ns <= now) {
		struct ends nowhere = {};
		if (tell(sk, &nowhere, flow->cookie, ENDS)) {
			flow->is_active = 0;
			return 0;
		}
	}
	tracked.n_active++;
	if (idle_since + settings.gap_ns < tracked.soonest_ns)
		tracked.soonest_ns = idle_since + settings.gap_ns;
	if (!tcp)
		return 0;
	__u32 limit = limit_of(sk);
	int is_in_force = limit == flow->set ? target(flow, flow->own) == flow->meant : target(flow, limit) == limit;
	if (flow->steered_ns + settings.late_ns < now && !is_in_force)
		tracked.n_late++;
	return 0;
}

/* Puts the wanted rate into force at a socket whose lock is held, and records a limit that its program has set since. `context` is the
 * first argument of `bpf_setsockopt` here. */
#define STEER(flow, tcp, context)                                                                                                      \
	({                                                                                                                             \
		__u32 limit = limit_of((struct sock *)(tcp));                                                                          \
		if (limit != (flow)->set)                                                                                              \
			(flow)->own = limit;                                                                                           \
		(flow)->meant = target(flow, (flow)->own);                                                                             \
		__u32 rate = limit_for(tcp, (flow)->meant, (flow)->own);                                                               \
		(flow)->set = rate;                                                                                                    \
		(flow)->steered_ns = bpf_ktime_get_ns();                                                                               \
		if (rate != limit)                                                                                                     \
			bpf_setsockopt(context, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));                                  \
	})

/* Requests calls before packets, or ends them. Only a connection with nothing left to hand to the network may pause, and its limit
 * must be right when it continues. Other connections are spared the calls. */
static __always_inline void hear_writes(struct bpf_sock_ops *ctx, struct flow *flow, int wanted)
{
	__u32 flags = ctx->bpf_sock_ops_cb_flags;
	if (wanted && !(flags & BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG)) {
		bpf_sock_ops_cb_flags_set(ctx, flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		flow->hears_writes = 1;
	} else if (!wanted && flow->hears_writes) {
		bpf_sock_ops_cb_flags_set(ctx, flags & ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		flow->hears_writes = 0;
	}
}

/* Handles TCP's callbacks at a socket: puts rates into force. */
SEC("sockops")
int steers(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	if (!sk || !ctx->is_fullsock)
		return 1;
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct ends ends;
	if (!tcp)
		return 1;
	if (ctx->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		if (counts((struct sock_common *)tcp, &ends))
			bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_RTT_CB_FLAG);
		return 1;
	}
	if (ctx->op != BPF_SOCK_OPS_RTT_CB && ctx->op != BPF_SOCK_OPS_HDR_OPT_LEN_CB)
		return 1;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (!(flow && flow->is_active) && is_busy(tcp) && counts((struct sock_common *)tcp, &ends)) {
		if (!flow)
			flow = follow(tcp, bpf_get_socket_cookie(ctx));
		if (flow)
			begin(flow, (struct sock *)tcp, &ends);
	}
	if (!flow)
		return 1;
	STEER(flow, tcp, ctx);
	int may_pause = ctx->op == BPF_SOCK_OPS_HDR_OPT_LEN_CB ? flow->hears_writes : tcp->write_seq == tcp->snd_nxt;
	hear_writes(ctx, flow, may_pause && flow->set != flow->own);
	return 1;
}

/* Requests calls of `steers` for a socket that is older than the agent. Kernels before 6.12 refuse it. */
static __always_inline void hear_acks(struct tcp_sock *tcp)
{
	int flags = tcp->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_RTT_CB_FLAG;
	if (flags != tcp->bpf_sock_ops_cb_flags)
		bpf_setsockopt(tcp, IPPROTO_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
}

/* Looks at a socket of the network namespace in which user space has begun the look: reports a flowlet that goes on, and one that has not been reported. */
SEC("iter/tcp")
int look_at_all(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tcp = common ? bpf_skc_to_tcp_sock(common) : 0;
	struct ends ends;
	if (!tcp || common->skc_state == TCP_LISTEN || !counts(common, &ends))
		return 0;
	struct sock *sk = (struct sock *)tcp;
	struct flow *flow = bpf_sk_storage_get(&flows, tcp, 0, 0);
	if (!flow && (is_busy(tcp) || is_left(tcp)))
		flow = follow(tcp, bpf_get_socket_cookie(tcp));
	hear_acks(tcp);
	if (!flow)
		return 0;
	if (!flow->is_active && is_busy(tcp)) {
		flow->wrote_ns = bpf_ktime_get_ns();
		flow->is_active = 1;
	}
	STEER(flow, tcp, tcp);
	if (flow->is_active) {
		struct event event;
		describe(&event, sk, &ends, flow->cookie, GOES_ON);
		bpf_seq_write(ctx->meta->seq, &event, sizeof(event));
	} else if (flow->set == flow->own) {
		bpf_sk_storage_delete(&flows, tcp);
	}
	return 0;
}

/* The option by which a program reads the rate of a socket of UDP, in bytes a second; ~0: it has none. */
#define SOL_FAIRRATE 0xfa17
#define FAIRRATE_RATE 1

/* Handles a program's reading of a socket's option. */
SEC("cgroup/getsockopt")
int asks(struct bpf_sockopt *ctx)
{
	__u64 *to = ctx->optval;
	struct bpf_sock *sk = ctx->sk;
	if (ctx->level != SOL_FAIRRATE || ctx->optname != FAIRRATE_RATE || !sk || sk->protocol != IPPROTO_UDP)
		return 1;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow || (void *)(to + 1) > ctx->optval_end)
		return 1;
	flow->asks = 1;
	__u32 *rate = bpf_map_lookup_elem(&rates, &flow->cookie);
	/* The agents of other network namespaces are asked too, in any order. Only that of the socket's has a flowlet. */
	if (flow->is_active && rate)
		*to = *rate;
	else if (ctx->retval)
		*to = ~0ull;
	ctx->optlen = sizeof(*to);
	barrier(); /* One store to both fields would not be accepted. */
	ctx->retval = 0;
	return 1;
}

/* Handles the close of a socket. */
SEC("cgroup/sock_release")
int closes(struct bpf_sock *sk)
{
	struct flow *flow = sk->protocol == IPPROTO_UDP ? bpf_sk_storage_get(&flows, sk, 0, 0) : 0;
	struct ends nowhere = {};
	if (flow && flow->asks && flow->is_active) {
		flow->is_active = 0;
		tell(0, &nowhere, flow->cookie, ENDS);
	}
	return 1;
}

/* Looks at a socket of UDP of the network namespace in which user space has begun the look: reports a flowlet that goes on. */
SEC("iter/udp")
int look_at_askers(struct bpf_iter__udp *ctx)
{
	struct udp_sock *udp = ctx->udp_sk;
	struct flow *flow = udp ? bpf_sk_storage_get(&flows, udp, 0, 0) : 0;
	struct sock *sk = (struct sock *)udp;
	struct ends ends;
	if (!flow || !flow->asks || !flow->is_active || !counts(&sk->__sk_common, &ends))
		return 0;
	struct event event;
	describe(&event, sk, &ends, flow->cookie, GOES_ON);
	bpf_seq_write(ctx->meta->seq, &event, sizeof(event));
	return 0;
}
