/* The common parts of PowerTCP (Alg. 1) and theta-PowerTCP (Alg. 2): the smoothing of power and UPDATEWINDOW, eq. (7), in the paper's
 * window form. V. Addanki, O. Michel, S. Schmid, "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI 2022. The
 * readings are those of fairrate-control/src/power_law.rs.
 */
#ifndef FAIRRATE_POWER_LAW_H
#define FAIRRATE_POWER_LAW_H

#include "fixed.h"

struct fr_power_params {
    fr_u64 beta_bps;            /* additive increase a round trip, as a rate */
    fr_u64 line_bps;            /* HostBw */
    fr_u32 gamma_q31;           /* weight of the new window */
    fr_u32 one_minus_gamma_q31; /* weight of the present window */
    fr_u32 floor_q31;           /* least current: theta + 1, or lambda as a part of the port's rate */
    fr_u32 per_ack;             /* the window moves on every acknowledgment, or once a round trip */
    fr_u32 initial_one;         /* smoothed power starts at 1, or at the first sample */
    fr_u32 idle_restart;        /* an idle time of more than tau discards the measurements */
};

struct fr_power_state {
    fr_u64 cwnd_q16; /* bytes */
    fr_u64 power_q32;
    fr_u64 last_update_seq;
    fr_u32 has_power;
    fr_u32 reserved;
};

/* Returns the largest window, HostBw * tau, but at least `least`. */
FR_LAW fr_u64 fr_power_most(const struct fr_power_params *p, fr_u64 least, fr_u64 tau_ns)
{
    return fr_max(fr_bytes_q16(p->line_bps, tau_ns), least);
}

FR_LAW void fr_power_forget(struct fr_power_state *s, const struct fr_power_params *p)
{
    s->has_power = p->initial_one;
    s->power_q32 = FR_ONE_Q32;
}

FR_LAW void fr_power_start(struct fr_power_state *s, const struct fr_power_params *p, fr_u64 mtu, fr_u64 tau_ns)
{
    s->cwnd_q16 = fr_power_most(p, mtu << 16, tau_ns);
    s->last_update_seq = 0;
    s->reserved = 0;
    fr_power_forget(s, p);
}

/* Postpones the next update by a round trip. */
FR_LAW void fr_power_postpone(struct fr_power_state *s, const struct fr_ack *ack)
{
    s->last_update_seq = fr_max(s->last_update_seq, ack->snd_nxt);
}

/* Alg. 1 line 24, Alg. 2 line 14: G <- (G (tau - dt) + Gnorm dt) / tau, with dt at most tau. */
FR_LAW void fr_power_sample(struct fr_power_state *s, fr_u64 power_q32, fr_u64 dt_ns, fr_u64 tau_ns)
{
    fr_u64 dt = fr_min(dt_ns, tau_ns);
    if (s->has_power)
        s->power_q32 = fr_add(fr_mul_div(s->power_q32, tau_ns - dt, tau_ns), fr_mul_div(power_q32, dt, tau_ns));
    else
        s->power_q32 = power_q32;
    s->has_power = 1;
}

/* Eq. (7), Alg. 1 line 27: cwnd <- gamma (cwnd_old / G + beta) + (1 - gamma) cwnd. */
FR_LAW fr_u64 fr_power_window(const struct fr_power_state *s, const struct fr_power_params *p, fr_u64 old_q16, fr_u64 tau_ns)
{
    fr_u64 beta_q16 = fr_bytes_q16(p->beta_bps, tau_ns);
    /* 1e-9, the least power of the Rust law, is 4 of 2^32. */
    fr_u64 divided = fr_ratio_q32(old_q16, fr_max(s->power_q32, 4));
    return fr_add(fr_part_q31(fr_add(divided, beta_q16), p->gamma_q31), fr_part_q31(s->cwnd_q16, p->one_minus_gamma_q31));
}

/* Alg. 1 line 5; Alg. 2 lines 16-25. The window stays between a packet and HostBw * tau. */
FR_LAW void fr_power_update(struct fr_power_state *s, const struct fr_power_params *p, const struct fr_ack *ack, fr_u64 mtu,
                            fr_u64 tau_ns)
{
    int is_full = s->last_update_seq < ack->ack_seq;
    fr_u64 least = mtu << 16;
    if (is_full || p->per_ack) {
        fr_u64 old_q16 = fr_max(ack->cwnd_at_send << 16, least);
        s->cwnd_q16 = fr_clamp(fr_power_window(s, p, old_q16, tau_ns), least, fr_power_most(p, least, tau_ns));
    }
    if (is_full)
        fr_power_postpone(s, ack);
}

#endif
