/* theta-PowerTCP: PowerTCP's Alg. 2, as fairrate-control/src/theta_powertcp.rs has it.
 *
 * Power is (d theta/dt + 1) theta / tau: the gradient of the round-trip time stands for the current, the round-trip time for the
 * voltage.
 */
#ifndef FAIRRATE_THETA_POWERTCP_H
#define FAIRRATE_THETA_POWERTCP_H

#include "power_law.h"

struct fr_theta_params {
    struct fr_power_params law;
    fr_u64 tau_ns;     /* the network's base round-trip time; 0: the smallest that a flow has seen */
    fr_u32 slack_q30;  /* factor of the base round-trip time in power */
    fr_u32 min_seen;   /* base_rtt = "min-seen" */
};

struct fr_theta_state {
    struct fr_power_state law;
    fr_u64 prev_rtt_ns;
    fr_u64 prev_at_ns;
    fr_u64 base_ns; /* tau, or the running minimum */
    fr_u32 has_prev;
    fr_u32 reserved;
};

FR_LAW void fr_theta_start(struct fr_theta_state *s, const struct fr_theta_params *p, fr_u64 mtu, fr_u64 tau_ns)
{
    fr_power_start(&s->law, &p->law, mtu, fr_time(tau_ns));
    s->prev_rtt_ns = 0;
    s->prev_at_ns = 0;
    s->base_ns = fr_max(fr_time(tau_ns), 1);
    s->has_prev = 0;
    s->reserved = 0;
}

/* NORMPOWER without smoothing, Alg. 2 lines 11-13: max((rtt - prev) / dt + 1, floor) rtt / tau. */
FR_LAW fr_u64 fr_theta_norm_power(const struct fr_theta_state *s, const struct fr_theta_params *p, fr_u64 rtt, fr_u64 dt)
{
    fr_u64 grown = fr_less(dt + rtt, s->prev_rtt_ns);
    fr_u64 current_q32 = fr_max(fr_ratio_q32(grown, dt), (fr_u64)p->law.floor_q31 << 1);
    return fr_mul_div(fr_mul_div(current_q32, rtt, s->base_ns), 1 << 30, p->slack_q30);
}

/* Alg. 2 for one acknowledgment. After an idle time of more than tau it only stores its time. */
FR_LAW void fr_theta_on_ack(struct fr_theta_state *s, const struct fr_theta_params *p, const struct fr_ack *ack, fr_u64 mtu,
                            fr_u64 tau_ns)
{
    fr_u64 rtt = fr_time(ack->rtt_ns);
    fr_u64 dt = ack->now_ns - s->prev_at_ns;
    if (p->min_seen && rtt)
        s->base_ns = fr_min(s->base_ns, rtt);
    if (s->has_prev && p->law.idle_restart && tau_ns + rtt < dt)
        s->has_prev = 0;
    if (!s->has_prev) {
        fr_power_forget(&s->law, &p->law);
        fr_power_postpone(&s->law, ack);
    } else if (dt == 0) {
        return;
    } else {
        dt = fr_time(dt);
        fr_power_sample(&s->law, fr_theta_norm_power(s, p, rtt, dt), dt, s->base_ns);
        fr_power_update(&s->law, &p->law, ack, mtu, fr_time(tau_ns));
    }
    s->prev_rtt_ns = rtt;
    s->prev_at_ns = ack->now_ns;
    s->has_prev = 1;
}

#endif
