/* PERC: L. Jose et al., "High Speed Networks Need Proactive Congestion Control", HotNets 2015: the asynchronous form of section 3.2
 * with the two-value header of section 5, as in fairrate-control/src/perc.rs, rate_table.rs and explicit_rate.rs, in whole numbers.
 *
 * Rates count 2^-16 bit/s, the unit of the Rust table. A link's answer is the Rust answer rounded down to a unit. Records carry rates
 * in words of 32 bits, with 26 bits of precision: rounded down by less than a part of 2^25, 3e-8.
 *
 * Where the paper is silent: a link's answer is that of the Rust law, what the asking flow would get (`share = "asking"`). A table has an
 * end here. A flow that finds no room in it gets a small part of the link, and is not remembered; nor is one of a sender that has a
 * quarter of a table that is more than half full. So no sender can keep others out.
 */
#ifndef FAIRRATE_PERC_H
#define FAIRRATE_PERC_H

#include "fixed.h"

/* Flows that a link remembers, and those of one sender where room is short. */
#define FR_PERC_FLOWS 256
#define FR_PERC_FLOWS_OF_SENDER (FR_PERC_FLOWS / 4)
/* A flow without room gets 2^-10 of the link. */
#define FR_PERC_SPARE_BITS 10
/* Raises that wait; one comes a round trip, and waits for two. */
#define FR_PERC_RAISES 8
#define FR_PERC_BPS (1ULL << 16)
#define FR_PERC_NO_LINK 0xffffU

/* Runs step(i, work) for i = 0 to n - 1, until one returns 1. The kernel's programs have a loop of their own. `i` has 64 bits, as the
 * verifier of Linux 6.12 does not see that a limit of its lower half limits a place computed from it.
 */
#ifndef FR_LOOP
#define FR_LOOP(n, step, work)                                                                                                         \
    for (fr_u32 i_ = 0; i_ < (n) && !step(i_, work); i_++) {                                                                           \
    }
#endif

/* A rate in a record: an exponent of 6 bits above a mantissa of 26. Larger words are larger rates. */
#define FR_PERC_MANTISSA 26
#define FR_PERC_INFINITE 0xffffffffU

FR_LAW fr_u32 fr_perc_word(fr_u64 rate)
{
    fr_u32 shift = 0;
    for (fr_u32 step = 32; step; step >>= 1)
        if (rate >> shift >> (FR_PERC_MANTISSA + step - 1))
            shift += step;
    return shift << FR_PERC_MANTISSA | (fr_u32)(rate >> shift);
}

FR_LAW fr_u64 fr_perc_rate(fr_u32 word)
{
    fr_u32 shift = word >> FR_PERC_MANTISSA;
    return 64 - FR_PERC_MANTISSA < shift ? FR_MOST : (fr_u64)(word & ((1U << FR_PERC_MANTISSA) - 1)) << shift;
}

/* A control packet's words. The first two are demands: of the link `bottleneck`, and of all others. The next two are the answers of the
 * links passed so far.
 */
struct fr_perc_record {
    fr_u32 demand_bottleneck;
    fr_u32 demand_others;
    fr_u32 smallest;
    fr_u32 second;
    fr_u32 links;       /* `bottleneck` above the link of `smallest`, 16 bits each */
    fr_u32 seq_and_flags; /* a number of 24 bits, not 0, above the flags */
};

#define FR_PERC_EXIT 1
/* A link could not answer, so the answers are not those of all links. */
#define FR_PERC_VOID 2

/* A flow at a link. */
struct fr_perc_entry {
    fr_u64 rate; /* its demand, at most the capacity */
    fr_u64 hosts; /* sender below receiver */
    fr_u64 seen_ns;
    fr_u32 ports;
    fr_u32 reserved;
};

/* A link: the demands of its flows, in ascending order. */
struct fr_perc_link {
    fr_u64 capacity;
    fr_u64 timeout_ns;
    fr_u32 lock; /* for the program at a port */
    fr_u32 n;
    struct fr_perc_entry entries[FR_PERC_FLOWS];
};

/* What the steps of a loop have in common. */
struct fr_perc_work {
    struct fr_perc_link *link;
    struct fr_perc_entry entry; /* of the asking flow */
    fr_u64 room;                /* capacity that is left for flows from this demand on */
    fr_u32 n_above;             /* number of them, with the asking flow */
    fr_u32 kept;
    fr_u32 of_sender;
    fr_u32 at;
};

