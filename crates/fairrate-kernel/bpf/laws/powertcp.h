/* PowerTCP: Alg. 1, as in fairrate-control/src/powertcp.rs, in the paper's form: bytes sent in the telemetry, smoothed power and the
 * window at send time.
 */
#ifndef FAIRRATE_POWERTCP_H
#define FAIRRATE_POWERTCP_H

#include "power_law.h"

/* Largest number of telemetry records of a packet. */
#define FR_HOPS_MOST 5

/* Telemetry of an egress port, stamped when a packet leaves its queue. */
struct fr_hop {
    fr_u64 ts_ns;
    fr_u64 tx_bytes;
    fr_u32 qlen;      /* bytes left in the queue */
    fr_u32 rate_kbps; /* rate of the port; 0: no record */
};

struct fr_powertcp_params {
    struct fr_power_params law;
    fr_u64 tau_ns;     /* as in fr_theta_params */
    fr_u32 target_q31; /* target_utilization: power is divided by it */
    fr_u32 reserved;
};

struct fr_powertcp_state {
    struct fr_power_state law;
    fr_u64 last_ack_ns;
    fr_u32 n_hops; /* records in prev; 0: none */
    fr_u32 reserved;
    struct fr_hop prev[FR_HOPS_MOST];
};

FR_LAW void fr_powertcp_start(struct fr_powertcp_state *s, const struct fr_powertcp_params *p, fr_u64 mtu, fr_u64 tau_ns, fr_u64 now)
{
    fr_power_start(&s->law, &p->law, mtu, fr_time(tau_ns));
    s->last_ack_ns = now;
    s->n_hops = 0;
    s->reserved = 0;
}

/* Returns true if the port's clock advanced between two of its records. */
FR_LAW int fr_hop_advanced(const struct fr_hop *hop, const struct fr_hop *prev)
{
    return hop->rate_kbps && prev->rate_kbps && prev->ts_ns < hop->ts_ns;
}

/* NORMPOWER for one port, Alg. 1 lines 11-19. lambda nu / (b^2 tau) is the product of lambda / b, at least its floor, and
 * nu / (b tau) = 1 + q / (b tau). 8e6 turns bytes into the kb/s ns of the denominators.
 */
FR_LAW fr_u64 fr_hop_power(const struct fr_hop *hop, const struct fr_hop *prev, fr_u32 floor_q31, fr_u64 tau_ns)
{
    fr_u64 sent_and_queued = hop->tx_bytes - prev->tx_bytes + hop->qlen;
    fr_u64 arrived = fr_min(fr_less(sent_and_queued, prev->qlen), 0xffffffffULL);
    fr_u64 dt = fr_time(hop->ts_ns - prev->ts_ns);
    fr_u64 lambda_q32 = fr_ratio_q32(arrived * 8000000, hop->rate_kbps * dt);
    fr_u64 voltage_q32 = FR_ONE_Q32 + fr_ratio_q32(hop->qlen * 8000000ULL, hop->rate_kbps * tau_ns);
    return fr_mul_q32(fr_max(lambda_q32, (fr_u64)floor_q31 << 1), voltage_q32);
}

/* Alg. 1 for one acknowledgment. The largest power of all ports counts. The first acknowledgment, an acknowledgment over another
 * number of hops, and the first after an idle time of more than tau only store their telemetry.
 */
FR_LAW void fr_powertcp_on_ack(struct fr_powertcp_state *s, const struct fr_powertcp_params *p, const struct fr_ack *ack,
                               const struct fr_hop *hops, fr_u32 n_hops, fr_u64 mtu, fr_u64 tau_ns)
{
    fr_u64 tau = fr_max(fr_time(tau_ns), 1);
    fr_u64 most_q32 = 0, dt = 0;
    int was_idle = p->law.idle_restart && s->last_ack_ns + tau + ack->rtt_ns < ack->now_ns;
    int has_history = s->n_hops == n_hops && n_hops && !was_idle;
    for (fr_u32 i = 0; i < FR_HOPS_MOST; i++) {
        if (i < n_hops && has_history && fr_hop_advanced(&hops[i], &s->prev[i])) {
            fr_u64 power_q32 = fr_hop_power(&hops[i], &s->prev[i], p->law.floor_q31, tau);
            if (!dt || most_q32 < power_q32) {
                most_q32 = power_q32;
                dt = hops[i].ts_ns - s->prev[i].ts_ns;
            }
        }
        if (i < n_hops)
            s->prev[i] = hops[i];
    }
    if (!has_history) {
        fr_power_forget(&s->law, &p->law);
        fr_power_postpone(&s->law, ack);
    } else if (dt) {
        fr_power_sample(&s->law, most_q32, dt, tau);
        fr_u64 smoothed_q32 = s->law.power_q32;
        s->law.power_q32 = fr_mul_div(smoothed_q32, FR_ONE_Q31, p->target_q31);
        fr_power_update(&s->law, &p->law, ack, mtu, tau);
        s->law.power_q32 = smoothed_q32;
    }
    s->n_hops = n_hops;
    s->last_ack_ns = ack->now_ns;
}

#endif
