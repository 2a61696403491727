//! Congestion control algorithms from shared libraries.
//!
//! [`abi`] is the interface; `include/fairrate.h` is its C form. A library exports one symbol, `fairrate_algorithm`: a
//! table of names, parameters and functions. [`open`] checks it and makes a
//! [`CustomAlgorithm`](fairrate_control::CustomAlgorithm) of it.
//!
//! All `unsafe` code about libraries is in this crate. It relies on two properties of a library: the table has the
//! layout of its version, and its functions stay within the memory they are given. A library without them can do
//! anything that code in the process can do.
#![allow(unsafe_code)]

/// The interface, in C's layout.
pub mod abi;
#[cfg(feature = "host")]
mod controller;
#[cfg(feature = "host")]
mod library;

#[cfg(feature = "host")]
pub use library::open;
