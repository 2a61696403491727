/* The messages of switches to senders: a record of 16 bytes, or as the algorithm says, in a TCP option of kind 253 (RFC 4727, for
 * experiments).
 *
 * A sender leaves room for a record in every packet with data, and ports on the path write into it. The receiver sends the last record
 * back with packets without data. So on a connection that sends data both ways at once, only pauses bring echoes.
 */
#ifndef FAIRRATE_TELEMETRY_H
#define FAIRRATE_TELEMETRY_H

#include "flow.h"
#include "port.h"

#ifndef OPTION_WORDS
#define OPTION_WORDS 4
#endif
#define OPTION_KIND 253
#define OPTION_RECORD 0x1afa /* the experiment's identifier */
#define OPTION_ECHO 0x1afb

struct option {
    u8 kind;
    u8 length;
    u16 what;
    u32 words[OPTION_WORDS]; /* words of the algorithm; the last one is 0 until a port has written */
};

/* The options that the packets of a connection have brought. */
struct brought {
    struct option record; /* of data, to be echoed */
    struct option echo;   /* of our own data */
    u64 n_echoes;
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct brought);
} options SEC(".maps");

/* The part of struct bpf_sock_ops that is used. */
struct bpf_sock_ops {
    u32 op;
    u32 args[4];
    u32 family;
    u32 remote_ip4;
    u32 local_ip4;
    u32 remote_ip6[4];
    u32 local_ip6[4];
    u32 remote_port;
    u32 local_port;
    u32 is_fullsock;
    u32 counters1[22];
    u64 counters2[2];
    void *sk;
    void *skb_data;
    void *skb_data_end;
    u32 skb_len;
    u32 skb_tcp_flags;
};

#define OP_ACTIVE_ESTABLISHED 4
#define OP_PASSIVE_ESTABLISHED 5
#define OP_PARSE 13
#define OP_LENGTH 14
#define OP_WRITE 15
#define CB_PARSE_ALL (1 << 4)
#define CB_WRITE (1 << 6)

/* Returns true if a packet that is about to leave has no data; its header is all that is linear. */
static __always_inline int is_pure_ack(struct bpf_sock_ops *ctx)
{
    u8 *header = ctx->skb_data;
    if ((void *)(header + 20) > ctx->skb_data_end)
        return 0;
    return ctx->skb_len == (header[12] >> 4) * 4;
}

static __always_inline void write_option(struct bpf_sock_ops *ctx)
{
    struct option option = {.kind = OPTION_KIND, .length = sizeof(option), .what = OPTION_RECORD};
    void *sk = ctx->sk;
    struct brought *brought = sk ? bpf_sk_storage_get(&options, sk, 0, 0) : 0;
    if (is_pure_ack(ctx)) {
        if (!brought || !brought->record.words[OPTION_WORDS - 1])
            return;
        option = brought->record;
        option.what = OPTION_ECHO;
    }
    bpf_store_hdr_opt(ctx, &option, sizeof(option), 0);
}

/* Options of this kind are searched by kind and identifier. */
static __always_inline int load_option(struct bpf_sock_ops *ctx, struct option *option, u16 what)
{
    *option = (struct option){.kind = OPTION_KIND, .length = 4, .what = what};
    return bpf_load_hdr_opt(ctx, option, sizeof(*option), 0) == sizeof(*option) && option->words[OPTION_WORDS - 1];
}

static __always_inline void read_option(struct bpf_sock_ops *ctx)
{
    struct option record, echo;
    void *sk = ctx->sk;
    int has_record = load_option(ctx, &record, OPTION_RECORD), has_echo = load_option(ctx, &echo, OPTION_ECHO);
    if (!sk || !(has_record || has_echo))
        return;
    struct brought *brought = bpf_sk_storage_get(&options, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!brought)
        return;
    if (has_record)
        brought->record = record;
    if (has_echo) {
        brought->echo = echo;
        brought->n_echoes += 1;
    }
}

