/* DCTCP: M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3; RFC 8257. The window form of
 * fairrate-control/src/dctcp.rs.
 */
#ifndef FAIRRATE_DCTCP_H
#define FAIRRATE_DCTCP_H

#include "fixed.h"

struct fr_dctcp_params {
    fr_u32 g_q31;
    fr_u32 initial_alpha_q31;
    fr_u32 first_packets; /* first window; 0: given by the caller */
    fr_u32 min_packets;
    fr_u32 growth_q16; /* packets a round trip */
    fr_u32 slow_start;
};

struct fr_dctcp_state {
    fr_u64 cwnd_q16;     /* bytes */
    fr_u64 ssthresh_q16; /* bytes */
    fr_u64 alpha_q32;
    fr_u64 acked;      /* bytes acknowledged in the present window */
    fr_u64 marked;     /* bytes */
    fr_u64 window_end; /* the window ends when a byte after this one is acknowledged */
    fr_u64 until_seq;  /* no second cut and no growth until this byte is acknowledged */
    fr_u64 timed_out_ns;
    fr_u64 full_until; /* the window counts as the limit until this byte is acknowledged */
    fr_u64 una;
    fr_u64 snd_nxt;
    fr_u32 is_recovering;
    fr_u32 has_timed_out;
};

FR_LAW void fr_dctcp_start(struct fr_dctcp_state *s, const struct fr_dctcp_params *p, fr_u64 first, fr_u64 mtu)
{
    fr_u64 bytes = p->first_packets ? p->first_packets * mtu : first;
    *s = (struct fr_dctcp_state){0};
    s->cwnd_q16 = fr_max(bytes, p->min_packets * mtu) << 16;
    s->ssthresh_q16 = p->slow_start ? FR_MOST : 0;
    s->alpha_q32 = (fr_u64)p->initial_alpha_q31 << 1;
}

/* Eq. (1), RFC 8257 section 3.3: alpha <- (1 - g) alpha + g F, over the window that just ended. */
FR_LAW void fr_dctcp_update_alpha(struct fr_dctcp_state *s, const struct fr_dctcp_params *p)
{
    if (s->acked) {
        fr_u64 fraction_q32 = fr_ratio_q32(s->marked, s->acked);
        s->alpha_q32 = fr_part_q31(s->alpha_q32, FR_ONE_Q31 - p->g_q31) + fr_part_q31(fraction_q32, p->g_q31);
    }
    s->acked = 0;
    s->marked = 0;
}

/* Multiplies the window by a part of 1; it then stays until the bytes in flight are acknowledged. */
FR_LAW void fr_dctcp_cut(struct fr_dctcp_state *s, const struct fr_dctcp_params *p, fr_u64 part_q32, fr_u64 mtu)
{
    s->cwnd_q16 = fr_max(fr_mul_q32(s->cwnd_q16, part_q32), p->min_packets * mtu << 16);
    s->ssthresh_q16 = s->cwnd_q16;
    s->until_seq = s->snd_nxt;
    s->is_recovering = 1;
    s->has_timed_out = 0;
}

/* Reno: grows by a packet for each packet in slow start, else by a packet for each window; only a window that limits grows (RFC 7661). */
FR_LAW void fr_dctcp_grow(struct fr_dctcp_state *s, const struct fr_dctcp_params *p, const struct fr_ack *ack, fr_u64 mtu)
{
    fr_u64 newly = ack->newly_acked;
    int is_full = s->cwnd_q16 <= (fr_less(ack->snd_nxt, ack->ack_seq) + newly + mtu) << 16;
    int is_slow_start = s->cwnd_q16 < s->ssthresh_q16;
    if (p->slow_start && s->cwnd_q16 <= (ack->in_flight + newly + mtu) << 16)
        s->full_until = ack->snd_nxt;
    if (!is_full && !(is_slow_start && p->slow_start && ack->ack_seq <= s->full_until))
        return;
    if (is_slow_start)
        s->cwnd_q16 += fr_min(newly << 16, s->cwnd_q16);
    else
        s->cwnd_q16 += fr_mul_q32(p->growth_q16 * mtu, fr_min(fr_ratio_q32(newly << 16, s->cwnd_q16), FR_ONE_Q32));
}

FR_LAW void fr_dctcp_leave_recovery(struct fr_dctcp_state *s, const struct fr_ack *ack)
{
    int is_sent_since = s->has_timed_out && s->timed_out_ns <= fr_less(ack->now_ns, ack->rtt_ns);
    if (s->until_seq < ack->ack_seq || is_sent_since)
        s->is_recovering = 0;
}

FR_LAW void fr_dctcp_on_ack(struct fr_dctcp_state *s, const struct fr_dctcp_params *p, const struct fr_ack *ack, fr_u64 mtu)
{
    s->una = ack->ack_seq;
    s->snd_nxt = ack->snd_nxt;
    s->acked += ack->delivered;
    if (ack->ecn_marked)
        s->marked += ack->delivered;
    if (s->window_end < ack->ack_seq) {
        fr_dctcp_update_alpha(s, p);
        s->window_end = ack->snd_nxt;
    }
    fr_dctcp_leave_recovery(s, ack);
    if (s->is_recovering)
        return;
    /* Eq. (2): cwnd <- cwnd (1 - alpha / 2). */
    if (ack->ecn_marked)
        fr_dctcp_cut(s, p, FR_ONE_Q32 - (s->alpha_q32 >> 1), mtu);
    else
        fr_dctcp_grow(s, p, ack, mtu);
}

/* Halves the window after a gap, at most once a window. */
FR_LAW void fr_dctcp_on_gap(struct fr_dctcp_state *s, const struct fr_dctcp_params *p, fr_u64 mtu)
{
    if (!(s->is_recovering && s->una < s->until_seq))
        fr_dctcp_cut(s, p, FR_ONE_Q32 / 2, mtu);
}

/* Sets the window to one packet after a timeout (RFC 8257 section 3.5). */
FR_LAW void fr_dctcp_on_timeout(struct fr_dctcp_state *s, const struct fr_dctcp_params *p, fr_u64 now_ns, fr_u64 mtu)
{
    fr_dctcp_cut(s, p, FR_ONE_Q32 / 2, mtu);
    s->cwnd_q16 = mtu << 16;
    s->timed_out_ns = now_ns;
    s->has_timed_out = 1;
}

#endif
