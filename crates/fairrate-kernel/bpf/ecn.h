/* A receiver that echoes every mark to its sender: DCTCP's, RFC 8257 section 3.2. */
#ifndef FAIRRATE_ECN_H
#define FAIRRATE_ECN_H

#include "kernel.h"

struct receiver {
    u32 has_ce; /* 1 if the last data was marked */
    u32 prior_rcv_nxt;
};

static __always_inline void echo(struct tcp_sock *tp, u32 has_ce)
{
    if (has_ce)
        tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
    else
        tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* When the mark changes, acknowledges the data received before at once, with the mark it had. */
static __always_inline void on_data(struct tcp_sock *tp, struct receiver *receiver, u32 event)
{
    u32 has_ce = event == CA_EVENT_ECN_IS_CE;
    if (!has_ce && event != CA_EVENT_ECN_NO_CE)
        return;
    if (receiver->has_ce != has_ce) {
        if (tp->inet_conn.icsk_ack.pending & ICSK_ACK_TIMER) {
            echo(tp, receiver->has_ce);
            bpf_tcp_send_ack(tp, receiver->prior_rcv_nxt);
        }
        tp->inet_conn.icsk_ack.pending |= ICSK_ACK_NOW;
    }
    receiver->prior_rcv_nxt = tp->rcv_nxt;
    receiver->has_ce = has_ce;
    echo(tp, has_ce);
}

#endif
