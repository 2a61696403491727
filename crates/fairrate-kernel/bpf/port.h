/* The common parts of programs at a switch's port: the port's identity, and the bytes queued there. */
#ifndef FAIRRATE_PORT_H
#define FAIRRATE_PORT_H

#include "kernel.h"
#include "laws/fixed.h"

/* The part of struct __sk_buff that is used; programs get it in place of a packet. */
struct __sk_buff {
    u32 len;
    u32 pkt_type;
    u32 mark;
    u32 queue_mapping;
    u32 protocol;
};

#define TC_ACT_UNSPEC (-1)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gnet_stats_queue {
    u32 backlog;
};

struct hlist_node {
    struct hlist_node *next;
};

struct hlist_head {
    struct hlist_node *first;
};

struct Qdisc {
    u32 handle;
    struct hlist_node hash;
    struct gnet_stats_queue qstats;
};

struct net_device {
    int ifindex;
    possible_net_t nd_net;
    struct Qdisc *qdisc;
    struct hlist_head qdisc_hash[16];
    u8 priv[0];
};

struct veth_priv {
    struct net_device *peer;
};

struct sk_buff {
    struct net_device *dev;
};

#pragma clang attribute pop

extern void *bpf_cast_to_kern_ctx(void *) __attribute__((section(".ksyms")));

/* The device to which a program is attached. */
struct port_key {
    u64 cookie; /* cookie of its network namespace */
    u64 ifindex;
};

struct port {
    u64 tx_bytes;
    u64 setting; /* setting given with the port: a rate in kb/s, or a queue length in bytes */
    u32 id;      /* above 0 */
    u32 made_clsact; /* for the loader: it made the qdisc to which programs are attached */
    u32 queue;       /* handle of the queue of the class that alone counts; 0: all of the port counts */
    u32 tos;         /* its packets' byte with the DSCP, without ECN */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 256);
    __type(key, struct port_key);
    __type(value, struct port);
} ports SEC(".maps");

static __always_inline struct net_device *device_of(struct __sk_buff *skb)
{
    struct sk_buff *packet = bpf_cast_to_kern_ctx(skb);
    return BPF_CORE_READ(packet, dev);
}

static __always_inline struct port_key key_of(struct net_device *dev)
{
    return (struct port_key){
        .cookie = BPF_CORE_READ(dev, nd_net.net, net_cookie),
        .ifindex = BPF_CORE_READ(dev, ifindex),
    };
}

static __always_inline struct port *port_of(struct net_device *dev)
{
    struct port_key key = key_of(dev);
    return bpf_map_lookup_elem(&ports, &key);
}

/* Returns the other end of a veth pair. */
static __always_inline struct net_device *peer_of(struct net_device *dev)
{
    u32 size = bpf_core_type_size(struct net_device);
    u32 offset = bpf_core_field_exists(dev->priv) ? bpf_core_field_offset(struct net_device, priv) : (size + 31) & ~31U;
    struct veth_priv *priv = (void *)dev + offset;
    return BPF_CORE_READ(priv, peer);
}

static __always_inline u32 backlog_of(struct net_device *dev)
{
    return BPF_CORE_READ(dev, qdisc, qstats.backlog);
}

/* Number of queues with one hash that are searched. */
#define MOST_SAME_HASH 16

/* Returns the bytes in the queue with this handle below the root of a device; if there is none, those of the root. The kernel has these queues
 * in a table by `hash_32` of the handle.
 */
static __always_inline u32 backlog_of_class(struct net_device *dev, u32 handle)
{
    u32 at = handle * 0x61c88647U >> 28;
    struct hlist_node *node = 0;
    bpf_core_read(&node, sizeof(node), (void *)dev + bpf_core_field_offset(dev->qdisc_hash) + at * sizeof(node));
    for (int i = 0; i < MOST_SAME_HASH && node; i++) {
        struct Qdisc *queue = (void *)node - bpf_core_field_offset(struct Qdisc, hash);
        if (BPF_CORE_READ(queue, handle) == handle)
            return BPF_CORE_READ(queue, qstats.backlog);
        node = BPF_CORE_READ(node, next);
    }
    return backlog_of(dev);
}

#endif
