/* A congestion control that reads past the end of an array, which no verifier lets in. */
#include "../../bpf/flow.h"

SEC("struct_ops") void fr_refused_init(u64 *ctx)
{
    u64 key = bpf_ktime_get_ns();
    struct note *note = bpf_map_lookup_elem(&namespaces, &key);
    if (note)
        note->before[key & 1023] = 0;
}

SEC(".struct_ops") struct tcp_congestion_ops fr_refused = {
    .init = fr_refused_init,
    .ssthresh = fr_ssthresh,
    .undo_cwnd = fr_undo_cwnd,
    .name = "fr_refused",
};
