//! RateMP: J. Han, K. Xue, W. Wang, R. Li, Q. Sun, J. Lu, "RateMP: Optimizing Bandwidth Utilization with High Burst
//! Tolerance in Data Center Networks", IEEE INFOCOM 2024. `docs/ratemp.md` lists the paper's gaps and the choices made
//! here.

mod claims;
mod fabric;
mod fig4;
mod fig5;
mod fig6;
mod fig6_steady;
mod fig6_why;
mod fig7;
mod fig7_steady;
mod fig8;
mod fig8_steady;
mod settings;
mod steady;
mod table1;
mod testbed;

pub use fig4::FIGURE as FIG4;
pub use fig5::FIGURE as FIG5;
pub use fig6::FIGURE as FIG6;
pub use fig6_steady::FIGURE as FIG6_STEADY;
pub use fig6_why::FIGURE as FIG6_WHY;
pub use fig7::FIGURE as FIG7;
pub use fig7_steady::FIGURE as FIG7_STEADY;
pub use fig8::FIGURE as FIG8;
pub use fig8_steady::FIGURE as FIG8_STEADY;
pub use table1::FIGURE as TABLE1;
