/* RoCC: D. Menikkumbura et al., "Congestion Control for Datacenter Networks: A Control-Theoretic Approach", IEEE TPDS 34(5), 2023,
 * algorithms 1 and 2, as in fairrate-control/src/rocc.rs in fixed point. The congestion point has the numbers of the Rust code to the
 * last bit.
 */
#ifndef FAIRRATE_ROCC_H
#define FAIRRATE_ROCC_H

#include "fixed.h"

/* Bits behind the point of gains. */
#define FR_ROCC_GAIN_BITS 32
/* ratio = level / 2, and level ends at 64. */
#define FR_ROCC_MOST_SHIFT 5
/* Largest queue length in units, so that products fit. */
#define FR_ROCC_MOST_QUEUE (1LL << 20)

/* A congestion point. Rates are in steps, queue lengths in units; gains are in steps a unit, with 32 bits behind the point. */
struct fr_rocc_port_params {
    fr_s64 f_min;
    fr_s64 f_max;
    fr_s64 q_ref;
    fr_s64 q_mid;
    fr_s64 q_max;
    fr_s64 alpha;
    fr_s64 beta;
    fr_s64 whole_below; /* while both queue lengths are below this, gains are whole */
    fr_u64 queue_unit;  /* bytes */
    fr_u64 fraction_bits; /* a step is 2^-fraction_bits of a rate unit */
};

struct fr_rocc_port_state {
    fr_s64 f;     /* steps */
    fr_s64 q_old; /* units */
};

/* Alg. 1 lines 15-19, AUTO_TUNE: gains are divided by 2^shift. */
FR_LAW fr_u32 fr_rocc_shift(const struct fr_rocc_port_params *p, fr_s64 f)
{
    fr_u32 shift = 0;
    for (fr_u32 i = 0; i < FR_ROCC_MOST_SHIFT; i++)
        if (shift == i && f << (i + 1) < p->f_max)
            shift = i + 1;
    return shift;
}

/* Alg. 1 lines 2-14, CALCULATE_FAIR_RATE, at the end of a period. Divisions round down, as shifts do. */
FR_LAW void fr_rocc_port_tick(struct fr_rocc_port_state *s, const struct fr_rocc_port_params *p, fr_u64 queue_bytes)
{
    fr_s64 q_cur = (fr_s64)fr_min(queue_bytes / p->queue_unit, FR_ROCC_MOST_QUEUE);
    fr_s64 f = s->f;
    int fast = p->f_max < 8 * f;
    if (p->q_max <= q_cur && fast) {
        f = p->f_min;
    } else if (p->q_mid <= q_cur - s->q_old && fast) {
        f >>= 1;
    } else {
        int is_low = q_cur < p->whole_below && s->q_old < p->whole_below;
        fr_u32 bits = FR_ROCC_GAIN_BITS + (is_low ? 0 : fr_rocc_shift(p, f));
        f = ((f << bits) - p->alpha * (q_cur - p->q_ref) - p->beta * (q_cur - s->q_old)) >> bits;
    }
    if (f < p->f_min)
        f = p->f_min;
    if (p->f_max < f)
        f = p->f_max;
    s->f = f;
    s->q_old = q_cur;
}

/* Returns the rate in the notices to flows, in whole rate units. */
FR_LAW fr_u64 fr_rocc_told(const struct fr_rocc_port_state *s, const struct fr_rocc_port_params *p)
{
    return (fr_u64)s->f >> p->fraction_bits;
}

/* Parameters of a reaction point. */
struct fr_rocc_params {
    fr_u64 rate_unit_bps;
    fr_u64 min_bps;
    fr_u64 line_bps;
    fr_u64 rise_ns; /* time without an accepted notice after which a rate doubles */
};

struct fr_rocc_state {
    fr_u64 rate_bps; /* Rcur; 0: no limiter */
    fr_u64 due_ns;
    fr_u64 port; /* CPcur */
};

/* Alg. 2 lines 9-13, TIMER_EXPIRED, for all timers that expired before `until_ns`. */
FR_LAW void fr_rocc_advance(struct fr_rocc_state *s, const struct fr_rocc_params *p, fr_u64 until_ns)
{
    for (fr_u32 i = 0; i < 64; i++) {
        if (!s->rate_bps || until_ns <= s->due_ns)
            return;
        if (p->line_bps <= s->rate_bps) {
            s->rate_bps = 0;
            return;
        }
        s->rate_bps <<= 1;
        s->due_ns += p->rise_ns;
    }
}

/* Alg. 2 lines 2-7, PROCESS_CNP. A notice at the very end of the timer counts as in time. */
FR_LAW void fr_rocc_on_notice(struct fr_rocc_state *s, const struct fr_rocc_params *p, fr_u64 now_ns, fr_u64 told, fr_u64 port)
{
    fr_u64 rate = fr_max(told * p->rate_unit_bps, p->min_bps);
    fr_rocc_advance(s, p, now_ns);
    if (!s->rate_bps || rate <= s->rate_bps || s->port == port) {
        s->rate_bps = rate;
        s->port = port;
        s->due_ns = now_ns + p->rise_ns;
    }
    fr_rocc_advance(s, p, now_ns + 1);
}

/* Returns the rate at which the flow may send. */
FR_LAW fr_u64 fr_rocc_rate(const struct fr_rocc_state *s, const struct fr_rocc_params *p)
{
    return s->rate_bps ? fr_min(s->rate_bps, p->line_bps) : p->line_bps;
}

#endif
