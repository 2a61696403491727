/* The laws as functions of the host, for the tests that compare them with the Rust controllers. */
#include "laws/dctcp.h"
#include "laws/perc.h"
#include "laws/powertcp.h"
#include "laws/ratemp.h"
#include "laws/rocc.h"
#include "laws/theta_powertcp.h"

void fr_native_theta_start(struct fr_theta_state *s, const struct fr_theta_params *p, fr_u64 mtu, fr_u64 tau)
{
    fr_theta_start(s, p, mtu, tau);
}

void fr_native_theta_on_ack(struct fr_theta_state *s, const struct fr_theta_params *p, const struct fr_ack *ack, fr_u64 mtu, fr_u64 tau)
{
    fr_theta_on_ack(s, p, ack, mtu, tau);
}

void fr_native_powertcp_start(struct fr_powertcp_state *s, const struct fr_powertcp_params *p, fr_u64 mtu, fr_u64 tau, fr_u64 now)
{
    fr_powertcp_start(s, p, mtu, tau, now);
}

void fr_native_powertcp_on_ack(struct fr_powertcp_state *s, const struct fr_powertcp_params *p, const struct fr_ack *ack,
                               const struct fr_hop *hops, fr_u32 n_hops, fr_u64 mtu, fr_u64 tau)
{
    fr_powertcp_on_ack(s, p, ack, hops, n_hops, mtu, tau);
}

void fr_native_dctcp_start(struct fr_dctcp_state *s, const struct fr_dctcp_params *p, fr_u64 first, fr_u64 mtu)
{
    fr_dctcp_start(s, p, first, mtu);
}

void fr_native_dctcp_on_ack(struct fr_dctcp_state *s, const struct fr_dctcp_params *p, const struct fr_ack *ack, fr_u64 mtu)
{
    fr_dctcp_on_ack(s, p, ack, mtu);
}

void fr_native_dctcp_on_gap(struct fr_dctcp_state *s, const struct fr_dctcp_params *p, fr_u64 mtu)
{
    fr_dctcp_on_gap(s, p, mtu);
}

void fr_native_dctcp_on_timeout(struct fr_dctcp_state *s, const struct fr_dctcp_params *p, fr_u64 now, fr_u64 mtu)
{
    fr_dctcp_on_timeout(s, p, now, mtu);
}

fr_u64 fr_native_rocc_port_tick(struct fr_rocc_port_state *s, const struct fr_rocc_port_params *p, fr_u64 queue)
{
    fr_rocc_port_tick(s, p, queue);
    return fr_rocc_told(s, p);
}

void fr_native_rocc_on_notice(struct fr_rocc_state *s, const struct fr_rocc_params *p, fr_u64 now, fr_u64 told, fr_u64 port)
{
    fr_rocc_on_notice(s, p, now, told, port);
}

fr_u64 fr_native_rocc_rate(struct fr_rocc_state *s, const struct fr_rocc_params *p, fr_u64 now)
{
    fr_rocc_advance(s, p, now + 1);
    return fr_rocc_rate(s, p);
}

void fr_native_ratemp_start(struct fr_ratemp_state *s, const struct fr_ratemp_params *p, fr_u64 path_rtt, fr_u64 now)
{
    fr_ratemp_start(s, p, path_rtt, now);
}

void fr_native_ratemp_on_ack(struct fr_ratemp_state *s, const struct fr_ratemp_params *p, const struct fr_ack *ack, fr_u64 total_q32,
                             fr_u64 mtu, fr_u64 wire_bits)
{
    fr_ratemp_on_ack(s, p, ack, total_q32, mtu, wire_bits);
}

struct fr_ratemp_allowance fr_native_ratemp_allowed(const struct fr_ratemp_state *s, const struct fr_ratemp_params *p, fr_u64 wire_bits)
{
    return fr_ratemp_allowed(s, p, wire_bits);
}

fr_u64 fr_native_ratemp_packets_q32(const struct fr_ratemp_state *s)
{
    return fr_ratemp_packets_q32(s);
}

void fr_native_ratemp_on_gap(struct fr_ratemp_state *s)
{
    fr_ratemp_on_gap(s);
}

void fr_native_ratemp_on_timeout(struct fr_ratemp_state *s)
{
    fr_ratemp_on_timeout(s);
}

void fr_native_perc_on_record(struct fr_perc_link *link, fr_u64 flow, fr_u64 now, fr_u32 id, struct fr_perc_record *record)
{
    struct fr_perc_work work = {.link = link, .entry = {.hosts = flow, .ports = (fr_u32)flow, .seen_ns = now}};
    fr_perc_on_record(&work, id, record);
}

fr_u64 fr_native_perc_answer(struct fr_perc_link *link, fr_u64 flow, fr_u64 now, fr_u64 demand)
{
    struct fr_perc_work work = {.link = link, .entry = {.rate = demand, .hosts = flow, .ports = (fr_u32)flow, .seen_ns = now}};
    fr_perc_take(&work);
    return fr_perc_answer(&work);
}

fr_u32 fr_native_perc_word(fr_u64 rate)
{
    return fr_perc_word(rate);
}

fr_u64 fr_native_perc_rate(fr_u32 word)
{
    return fr_perc_rate(word);
}

void fr_native_perc_start(struct fr_perc_state *s, const struct fr_perc_params *p, fr_u64 rtt)
{
    fr_perc_start(s, p, rtt);
}

int fr_native_perc_ask(struct fr_perc_state *s, const struct fr_perc_params *p, fr_u64 now, fr_u64 rtt, fr_u64 unsent, fr_u64 mtu,
                       fr_u64 wire, struct fr_perc_record *record)
{
    return fr_perc_ask(s, p, now, rtt, unsent, mtu, wire, record);
}

void fr_native_perc_returned(struct fr_perc_state *s, const struct fr_perc_params *p, fr_u64 now, fr_u64 rtt,
                             const struct fr_perc_record *record)
{
    fr_perc_returned(s, p, now, rtt, record);
}

void fr_native_perc_tick(struct fr_perc_state *s, fr_u64 now)
{
    fr_perc_tick(s, now);
}
