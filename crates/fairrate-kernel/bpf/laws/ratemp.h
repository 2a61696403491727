/* RateMP: J. Han et al., "RateMP: Optimizing Bandwidth Utilization with High Burst Tolerance in Data Center Networks", INFOCOM 2024,
 * Algorithm 1 and section III, as in fairrate-control/src/ratemp.rs with its defaults. This is the law of a subflow; the caller adds
 * up the rates of its connection's subflows.
 */
#ifndef FAIRRATE_RATEMP_H
#define FAIRRATE_RATEMP_H

#include "fixed.h"

struct fr_ratemp_params {
    fr_u64 alpha_bps; /* alpha_total as a rate: alpha times c */
    fr_u64 line_bps;
    fr_u64 kmax_ns; /* the time in which c serves Kmax */
    fr_u64 base_rtt_window_ns;
    fr_u64 min_rate_ns_q32; /* packets a base RTT, times the nanoseconds of a second */
    fr_u32 g_q31;
    fr_u32 initial_window; /* packets */
    fr_u32 handshake;      /* the handshake's RTT counts for the base RTT */
    fr_u32 reserved;
};

struct fr_ratemp_state {
    fr_u64 x_q32;  /* packets/s */
    fr_u64 w_q32;  /* packets, in slow start */
    fr_u64 ss_q32; /* packets */
    fr_u64 beta_q63;
    fr_u64 end; /* beta is updated when a byte after this one is acknowledged */
    fr_u64 rtt_ns;
    fr_u64 base_ns;
    fr_u64 smallest_ns; /* smallest RTT of the present base_rtt_window */
    fr_u64 last_smallest_ns;
    fr_u64 since_ns;
    fr_u32 n_acks;
    fr_u32 n_marked;
    fr_u32 in_slow_start;
    fr_u32 reserved;
};

struct fr_ratemp_allowance {
    fr_u64 cwnd;      /* packets */
    fr_u64 paced_bps; /* bits on the wire per second; 0: not paced */
};

FR_LAW void fr_ratemp_start(struct fr_ratemp_state *s, const struct fr_ratemp_params *p, fr_u64 path_rtt_ns, fr_u64 now_ns)
{
    fr_u64 rtt = fr_max(fr_time(path_rtt_ns), 1);
    *s = (struct fr_ratemp_state){0};
    s->w_q32 = (fr_u64)p->initial_window << 32;
    s->x_q32 = fr_mul_div(s->w_q32, FR_NS_PER_S, rtt);
    s->ss_q32 = FR_MOST;
    s->rtt_ns = rtt;
    s->base_ns = rtt;
    s->smallest_ns = p->handshake ? rtt : FR_MOST;
    s->last_smallest_ns = FR_MOST;
    s->since_ns = now_ns;
    s->in_slow_start = 1;
}

/* Returns x * base RTT, in packets: more than 1 is window control, else under-rate control. */
FR_LAW fr_u64 fr_ratemp_packets_q32(const struct fr_ratemp_state *s)
{
    return fr_mul_div(s->x_q32, s->base_ns, FR_NS_PER_S);
}

/* Lines 4 and 21-25. */
FR_LAW struct fr_ratemp_allowance fr_ratemp_allowed(const struct fr_ratemp_state *s, const struct fr_ratemp_params *p, fr_u64 wire_bits)
{
    struct fr_ratemp_allowance allowed = {.cwnd = 1, .paced_bps = 0};
    fr_u64 packets_q32 = s->in_slow_start ? s->w_q32 : fr_ratemp_packets_q32(s);
    if (s->in_slow_start || FR_ONE_Q32 < packets_q32)
        allowed.cwnd = fr_max(packets_q32 >> 32, 1);
    else
        allowed.paced_bps = fr_clamp(fr_mul_q32(wire_bits << 32, s->x_q32) >> 32, 1, p->line_bps);
    return allowed;
}

/* Returns true if the window or the rate in force, and not the application or the NIC, limits the subflow. */
FR_LAW int fr_ratemp_is_limited(const struct fr_ratemp_state *s, const struct fr_ratemp_params *p, const struct fr_ack *ack, fr_u64 mtu,
                                fr_u64 wire_bits)
{
    struct fr_ratemp_allowance allowed = fr_ratemp_allowed(s, p, wire_bits);
    if (allowed.paced_bps && allowed.paced_bps < p->line_bps)
        return !ack->app_limited;
    return allowed.cwnd * mtu <= ack->in_flight + ack->newly_acked + mtu;
}

/* Eq. (6), once a round trip with acknowledgments: beta <- (1 - g) beta + g F. */
FR_LAW void fr_ratemp_count_marks(struct fr_ratemp_state *s, const struct fr_ratemp_params *p, const struct fr_ack *ack)
{
    s->n_acks += 1;
    s->n_marked += ack->ecn_marked != 0;
    if (ack->ack_seq <= s->end)
        return;
    fr_u64 fraction_q63 = fr_share_q63(s->n_marked, s->n_acks);
    s->beta_q63 = fr_part_q31(s->beta_q63, FR_ONE_Q31 - p->g_q31) + fr_part_q31(fraction_q63, p->g_q31);
    s->n_acks = 0;
    s->n_marked = 0;
    s->end = ack->snd_nxt;
}

