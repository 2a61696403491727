//! Congestion control algorithms from shared libraries.
//!
//! [`abi`] is the interface, which `include/fairrate.h` has for C. A library exports one symbol, `fairrate_algorithm`: a
//! table of names, parameters and functions. [`open`] checks it and makes a
//! [`CustomAlgorithm`](fairrate_control::CustomAlgorithm) of it.
//!
//! All `unsafe` code about libraries is in this crate. What it trusts a library with: that the table is what its version says, and
//! that its functions keep to what they are given. A library that does not can do what any code in the process can.
#![allow(unsafe_code)]

/// The interface, as C has it.
pub mod abi;
#[cfg(feature = "host")]
mod controller;
#[cfg(feature = "host")]
mod library;

#[cfg(feature = "host")]
pub use library::open;
