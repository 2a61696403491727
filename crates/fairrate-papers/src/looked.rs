//! Sentences, one a figure, on what was looked at where its claims fail and no cause is known.

use crate::claim::{Claim, Verdict};
use crate::figure::Figure;

/// Figures, each with the readings and parameters that its lines, or other figures, have been run with.
const LOOKED_AT: &[(&str, &str)] = &[
    (
        "powertcp/fig4",
        "the forms of the public code, and for θ-PowerTCP the RTTs of its paths with an update on each acknowledgment",
    ),
    (
        "powertcp/fig6",
        "the forms of the public code, its traffic, τ of the paths, HOMA's classes and buffer, and buffers by bandwidth with a \
         second of arrivals (powertcp/fig6-buffers)",
    ),
    (
        "powertcp/fig6-buffers",
        "the buffers and the number of flows, which this figure has as the text says; other readings are \
     those of powertcp/fig6",
    ),
    ("powertcp/fig7", "traffic, τ and classes of sizes of the public code, and at 60 % τ of the paths (powertcp/fig6)"),
    ("powertcp/fig7-requests", "traffic, τ, slowdowns and classes of sizes of the public code"),
    ("powertcp/fig7-buffers", "traffic, τ and the samples that the public code counts"),
    (
        "powertcp/fig8",
        "changes of the window on each acknowledgment, without the floor on power, four to nine senders in place of ten, and the time \
         after a day",
    ),
    ("rocc/fig6", "the formula alone, which gives the margin of two flows"),
    (
        "rocc/fig9",
        "whole gains on low queues, fractions of F, both, spaced packets, and these with 500 B, each in RoCC as its authors' code has \
         it",
    ),
    (
        "rocc/fig11",
        "DCQCN and HPCC with constants of the authors' code and with all of it, and HPCC's increase by its formula",
    ),
    ("rocc/fig12", "BFC's number of queues and the delay of links, and DCQCN's marks and step of the authors' code"),
    (
        "rocc/fig16",
        "PFC by ingress in earlier runs, whole gains on low queues, DCQCN with the constants of the authors' code, HPCC without its \
         floor, by line rate and by pacing alone, and all three as in the authors' code",
    ),
    (
        "rocc/fig17",
        "three readings of PFC, DCQCN with the constants of the authors' code, and all as in that code; the level of \
     resuming is in rocc/resume",
    ),
    (
        "rocc/table3",
        "readings of a flow's rate, over its life, after each notice, after each of the cores once the network is warm, and \
         for HPCC at each packet, and the forms of figure 16; BFC's sources have no rates",
    ),
    ("ratemp/table1", "what the base of 200 us holds; DCTCP's marks were chosen for its mean"),
    (
        "ratemp/fig6",
        "hosts of 25 and 100 Gb/s, RateMP's marks for all, losses in place of marks, MPCC from the full rate, and longer \
         arrivals (ratemp/fig6-steady, ratemp/fig6-why)",
    ),
    (
        "ratemp/fig6-steady",
        "hosts of 25, 40, 50 and 100 Gb/s, MPCC left out, and alpha_total and Kmax of RateMP where hosts have more than 25 Gb/s",
    ),
    (
        "ratemp/fig7",
        "hosts of 25 and 100 Gb/s, RateMP's marks for all, losses in place of marks, MPCC from the full rate, and longer \
         arrivals (ratemp/fig7-steady)",
    ),
    ("ratemp/fig7-steady", "hosts of 25, 40, 50 and 100 Gb/s"),
    (
        "ratemp/fig8",
        "hosts of 25 and 100 Gb/s, RateMP's marks for all, losses in place of marks, MPCC from the full rate, and longer \
         arrivals (ratemp/fig8-steady)",
    ),
    (
        "ratemp/fig8-steady",
        "hosts of 25, 40, 50 and 100 Gb/s, MPCC left out, and alpha_total and Kmax of RateMP with 100 Gb/s",
    ),
    (
        "flowtune/fig4",
        "TCP's first window, and when a change counts as settled: senders' rates, or what arrives in 20 and 100 us",
    ),
    (
        "flowtune/fig5",
        "what counts of the traffic: updates, acknowledgments and signs of life; not the paper's flow sizes, \
     which are not public",
    ),
    ("flowtune/fig6", "three meanings of update traffic"),
    (
        "flowtune/fig8",
        "TCP's first window, DCTCP's K, XCP's timers, sfqCoDel's buffer and target, losses found without RACK, \
         Flowtune's gamma, hosts and headers as in ns-2, and with them timeouts of 2 ms in place of 200 us",
    ),
    ("flowtune/fig10", "sfqCoDel's buffer and target, hosts and headers as in ns-2, and with them timeouts of 2 ms"),
    ("flowtune/fig9", "TCP's first window, DCTCP's K, and hosts and headers as in ns-2"),
    (
        "flowtune/fig11",
        "rates at moments and by size over completion time, DCTCP's K, sfqCoDel's buffer and target, hosts and headers as in ns-2, and \
         with them timeouts of 2 ms",
    ),
    ("flowtune/fig12", "what a flow takes at prices of 0, and single precision; a smaller step of the gradient method"),
    (
        "flowtune/fig13",
        "the number of iterations in the same time, one for each change, bounded ratios, and ratios that only \
     scale down",
    ),
    (
        "perc/fig1",
        "control packets that are charged or of one byte, first rates that wait, headroom, and DCTCP's first window",
    ),
    ("perc/fig8", "where the delay of paths sits, RCP's gains, and which of PERC's rates wait"),
    (
        "beyond/collectives",
        "NSCC's timeout under ECMP, uplinks on which no two messages meet, and flows without a window",
    ),
    ("beyond/training", "messages that do not meet, and gradients that are reduced after the backward pass"),
    ("beyond/spine", "the time until senders hear of the failure"),
];

/// Returns what was looked at for the failing claims of a figure.
pub fn looked_at(figure: &Figure) -> Option<&'static str> {
    LOOKED_AT.iter().find(|(id, _)| *id == figure.id).map(|(_, text)| *text)
}

/// Returns `true` if a claim fails, without a run that has something changed and without a cause.
pub fn is_bare(claim: &Claim) -> bool {
    matches!(claim.verdict(), Verdict::Weaker | Verdict::NotReproduced) && claim.changes.is_empty() && {
        claim.cause.as_ref().is_none_or(|cause| cause == "No cause is known.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Rule;
    use crate::list::FIGURES;

    #[test]
    fn each_sentence_is_of_a_figure() {
        for (id, text) in LOOKED_AT {
            assert!(FIGURES.iter().any(|figure| figure.id == *id), "{id}");
            assert!(!text.ends_with('.'), "{id}");
        }
    }

    #[test]
    fn a_claim_is_bare_without_a_change_and_a_cause() {
        let claim = || Claim::exact("id", "", Rule::AtMost(1.0), "", Some(2.0));
        assert!(is_bare(&claim()) && is_bare(&claim().because("No cause is known.")));
        assert!(!is_bare(&claim().because("It rains.")) && !is_bare(&claim().changing("it snows", vec![3.0])));
        assert!(!is_bare(&Claim::exact("id", "", Rule::AtMost(3.0), "", Some(2.0))));
    }
}
