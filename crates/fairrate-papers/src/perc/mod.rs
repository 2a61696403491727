//! PERC: L. Jose, L. Yan, M. Alizadeh, G. Varghese, N. McKeown, S. Katti, "High Speed Networks Need Proactive
//! Congestion Control", HotNets 2015.
//!
//! The paper's rates are rates of links, and so are ours: payload is counted with its headers.

mod chain;
mod fig1;
mod fig2;
mod fig3;
mod fig4;
mod fig5;
mod fig6;
mod fig7;
mod fig8;
mod web_search;

pub use fig1::FIGURE as FIG1;
pub use fig2::FIGURE as FIG2;
pub use fig3::FIGURE as FIG3;
pub use fig4::FIGURE as FIG4;
pub use fig5::FIGURE as FIG5;
pub use fig6::FIGURE as FIG6;
pub use fig7::FIGURE as FIG7;
pub use fig8::FIGURE as FIG8;
