//! RoCC: P. Menikkumbura, P. Taheri, E. Vanini, S. Fahmy, P. Eugster, T. Edsall, "Congestion Control for Datacenter
//! Networks: A Control-Theoretic Approach", IEEE TPDS 2023.

mod baselines;
mod causes;
mod fabric;
mod fig11;
mod fig12;
mod fig13;
mod fig14;
mod fig15;
mod fig16;
mod fig17;
mod fig5;
mod fig6;
mod fig7;
mod fig8;
mod fig9;
mod hardware;
mod resume;
mod stability;
mod star;
mod table3;
mod testbed;

pub use fig5::FIGURE as FIG5;
pub use fig6::FIGURE as FIG6;
pub use fig7::FIGURE as FIG7;
pub use fig8::FIGURE as FIG8;
pub use fig9::FIGURE as FIG9;
pub use fig11::FIGURE as FIG11;
pub use fig12::FIGURE as FIG12;
pub use fig13::FIGURE as FIG13;
pub use fig14::FIGURE as FIG14;
pub use fig15::FIGURE as FIG15;
pub use fig16::FIGURE as FIG16;
pub use fig17::FIGURE as FIG17;
pub use hardware::FIGURE as HARDWARE;
pub use resume::FIGURE as RESUME;
pub use table3::FIGURE as TABLE3;
