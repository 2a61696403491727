//! Counters of what happened in a run, each declared once.

use std::ops::AddAssign;

/// Declares a type of counters. Whoever stores or adds counters goes through all of them by name, so a new counter is a
/// line here.
macro_rules! counts {
    ($(#[doc = $of:literal])+ $counts:ident: $($(#[doc = $doc:literal])+ $name:ident,)+) => {
        $(#[doc = $of])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $counts<N = u64> {
            $($(#[doc = $doc])+ pub $name: N,)+
        }

        impl $counts {
            /// The name of each counter, in the order of its declaration.
            pub const NAMES: [&'static str; [$(stringify!($name)),+].len()] = [$(stringify!($name)),+];
        }

        impl<N> $counts<N> {
            /// Returns each counter with its name, in the order of their declaration.
            pub fn by_name(self) -> [(&'static str, N); $counts::NAMES.len()] {
                [$((stringify!($name), self.$name)),+]
            }

            /// Returns the counter called `name`; `None`: there is none.
            pub fn named(&mut self, name: &str) -> Option<&mut N> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)+
                    _ => None,
                }
            }

            /// Returns the counters with `f` applied to each.
            pub fn map<M>(self, mut f: impl FnMut(N) -> M) -> $counts<M> {
                $counts { $($name: f(self.$name),)+ }
            }
        }

        impl<N: AddAssign> AddAssign for $counts<N> {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

counts! {
    /// Numbers of things that happened in a run, other than drops; with `N = f64`, means over runs.
    Counts:
    /// Packets of any kind that faulty links have added.
    duplicates,
    /// Data packets that switches cut to their headers.
    trims,
    /// Headers of such packets that switches sent back to their senders.
    returns,
    /// Packets marked with ECN.
    ecn_marks,
    /// PFC pause frames sent.
    pfc_pauses,
    /// PFC resume frames sent.
    pfc_resumes,
    /// Notices that switch ports sent to sources.
    notices,
    /// Control packets that flows sent, on their way there and back again.
    control_packets,
    /// Frames that paused a single flow one hop upstream.
    flow_pauses,
    /// Frames that resumed a single flow one hop upstream.
    flow_resumes,
}

counts! {
    /// The messages between a central allocator and endpoints. Bytes are those of its lines (connections that carry
    /// messages) on the wire, with their acknowledgments, counted once where they are sent.
    AllocatorTotals:
    /// Bytes sent by the allocator.
    from_allocator_bytes,
    /// Bytes sent to the allocator.
    to_allocator_bytes,
    /// Bytes sent between intermediaries and servers, both ways.
    relayed_bytes,
    /// The part of `from_allocator_bytes` in acknowledgments.
    from_allocator_ack_bytes,
    /// The part of `to_allocator_bytes` in acknowledgments.
    to_allocator_ack_bytes,
    /// The part of `from_allocator_bytes` in packets that carry only signs of life.
    sign_of_life_bytes,
    /// Flowlets whose start an endpoint reported.
    starts,
    /// Flowlets whose end an endpoint reported.
    ends,
    /// Rates that the allocator sent.
    updates,
    /// Messages of the allocator whose only purpose is to show that it is up.
    signs_of_life,
    /// Rates that expired, because the allocator was silent or their flowlet had ended.
    expired,
    /// Iterations of the optimiser.
    iterations,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_is_found_by_its_name_and_added() {
        let mut counts = Counts::default();
        for (i, name) in (1..).zip(Counts::NAMES) {
            *counts.named(name).unwrap() = i;
        }
        assert_eq!(counts.named("else"), None);
        counts += counts;
        let doubled: Vec<_> = Counts::NAMES.into_iter().zip((1..).map(|i| 2 * i)).collect();
        assert_eq!(counts.by_name().to_vec(), doubled);
        assert_eq!(counts.map(|n| f64::from(n) / 2.0).by_name()[1], ("trims", 2.0));
    }
}
