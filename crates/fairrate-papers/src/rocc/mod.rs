//! RoCC: P. Menikkumbura, P. Taheri, E. Vanini, S. Fahmy, P. Eugster, T. Edsall, "Congestion Control for Datacenter Networks: A
//! Control-Theoretic Approach", IEEE TPDS 2023.

mod fig5;
mod fig6;
mod fig7;
mod stability;

pub use fig5::FIGURE as FIG5;
pub use fig6::FIGURE as FIG6;
pub use fig7::FIGURE as FIG7;
