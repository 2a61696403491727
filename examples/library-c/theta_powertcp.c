/* theta-PowerTCP: V. Addanki, O. Michel, S. Schmid, "PowerTCP", NSDI 2022, Alg. 2, in its paper's form.
 *
 *   cc -O2 -ffp-contract=off -shared -fPIC -I ../../include -o libtheta.so theta_powertcp.c -lm
 *   fairrate run ../incast10.toml --cc ./libtheta.so:gamma=0.8
 *
 * Float operations are in the order of fairrate's own theta-powertcp, so the results are the same bits. */
#include <math.h>
#include <stdlib.h>
#include "fairrate.h"

typedef struct {
    double gamma, current_floor, beta, least, most;  /* the last three in bytes */
    double tau_ns, tau_s, cwnd, power;               /* power < 0: none yet */
    uint64_t line_rate_bps, tau_ps, updated_to, rtt_ps, at_ps;
} Flow;

static const FairrateParameter parameters[] = {
    {"gamma", "weight of the new window against the present one (PowerTCP 3.3: 0.9)", 0.9, 0.0, 1.0},
    {"beta_bps", "additive increase a round trip, as a rate (ns-3 artifact: 150 Mb/s)", 150e6, 0.0, 1e12},
    {"current_floor", "least gradient of the round-trip time plus one (ns-3 artifact: 0.5)", 0.5, 0.01, 1.0},
};

static void *make(const FairrateFlow *flow, const double *parameter) {
    Flow *f = calloc(1, sizeof *f);
    if (!f) abort();
    f->gamma = parameter[0];
    f->current_floor = parameter[2];
    f->line_rate_bps = flow->line_rate_bps;
    f->tau_ps = flow->base_rtt_ps;
    f->tau_ns = (double)f->tau_ps / 1e3;
    f->tau_s = (double)f->tau_ps / 1e12;
    f->beta = parameter[1] * f->tau_s / 8.0;
    f->most = f->cwnd = (double)f->line_rate_bps * f->tau_s / 8.0;
    f->least = fmin((double)flow->mtu_bytes, f->most);
    f->power = -1.0;
    return f;
}

static FairrateAllowance allow(const Flow *f) {
    uint64_t rate = (uint64_t)(f->cwnd * 8.0 / f->tau_s);
    return (FairrateAllowance){(uint64_t)f->cwnd, rate < f->line_rate_bps ? rate : f->line_rate_bps, FAIRRATE_NONE};
}

static FairrateAllowance on_start(void *state, uint64_t now_ps) { (void)now_ps; return allow(state); }

/* NORMPOWER (lines 11-14): how much more than the pipe is under way, smoothed over a round trip. */
static void measure(Flow *f, const FairrateAck *ack) {
    double dt = (double)(ack->now_ps - f->at_ps) / 1e3, rtt = (double)ack->rtt_ps / 1e3;
    double current = fmax((rtt - (double)f->rtt_ps / 1e3) / dt + 1.0, f->current_floor);
    double power = current * rtt / f->tau_ns;
    dt = fmin(dt, f->tau_ns);
    f->power = f->power < 0.0 ? power : (f->power * (f->tau_ns - dt) + power * dt) / f->tau_ns;
}

/* UPDATEWINDOW (lines 16-25): once a round trip, cwnd = gamma (cwnd_old / power + beta) + (1 - gamma) cwnd. */
static void update(Flow *f, const FairrateAck *ack) {
    if (ack->ack_seq <= f->updated_to) return;
    double rest = round((1.0 - f->gamma) * 1e9) / 1e9, old = fmax((double)ack->cwnd_at_send, f->least);
    double next = f->gamma * (old / fmax(f->power, 1e-9) + f->beta) + rest * f->cwnd;
    f->cwnd = fmin(fmax(next, f->least), f->most);
    f->updated_to = ack->snd_nxt;
}

static FairrateAllowance on_ack(void *state, const FairrateAck *ack) {
    Flow *f = state;
    if (f->at_ps == ack->now_ps) return allow(f);
    /* The first acknowledgment, and the first after an idle time, have nothing to be measured against. */
    if (f->at_ps == 0 || f->at_ps + f->tau_ps + ack->rtt_ps < ack->now_ps) {
        f->power = -1.0;
        if (f->updated_to < ack->snd_nxt) f->updated_to = ack->snd_nxt;
    } else {
        measure(f, ack);
        update(f, ack);
    }
    f->rtt_ps = ack->rtt_ps;
    f->at_ps = ack->now_ps;
    return allow(f);
}

const FairrateAlgorithm fairrate_algorithm = {
    .abi = FAIRRATE_ABI,
    .name = "c-theta-powertcp", .title = "θ-PowerTCP in C", .paper = "Addanki et al., NSDI 2022",
    .idea = "PowerTCP on round-trip times and their slope, without help from switches",
    .needs = FAIRRATE_FIRST_ACK_ONLY_STORED, .data_overhead_bytes = 8,
    .parameters = parameters, .n_parameters = sizeof parameters / sizeof *parameters,
    .make = make, .free = free, .on_start = on_start, .on_ack = on_ack,
};