/* Removes the asking flow's entry, and those that are too old. */
static long fr_perc_keep(fr_u64 i, void *context)
{
    struct fr_perc_work *w = (struct fr_perc_work *)context;
    fr_u32 kept = w->kept;
    if (FR_PERC_FLOWS <= i || FR_PERC_FLOWS <= kept)
        return 1;
    struct fr_perc_entry *e = &w->link->entries[i];
    int is_asking = e->hosts == w->entry.hosts && e->ports == w->entry.ports;
    if (is_asking || w->link->timeout_ns < fr_less(w->entry.seen_ns, e->seen_ns))
        return 0;
    if ((fr_u32)e->hosts == (fr_u32)w->entry.hosts)
        w->of_sender += 1;
    if (kept != i)
        w->link->entries[kept] = *e;
    w->kept = kept + 1;
    return 0;
}

/* Eq. (2): a flow whose demand is below an equal part of what is left takes its demand. */
static long fr_perc_fill(fr_u64 i, void *context)
{
    struct fr_perc_work *w = (struct fr_perc_work *)context;
    if (FR_PERC_FLOWS <= i)
        return 1;
    fr_u64 demand = w->link->entries[i].rate;
    if (w->room < fr_mul(demand, w->n_above))
        return 1;
    w->room -= demand;
    w->n_above -= 1;
    return 0;
}

/* Moves larger demands up, to make room for the asking flow's. */
static long fr_perc_shift(fr_u64 i, void *context)
{
    struct fr_perc_work *w = (struct fr_perc_work *)context;
    /* At the first place this is the largest number. */
    fr_u64 below = (fr_u64)w->at - 1;
    (void)i;
    /* The place above is to be computed from this one, whose limits the verifier knows. */
    __asm__ volatile("" : "+r"(below));
    if (FR_PERC_FLOWS - 1 <= below)
        return 1;
    struct fr_perc_entry *e = &w->link->entries[below];
    if (e->rate <= w->entry.rate)
        return 1;
    e[1] = e[0];
    w->at = below;
    return 0;
}

/* Begins with a message: the table is then without the flow. */
FR_LAW void fr_perc_take(struct fr_perc_work *w)
{
    FR_LOOP(w->link->n, fr_perc_keep, w);
    w->link->n = w->kept;
}

/* The f_l of the asking flow, its own demand taken as infinite; stores its demand. */
FR_LAW fr_u64 fr_perc_answer(struct fr_perc_work *w)
{
    struct fr_perc_link *link = w->link;
    fr_u32 n = w->kept;
    w->room = link->capacity;
    w->n_above = n + 1;
    FR_LOOP(n, fr_perc_fill, w);
    fr_u64 share = w->room / fr_max(w->n_above, 1);
    int is_crowded = FR_PERC_FLOWS / 2 < n && FR_PERC_FLOWS_OF_SENDER <= w->of_sender;
    if (FR_PERC_FLOWS <= n || is_crowded)
        return fr_min(share, link->capacity >> FR_PERC_SPARE_BITS);
    w->entry.rate = fr_min(w->entry.rate, link->capacity);
    w->at = n;
    FR_LOOP(n, fr_perc_shift, w);
    if (w->at < FR_PERC_FLOWS)
        link->entries[w->at] = w->entry;
    link->n = n + 1;
    return share;
}

/* A link's part in a control packet of the flow in `w`: its demand in, the link's answer out. Section 5. */
FR_LAW void fr_perc_on_record(struct fr_perc_work *w, fr_u32 id, struct fr_perc_record *r)
{
    fr_perc_take(w);
    if (r->seq_and_flags & FR_PERC_EXIT)
        return;
    w->entry.rate = fr_perc_rate(r->links >> 16 == id ? r->demand_bottleneck : r->demand_others);
    fr_u32 share = fr_perc_word(fr_perc_answer(w));
    if (share < r->smallest) {
        r->second = r->smallest;
        r->smallest = share;
        r->links = (r->links & 0xffff0000U) | (id & 0xffffU);
    } else if (share < r->second) {
        r->second = share;
    }
}