/* Line 9. The base RTT is the smallest of the last one to two windows of time. */
FR_LAW void fr_ratemp_measure(struct fr_ratemp_state *s, const struct fr_ratemp_params *p, const struct fr_ack *ack)
{
    if (!ack->rtt_ns)
        return;
    fr_u64 age = fr_less(ack->now_ns, s->since_ns);
    s->rtt_ns = fr_time(ack->rtt_ns);
    if (p->base_rtt_window_ns <= age) {
        s->last_smallest_ns = age < 2 * p->base_rtt_window_ns ? s->smallest_ns : FR_MOST;
        s->smallest_ns = FR_MOST;
        s->since_ns = ack->now_ns;
    }
    s->smallest_ns = fr_min(s->smallest_ns, s->rtt_ns);
    s->base_ns = fr_min(s->smallest_ns, s->last_smallest_ns);
}

/* Eq. (10) and (11): returns alpha_total - total * congestion, the increase of x in a round trip, in packets/s with 32 bits behind the
 * point.
 */
FR_LAW fr_s64 fr_ratemp_step(fr_u64 alpha_q32, fr_u64 total_q32, fr_u64 congestion_q63)
{
    return (fr_s64)fr_min(alpha_q32, FR_MOST >> 1) - (fr_s64)fr_min(fr_part_q63(total_q32, congestion_q63), FR_MOST >> 1);
}

/* Returns the part of a step that is due to `n` of the x * base RTT packets of a round trip. */
FR_LAW fr_u64 fr_ratemp_part(const struct fr_ratemp_state *s, fr_u64 step_q32, fr_u64 n_q32, fr_u64 packets_q32)
{
    if (packets_q32 <= n_q32)
        return step_q32;
    return fr_mul_div_wide(step_q32, fr_mul_div(n_q32, FR_NS_PER_S, s->base_ns), s->x_q32);
}

/* Eq. (7) over Kmax, at most 1. */
FR_LAW fr_u64 fr_ratemp_delay_q63(const struct fr_ratemp_state *s, const struct fr_ratemp_params *p)
{
    return fr_share_q63(fr_less(s->rtt_ns, s->base_ns), fr_clamp(p->kmax_ns, 1, 0xffffffffULL));
}

/* Lines 3-6. */
FR_LAW void fr_ratemp_slow_start(struct fr_ratemp_state *s, fr_u64 n_acked_q32, fr_u64 alpha_q32, fr_u64 total_q32, int is_limited)
{
    if (is_limited)
        s->w_q32 = fr_add(s->w_q32, fr_min(n_acked_q32, 2 * FR_ONE_Q32));
    s->x_q32 = fr_mul_div(s->w_q32, FR_NS_PER_S, s->rtt_ns);
    if (alpha_q32 < fr_part_q63(total_q32, s->beta_q63) || s->ss_q32 < s->w_q32)
        s->in_slow_start = 0;
}

/* Lines 10-20. Delay is used if both signals together ask for more, marks if they ask for less. */
FR_LAW void fr_ratemp_adjust(struct fr_ratemp_state *s, const struct fr_ratemp_params *p, fr_u64 n_acked_q32, fr_u64 alpha_q32,
                             fr_u64 total_q32, int is_limited)
{
    fr_u64 packets_q32 = fr_ratemp_packets_q32(s);
    fr_s64 step = fr_ratemp_step(alpha_q32, total_q32, s->beta_q63);
    if (packets_q32 <= FR_ONE_Q32) {
        fr_s64 by_delay = fr_ratemp_step(alpha_q32, total_q32, fr_ratemp_delay_q63(s, p));
        if (0 < (step >> 1) + (by_delay >> 1))
            step = by_delay;
    }
    if (step < 0)
        s->x_q32 = fr_less(s->x_q32, fr_ratemp_part(s, (fr_u64)-step, n_acked_q32, packets_q32));
    else if (is_limited)
        s->x_q32 = fr_add(s->x_q32, fr_ratemp_part(s, (fr_u64)step, n_acked_q32, packets_q32));
    s->x_q32 = fr_max(s->x_q32, p->min_rate_ns_q32 / s->base_ns);
}

/* Algorithm 1. `total_q32` is the sum of the connection's rates before this acknowledgment, in packets/s. */
FR_LAW void fr_ratemp_on_ack(struct fr_ratemp_state *s, const struct fr_ratemp_params *p, const struct fr_ack *ack, fr_u64 total_q32,
                             fr_u64 mtu, fr_u64 wire_bits)
{
    int is_limited = fr_ratemp_is_limited(s, p, ack, mtu, wire_bits);
    fr_u64 alpha_q32 = fr_ratio_q32(p->alpha_bps, wire_bits);
    fr_u64 n_acked_q32 = fr_ratio_q32(ack->newly_acked, mtu);
    fr_ratemp_count_marks(s, p, ack);
    fr_ratemp_measure(s, p, ack);
    if (!ack->newly_acked)
        return;
    if (s->in_slow_start)
        fr_ratemp_slow_start(s, n_acked_q32, alpha_q32, total_q32, is_limited);
    else
        fr_ratemp_adjust(s, p, n_acked_q32, alpha_q32, total_q32, is_limited);
}

FR_LAW void fr_ratemp_on_gap(struct fr_ratemp_state *s)
{
    s->in_slow_start = 0;
}

/* Handles a timeout: the rate becomes one packet a base RTT, with slow start up to half of the former rate; a lower rate is never
 * raised.
 */
FR_LAW void fr_ratemp_on_timeout(struct fr_ratemp_state *s)
{
    fr_u64 packets_q32 = s->in_slow_start ? s->w_q32 : fr_ratemp_packets_q32(s);
    if (packets_q32 <= FR_ONE_Q32)
        return;
    s->ss_q32 = fr_max(packets_q32 >> 1, 2 * FR_ONE_Q32);
    s->in_slow_start = 1;
    s->w_q32 = FR_ONE_Q32;
    s->x_q32 = fr_mul_div(FR_ONE_Q32, FR_NS_PER_S, s->base_ns);
}

#endif
