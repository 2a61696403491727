//! Causes of queues and settling times of RoCC's judged forms, in Figures 8 and 9: runs with one thing changed.

use super::star::{AUTHORS, AUTHORS_SETS, FULL, ROCC, forms};
use crate::claim::Claim;
use crate::variant::Variant;

/// A judged form of RoCC with one thing changed, or two that bring the paper's number back only together.
pub struct Changed {
    /// The form.
    of: Variant,
    /// The change in words, after "if".
    what: &'static str,
    /// The form with the change.
    pub variant: Variant,
}

const SMALL: &str = "packets have 500 B, not 1 KB";
const MTU: (&str, &str) = ("transport.mtu", "500B");
const WHOLE_GAINS: (&str, &str) = ("transport.rocc.low_queue_gain", "full");

/// Changes besides those of [`forms`].
pub const CHANGED: [Changed; 7] = [
    Changed { of: ROCC, what: SMALL, variant: ROCC.with("rocc-500b", "rocc, packets of 500 B", &[MTU]) },
    Changed {
        of: FULL,
        what: SMALL,
        variant: FULL.with("rocc-full-500b", "rocc, whole gains, packets of 500 B", &[WHOLE_GAINS, MTU]),
    },
    Changed {
        of: AUTHORS,
        what: "gains are whole on low queues",
        variant: AUTHORS.with("rocc-authors-full", "rocc, authors' code, whole gains", &AUTHORS_FULL),
    },
    Changed {
        of: AUTHORS,
        what: "F has eight bits behind the point",
        variant: AUTHORS.with("rocc-authors-bits", "rocc, authors' code, fractions of F", &AUTHORS_BITS),
    },
    Changed {
        of: AUTHORS,
        what: "hosts space packets, without a bucket",
        variant: AUTHORS.with("rocc-authors-spaced", "rocc, authors' code, packets spaced", &AUTHORS_SPACED),
    },
    Changed {
        of: AUTHORS,
        what: "hosts space packets, and these have 500 B",
        variant: AUTHORS.with("rocc-authors-500b", "rocc, authors' code, 500 B spaced", &AUTHORS_SPACED_SMALL),
    },
    Changed {
        of: AUTHORS,
        what: "F has eight bits behind the point, and gains are whole on low queues",
        variant: AUTHORS.with(
            "rocc-authors-both",
            "rocc, authors' code, fractions and whole gains",
            &AUTHORS_BITS_FULL,
        ),
    },
];

const AUTHORS_FULL: [(&str, &str); 6] = {
    let [overhead, initial, bits, limiter, accept] = AUTHORS_SETS;
    [overhead, initial, bits, limiter, accept, WHOLE_GAINS]
};
const AUTHORS_BITS: [(&str, &str); 5] = {
    let [overhead, initial, _, limiter, accept] = AUTHORS_SETS;
    [overhead, initial, ("transport.rocc.fraction_bits", "8"), limiter, accept]
};
const AUTHORS_BITS_FULL: [(&str, &str); 6] = {
    let [overhead, initial, bits, limiter, accept] = AUTHORS_BITS;
    [overhead, initial, bits, limiter, accept, WHOLE_GAINS]
};
const AUTHORS_SPACED: [(&str, &str); 5] = {
    let [overhead, initial, bits, _, accept] = AUTHORS_SETS;
    [overhead, initial, bits, ("transport.rocc.limiter", "spaced"), accept]
};
const AUTHORS_SPACED_SMALL: [(&str, &str); 6] = {
    let [overhead, initial, bits, limiter, accept] = AUTHORS_SPACED;
    [overhead, initial, bits, limiter, accept, MTU]
};

/// Adds to a claim about `form` the number that it has under each change of that form; `of` returns the number of a
/// line.
pub fn changing(claim: Claim, form: &Variant, of: impl Fn(&Variant) -> Vec<f64>) -> Claim {
    let claim = if form.id == ROCC.id { changing_printed(claim, &of) } else { claim };
    let changed = CHANGED.iter().filter(|changed| changed.of.id == form.id);
    changed.fold(claim, |claim, changed| claim.changing(changed.what, of(&changed.variant)))
}

/// Adds the changes that [`forms`] has of RoCC as printed.
fn changing_printed(claim: Claim, of: &impl Fn(&Variant) -> Vec<f64>) -> Claim {
    let [_, full, _, steady, ingress, late_resume, gains] = forms(40).map(|form| of(&form));
    claim
        .changing("gains are whole on low queues", full)
        .changing("there is no multiplicative decrease", steady)
        .changing("ports are paused by what arrived through them", ingress)
        .changing("paused ports resume at 10 KB", late_resume)
        .changing("gains are 0.8 and 2.4, as in a comment of the authors' code", gains)
}