/* Parameters of a flow. Times in round trips have 16 bits behind the point. */
struct fr_perc_params {
    fr_u64 line;
    fr_u64 initial; /* rate before the first reply; 0: two packets a round trip */
    fr_u64 tau_ns;  /* 0: the smallest that the flow has seen */
    fr_u32 wait_q16;
    fr_u32 resend_q16;
    fr_u32 first_rate_waits;
    fr_u32 short_flows; /* 0: off; 1: advertise; 2: pace */
};

/* A raise that waits for others to make room. */
struct fr_perc_raise {
    fr_u64 due_ns;
    fr_u64 rate;
};

#define FR_PERC_MEMBER 0
#define FR_PERC_LEAVING 1
#define FR_PERC_GONE 2

/* A flow. */
struct fr_perc_state {
    fr_u64 rate;
    fr_u64 limit; /* the most that it can use until the control packet on its way returns */
    fr_u64 sent_ns;
    fr_u64 patience_ns; /* time until that packet is taken for lost; doubles every time */
    fr_u32 seq;
    fr_u32 phase;
    fr_u32 is_due;    /* the next packet that leaves carries a control packet */
    fr_u32 is_joined; /* there was a reply */
    fr_u32 smallest;  /* the answers: the two smallest f_l, and the link of the first */
    fr_u32 second;
    fr_u32 link;
    fr_u32 n_raises;
    struct fr_perc_raise raises[FR_PERC_RAISES]; /* due and rate both ascend */
};

FR_LAW fr_u64 fr_perc_times(fr_u64 rtt_ns, fr_u32 n_q16) { return fr_mul(rtt_ns, n_q16) >> 16; }

FR_LAW void fr_perc_forget(struct fr_perc_state *s)
{
    s->smallest = s->second = FR_PERC_INFINITE;
    s->link = FR_PERC_NO_LINK;
}

FR_LAW void fr_perc_start(struct fr_perc_state *s, const struct fr_perc_params *p, fr_u64 rtt_ns)
{
    *s = (struct fr_perc_state){.rate = fr_min(p->initial, p->line), .limit = p->line, .is_due = 1};
    s->patience_ns = fr_perc_times(rtt_ns, p->resend_q16);
    fr_perc_forget(s);
}

/* Applies the raises that are due. */
FR_LAW void fr_perc_advance(struct fr_perc_state *s, fr_u64 now_ns)
{
    for (fr_u32 k = 0; k < FR_PERC_RAISES; k++) {
        if (!s->n_raises || now_ns < s->raises[0].due_ns)
            return;
        s->rate = s->raises[0].rate;
        for (fr_u32 i = 1; i < FR_PERC_RAISES; i++)
            s->raises[i - 1] = s->raises[i];
        s->n_raises -= 1;
    }
}

/* Section 3.2, footnote 3: a lower rate holds at once, a higher one after two round trips; a lower one discards it before. */
FR_LAW void fr_perc_aim(struct fr_perc_state *s, const struct fr_perc_params *p, fr_u64 now_ns, fr_u64 rtt_ns, fr_u64 target)
{
    fr_perc_advance(s, now_ns);
    fr_u64 due_ns = now_ns + fr_perc_times(rtt_ns, p->wait_q16);
    fr_u32 n = fr_min(s->n_raises, FR_PERC_RAISES);
    for (fr_u32 k = FR_PERC_RAISES; k; k--) {
        if (n == k && target <= s->raises[k - 1].rate) {
            due_ns = s->raises[k - 1].due_ns;
            n = k - 1;
        }
    }
    if (target <= s->rate) {
        s->rate = target;
    } else {
        /* If there is no room, the last one gives way: a later raise in the place of an earlier one. */
        n = fr_min(n, FR_PERC_RAISES - 1);
        for (fr_u32 k = 0; k < FR_PERC_RAISES; k++)
            if (n == k)
                s->raises[k] = (struct fr_perc_raise){.due_ns = due_ns, .rate = target};
        n += 1;
    }
    s->n_raises = n;
    fr_perc_advance(s, now_ns);
}