/* A search among the options of a TCP header. */
struct search {
    struct __sk_buff *skb;
    u32 at;
    u32 end;
    u32 found; /* the position of the option with room for a record; 0: none so far */
};

/* Looks at one option. As a function of bpf_loop it is verified once: a loop cost 150,000 verified instructions, and a million on Linux
 * 6.12, which is its limit.
 */
static long look_at_option(u32 i, void *context)
{
    struct search *s = context;
    u8 option[4];
    (void)i;
    if (s->end < s->at + 4 || bpf_skb_load_bytes(s->skb, s->at, option, 4))
        return 1;
    if (option[0] == OPTION_KIND && option[1] == sizeof(struct option) && *(u16 *)&option[2] == OPTION_RECORD) {
        s->found = s->at + sizeof(struct option) <= s->end ? s->at : 0;
        return 1;
    }
    s->at += option[0] == 1 ? 1 : fr_max(option[1], 2);
    return option[0] == 0;
}

/* Returns the position of the option with room for a record in a packet; 0: none. Ethernet and IPv4. A part of a packet that is not
 * the first has no header of TCP, whatever it looks like.
 */
static __always_inline u32 find_record(struct __sk_buff *skb)
{
    u8 byte, protocol, fragment[2];
    u16 type;
    if (bpf_skb_load_bytes(skb, 12, &type, 2) || type != 0x0008)
        return 0;
    if (bpf_skb_load_bytes(skb, 20, fragment, 2) || fragment[0] & 0x1f || fragment[1])
        return 0;
    if (bpf_skb_load_bytes(skb, 14, &byte, 1) || bpf_skb_load_bytes(skb, 23, &protocol, 1) || protocol != 6)
        return 0;
    u32 tcp = 14 + (byte & 15) * 4;
    if (bpf_skb_load_bytes(skb, tcp + 12, &byte, 1))
        return 0;
    struct search search = {.skb = skb, .at = tcp + 20, .end = tcp + (byte >> 4) * 4};
    bpf_loop(12, look_at_option, &search, 0);
    return search.found;
}

/* Replaces the option at `at` and corrects the checksum. */
static __always_inline void rewrite(struct __sk_buff *skb, u32 at, struct option *old, struct option *new)
{
    u8 version;
    if (bpf_skb_load_bytes(skb, 14, &version, 1))
        return;
    u32 sum_at = 14 + (version & 15) * 4 + 16;
    s64 difference = bpf_csum_diff((u32 *)old, sizeof(*old), (u32 *)new, sizeof(*new), 0);
    bpf_l4_csum_replace(skb, sum_at, 0, difference, 0);
    bpf_skb_store_bytes(skb, at, new, sizeof(*new), 0);
}

/* Handles the options of connections; `is_ours` returns true if a new connection takes part. */
static __always_inline int handle_options(struct bpf_sock_ops *ctx, int (*is_ours)(struct bpf_sock_ops *),
                                          void (*reserve)(struct bpf_sock_ops *), void (*write)(struct bpf_sock_ops *),
                                          void (*read)(struct bpf_sock_ops *))
{
    switch (ctx->op) {
    case OP_ACTIVE_ESTABLISHED:
    case OP_PASSIVE_ESTABLISHED:
        if (is_ours(ctx))
            bpf_sock_ops_cb_flags_set(ctx, CB_PARSE_ALL | CB_WRITE);
        break;
    case OP_LENGTH:
        reserve(ctx);
        break;
    case OP_WRITE:
        write(ctx);
        break;
    case OP_PARSE:
        read(ctx);
        break;
    }
    return 1;
}

static __always_inline void reserve_option(struct bpf_sock_ops *ctx)
{
    bpf_reserve_hdr_opt(ctx, sizeof(struct option), 0);
}

/* The same, where every packet of data has room for a record. */
static __always_inline int on_options(struct bpf_sock_ops *ctx, int (*is_ours)(struct bpf_sock_ops *))
{
    return handle_options(ctx, is_ours, reserve_option, write_option, read_option);
}

#endif
