/* theta-PowerTCP as a congestion control of TCP.
 *
 * The window in force when the acknowledged packet was sent is the window since the last update, as the law updates once a round trip.
 * The paper's network loses nothing; here a loss halves the window once a round trip, and a timeout leaves a packet.
 */
#include "flow.h"
#include "laws/theta_powertcp.h"

FR_PARAMS(fr_theta_params)

struct flow {
    struct fr_theta_params params;
    struct fr_theta_state state;
    u64 cut_until; /* losses of bytes sent before this one are of one event */
};

FR_FLOWS

static __always_inline u64 tau_ns(const struct flow *flow, struct tcp_sock *tp)
{
    return flow->params.tau_ns ? flow->params.tau_ns : min_rtt_ns(tp);
}

static __always_inline void apply(struct sock *sk, struct flow *flow, u64 tau)
{
    set_cwnd(tcp_sk(sk), flow->state.law.cwnd_q16);
    set_pace(sk, fr_min(fr_bytes_per_s(flow->state.law.cwnd_q16, fr_time(tau)), flow->params.law.line_bps / 8));
}

SEC("struct_ops") void fr_theta_init(u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    const struct fr_theta_params *params = params_of(sk);
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!flow || !params)
        return;
    u64 tau = params->tau_ns ? params->tau_ns : min_rtt_ns(tcp_sk(sk));
    flow->params = *params;
    flow->cut_until = 0;
    fr_theta_start(&flow->state, &flow->params, tcp_sk(sk)->mss_cache, tau);
    begin_pacing(sk);
    count_socket(1);
    mark(sk);
    apply(sk, flow, tau);
}

FR_RELEASE(fr_theta)

static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    struct fr_ack ack = {};
    if (!flow)
        return;
    u64 tau = tau_ns(flow, tp);
    u64 mss = tp->mss_cache;
    read_ack(tp, rs, &ack);
    ack.cwnd_at_send = flow->state.law.cwnd_q16 >> 16;
    if (!flow->params.tau_ns)
        flow->state.base_ns = fr_max(fr_time(tau), 1);
    if (ack.rtt_ns)
        fr_theta_on_ack(&flow->state, &flow->params, &ack, mss, tau);
    if (rs->losses > 0 && flow->cut_until <= ack.ack_seq) {
        flow->state.law.cwnd_q16 = fr_max(flow->state.law.cwnd_q16 >> 1, mss << 16);
        flow->cut_until = ack.snd_nxt;
    }
    apply(sk, flow, tau);
}

FR_CONG_CONTROL(fr_theta, on_ack)

SEC("struct_ops") void fr_theta_set_state(u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    if (flow && (u8)ctx[1] == TCP_CA_LOSS)
        flow->state.law.cwnd_q16 = (u64)tcp_sk(sk)->mss_cache << 16;
}

FR_PACED_OPS(fr_theta, .set_state = fr_theta_set_state, .flags = TCP_CONG_NON_RESTRICTED)
