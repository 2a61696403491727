//! PowerTCP: V. Addanki, O. Michel, S. Schmid, "PowerTCP: Pushing the Performance Limits of Datacenter Networks",
//! NSDI 2022.

mod fig2;
mod fig3;
mod fig4;
mod fig5;
mod fig6;
mod fig6_buffers;
mod fig7;
mod fig7_buffers;
mod fig7_requests;
mod fig8;
mod overcommitment;
mod websearch;

pub use fig2::FIGURE as FIG2;
pub use fig3::FIGURE as FIG3;
pub use fig4::FIGURE as FIG4;
pub use fig5::FIGURE as FIG5;
pub use fig6::FIGURE as FIG6;
pub use fig6_buffers::FIGURE as FIG6_BUFFERS;
pub use fig7::FIGURE as FIG7;
pub use fig7_buffers::FIGURE as FIG7_BUFFERS;
pub use fig7_requests::FIGURE as FIG7_REQUESTS;
pub use fig8::FIGURE as FIG8;
pub use overcommitment::{FIG9, FIG10, FIG11};

/// The feedback of the simplified laws of section 2 (eq. 2), as f/e: the divisor of a window.
#[derive(Clone, Copy)]
struct Feedback {
    name: &'static str,
    /// An algorithm of the kind, for the looks of its line.
    cc: &'static str,
    /// The feedback for a queue in bandwidth-delay products, and its slope in link rates.
    of: fn(q: f64, q_dot: f64) -> f64,
}

/// Queue length or delay: f = q + bτ, e = bτ.
const VOLTAGE: Feedback = Feedback { name: "voltage (queue length, delay)", cc: "hpcc", of: |q, _| 1.0 + q };
/// RTT gradient: f = dq/dt / b + 1, e = 1.
const CURRENT: Feedback = Feedback { name: "current (RTT gradient)", cc: "timely", of: |_, q_dot| 1.0 + q_dot };
/// Power: f = (q + bτ)(dq/dt + μ), e = b²τ (eq. 6 and 7).
const POWER: Feedback = Feedback { name: "power (PowerTCP)", cc: "powertcp", of: |q, q_dot| (1.0 + q) * (1.0 + q_dot) };

const LAWS: [Feedback; 3] = [VOLTAGE, CURRENT, POWER];
