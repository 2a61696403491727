/* Arithmetic of the laws: unsigned 64-bit integers with a fixed point. The kernel has no floating point, and BPF neither 128-bit
 * numbers nor signed division.
 *
 * A name ends with the bits behind its point: `power_q32` counts 2^-32. Results that do not fit stop at the largest number.
 */
#ifndef FAIRRATE_FIXED_H
#define FAIRRATE_FIXED_H

typedef unsigned int fr_u32;
typedef unsigned long long fr_u64;
typedef long long fr_s64;

#define FR_LAW static inline __attribute__((always_inline, unused))
#define FR_MOST (~0ULL)
#define FR_ONE_Q32 (1ULL << 32)
#define FR_ONE_Q31 (1ULL << 31)
#define FR_ONE_Q63 (1ULL << 63)
#define FR_NS_PER_S 1000000000ULL

/* An acknowledgment as the laws get it: `Ack` of fairrate-control, with times in nanoseconds. */
struct fr_ack {
    fr_u64 now_ns;
    fr_u64 ack_seq;
    fr_u64 snd_nxt;
    fr_u64 rtt_ns;
    fr_u64 cwnd_at_send; /* bytes */
    fr_u64 newly_acked;  /* bytes */
    fr_u64 delivered;    /* bytes */
    fr_u64 in_flight;    /* bytes */
    fr_u32 ecn_marked;
    fr_u32 app_limited;
};

FR_LAW fr_u64 fr_min(fr_u64 a, fr_u64 b) { return a < b ? a : b; }
FR_LAW fr_u64 fr_max(fr_u64 a, fr_u64 b) { return a < b ? b : a; }
FR_LAW fr_u64 fr_clamp(fr_u64 x, fr_u64 least, fr_u64 most) { return x < least ? least : fr_min(x, most); }
FR_LAW fr_u64 fr_less(fr_u64 a, fr_u64 b) { return a < b ? 0 : a - b; }
FR_LAW fr_u64 fr_add(fr_u64 a, fr_u64 b) { return FR_MOST - a < b ? FR_MOST : a + b; }

/* Limits a time to the range of the laws: below 2^32 ns, 4.3 s. */
FR_LAW fr_u64 fr_time(fr_u64 ns) { return fr_min(ns, 0xffffffffULL); }

/* a*b, for b < 2^32. */
FR_LAW fr_u64 fr_mul(fr_u64 a, fr_u64 b)
{
    fr_u64 high = (a >> 32) * b;
    if (high >> 32)
        return FR_MOST;
    return fr_add(high << 32, (a & 0xffffffffULL) * b);
}

/* a*b/c rounded down, for b <= 2^32 and 0 < c < 2^32. */
FR_LAW fr_u64 fr_mul_div(fr_u64 a, fr_u64 b, fr_u64 c)
{
    return fr_add(fr_mul(a / c, b), a % c * b / c);
}

/* a*b of two numbers with 32 bits behind the point. */
FR_LAW fr_u64 fr_mul_q32(fr_u64 a, fr_u64 b)
{
    return fr_add(fr_mul(b, a >> 32), fr_add((b >> 32) * (a & 0xffffffffULL), (b & 0xffffffffULL) * (a & 0xffffffffULL) >> 32));
}

/* a/b with 32 bits behind the point, rounded down. Only the leading 48 bits of a longer `b` count. */
FR_LAW fr_u64 fr_ratio_q32(fr_u64 a, fr_u64 b)
{
    if (b >> 48) {
        a >>= 16;
        b >>= 16;
    }
    if (b == 0 || a / b >> 32)
        return FR_MOST;
    fr_u64 whole = a / b, rest = a % b << 16;
    fr_u64 middle = rest / b;
    return (whole << 32) + (middle << 16) + (rest % b << 16) / b;
}

/* a*f, for a part f <= 1 with 31 bits behind the point. */
FR_LAW fr_u64 fr_part_q31(fr_u64 a, fr_u64 f_q31) { return fr_mul_div(a, f_q31, FR_ONE_Q31); }

/* a*f, for a part f <= 1 with 63 bits behind the point. */
FR_LAW fr_u64 fr_part_q63(fr_u64 a, fr_u64 f_q63)
{
    fr_u64 a1 = a >> 32, a0 = a & 0xffffffffULL, f1 = f_q63 >> 32, f0 = f_q63 & 0xffffffffULL;
    fr_u64 middle = a1 * f0 + (a0 * f0 >> 32);
    fr_u64 other = a0 * f1 + (middle & 0xffffffffULL);
    return ((a1 * f1 + (middle >> 32) + (other >> 32)) << 1) + (other >> 31 & 1);
}

/* a*b/c rounded down, for any a, b and c: 128 bits in between, divided bit by bit. */
FR_LAW fr_u64 fr_mul_div_wide(fr_u64 a, fr_u64 b, fr_u64 c)
{
    fr_u64 a1 = a >> 32, a0 = a & 0xffffffffULL, b1 = b >> 32, b0 = b & 0xffffffffULL;
    fr_u64 middle = a1 * b0 + (a0 * b0 >> 32);
    fr_u64 other = a0 * b1 + (middle & 0xffffffffULL);
    fr_u64 high = a1 * b1 + (middle >> 32) + (other >> 32);
    fr_u64 low = a * b;
    if (c <= high)
        return FR_MOST;
    for (int i = 0; i < 64; i++) {
        fr_u64 carry = high >> 63;
        high = high << 1 | low >> 63;
        low <<= 1;
        if (carry || c <= high) {
            high -= c;
            low |= 1;
        }
    }
    return low;
}

/* a/b at most 1, with 63 bits behind the point; a < 2^32 and 0 < b < 2^32. */
FR_LAW fr_u64 fr_share_q63(fr_u64 a, fr_u64 b)
{
    if (b <= a)
        return FR_ONE_Q63;
    return ((a << 32) / b << 31) + ((a << 32) % b << 31) / b;
}

/* Bytes at `bps` in `ns`, with 16 bits behind the point; ns < 2^32, and below 2^51 bit/s. */
FR_LAW fr_u64 fr_bytes_q16(fr_u64 bps, fr_u64 ns) { return fr_mul_div(bps << 13, ns, FR_NS_PER_S); }

/* The rate at which `bytes_q16` take `ns` > 0, in bytes/s. */
FR_LAW fr_u64 fr_bytes_per_s(fr_u64 bytes_q16, fr_u64 ns) { return fr_mul_div(bytes_q16, FR_NS_PER_S, ns) >> 16; }

#endif
