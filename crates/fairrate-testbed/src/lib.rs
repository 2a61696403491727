//! The testbed: scenarios on network namespaces and the TCP of Linux.
//!
//! [`Field`](field::Field) adapts a scenario to the testbed, [`Plan`](plan::Plan) describes the network to lay out, and
//! [`Job`](run::Job) lays it out, runs it and writes the same results directory as `fairrate run`.

pub mod algorithm;
pub mod blocks;
pub mod classes;
pub mod cli;
pub mod connections;
pub mod delay;
pub mod failure;
pub mod field;
pub mod fit;
pub mod idle;
pub mod lateness;
pub mod lines;
pub mod machine;
pub mod namespaces;
pub mod network;
pub mod paths;
pub mod place;
pub mod plan;
pub mod priority;
pub mod qdisc;
pub mod receiving;
pub mod run;
pub mod sampling;
pub mod sending;
pub mod shared;
pub mod tcp_info;
pub mod tools;
pub mod wakeup;
pub mod wire;
