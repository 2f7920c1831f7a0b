//! The frequencies that are proposed for a level, until a comb explains a part of it.

use super::capture::{Capture, Level};
use super::{pairs, spectrum};
use realfft::RealFftPlanner;
use std::cell::OnceCell;

/// A frequency.
#[derive(Debug, Clone, Copy)]
pub(super) struct Proposal {
    pub(super) hz: f64,
    /// The part of a period by which it may be wrong over the run.
    pub(super) smear: f64,
}

/// Proposed frequencies for the stalls of a level that are not explained yet.
pub(super) struct Proposals {
    spectral: Vec<Proposal>,
    /// Searched only if the spectrum shows nothing.
    of_pairs: OnceCell<Vec<Proposal>>,
}

impl Proposals {
    pub(super) fn of(plan: &mut RealFftPlanner<f32>, capture: &Capture, level: &Level) -> Self {
        let spectral = spectrum::candidates(plan, capture, level)
            .into_iter()
            .map(|one| Proposal { hz: one.hz, smear: (2.0 / one.harmonics as f64).min(0.25) });
        Self { spectral: spectral.collect(), of_pairs: OnceCell::new() }
    }

    /// By the power of the ends of stalls, best first.
    pub(super) fn spectral(&self) -> &[Proposal] {
        &self.spectral
    }

    /// By pairs of stalls, best first. The level is the one of these proposals.
    pub(super) fn of_pairs(&self, capture: &Capture, level: &Level) -> &[Proposal] {
        self.of_pairs.get_or_init(|| {
            let candidates = pairs::candidates(capture.run_ns, level).into_iter();
            candidates.map(|one| Proposal { hz: one.hz, smear: one.smear }).collect()
        })
    }
}