/* Applies what is due: raises, and the end of a control packet's time. */
FR_LAW void fr_perc_tick(struct fr_perc_state *s, fr_u64 now_ns)
{
    fr_perc_advance(s, now_ns);
    if (!s->is_due && s->phase != FR_PERC_GONE && s->patience_ns <= fr_less(now_ns, s->sent_ns)) {
        s->is_due = 1;
        s->patience_ns = fr_min(s->patience_ns << 1, 1ULL << 40);
    }
}

/* Section 3.2: the most that `unsent` bytes can use in a round trip, at least a full packet of `mtu` bytes of payload. */
FR_LAW fr_u64 fr_perc_limit(const struct fr_perc_params *p, fr_u64 rtt_ns, fr_u64 unsent, fr_u64 mtu, fr_u64 wire)
{
    if (!p->short_flows)
        return p->line;
    fr_u64 bytes = fr_clamp(unsent, mtu, FR_ONE_Q32);
    fr_u64 bits_q16 = fr_mul_div(bytes << 19, wire, fr_max(mtu, 1));
    return fr_min(fr_mul_div(bits_q16, FR_NS_PER_S, fr_max(fr_time(rtt_ns), 1)), p->line);
}

/* Fills in the control packet that leaves now; returns 0 if none does. `unsent`: payload that the flow has yet to send; 0: it leaves. */
FR_LAW int fr_perc_ask(struct fr_perc_state *s, const struct fr_perc_params *p, fr_u64 now_ns, fr_u64 rtt_ns, fr_u64 unsent, fr_u64 mtu,
                       fr_u64 wire, struct fr_perc_record *r)
{
    if ((s->phase == FR_PERC_MEMBER) == !unsent) {
        s->phase = unsent ? FR_PERC_MEMBER : FR_PERC_LEAVING;
        s->is_due = 1;
        s->patience_ns = fr_perc_times(rtt_ns, p->resend_q16);
    }
    if (!s->is_due)
        return 0;
    s->is_due = 0;
    s->seq = (s->seq & 0xffffffU) == 0xffffffU ? 1 : s->seq + 1;
    s->sent_ns = now_ns;
    int is_exit = s->phase != FR_PERC_MEMBER;
    if (is_exit) {
        s->rate = fr_min(p->initial, p->line);
        s->n_raises = 0;
        s->is_joined = 0;
        fr_perc_forget(s);
    }
    s->limit = fr_perc_limit(p, rtt_ns, unsent, mtu, wire);
    fr_u32 limit = fr_perc_word(s->limit);
    r->demand_bottleneck = fr_min(s->second, limit);
    r->demand_others = fr_min(s->smallest, limit);
    r->smallest = r->second = FR_PERC_INFINITE;
    r->links = s->link << 16 | FR_PERC_NO_LINK;
    r->seq_and_flags = s->seq << 8 | (is_exit ? FR_PERC_EXIT : 0);
    return 1;
}

/* Handles a control packet that has come back; only the last one counts. Returns 1 if there are answers of all links. */
FR_LAW int fr_perc_returned(struct fr_perc_state *s, const struct fr_perc_params *p, fr_u64 now_ns, fr_u64 rtt_ns,
                            const struct fr_perc_record *r)
{
    fr_u32 seq = r->seq_and_flags >> 8;
    if (s->is_due || !s->seq || seq != s->seq || s->phase == FR_PERC_GONE) {
        fr_perc_tick(s, now_ns);
        return 0;
    }
    s->patience_ns = fr_perc_times(rtt_ns, p->resend_q16);
    if (s->phase == FR_PERC_LEAVING) {
        s->phase = FR_PERC_GONE;
        fr_perc_tick(s, now_ns);
        return 0;
    }
    s->is_due = 1;
    if (r->seq_and_flags & FR_PERC_VOID) {
        fr_perc_advance(s, now_ns);
        return 0;
    }
    s->smallest = r->smallest;
    s->second = r->second;
    s->link = r->links & 0xffffU;
    fr_u64 most = p->short_flows == 2 ? s->limit : p->line;
    fr_u64 target = fr_max(fr_min(fr_perc_rate(s->smallest), most), FR_PERC_BPS);
    if (s->is_joined || p->first_rate_waits) {
        fr_perc_aim(s, p, now_ns, rtt_ns, target);
    } else {
        s->n_raises = 0;
        s->rate = target;
    }
    s->is_joined = 1;
    return 1;
}

#endif
