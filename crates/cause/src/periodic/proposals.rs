//! The frequencies that are proposed for a level, until a comb explains a part of it.

use super::capture::{Capture, Level};
use super::comb::{self, BELIEVED_NATS, Comb};
use super::multiples::fundamental;
use super::{pairs, spectrum, wander};
use realfft::RealFftPlanner;
use std::cell::OnceCell;

/// A frequency, with the best comb near it.
#[derive(Debug, Clone)]
struct Proposal {
    hz: f64,
    /// The part of a period by which it may be wrong over the run.
    smear: f64,
    comb: OnceCell<Option<Comb>>,
}

/// Proposed frequencies for the stalls of a level that are not explained yet.
pub(super) struct Proposals {
    level: usize,
    spectral: Vec<Proposal>,
    /// Searched only if the spectrum shows nothing.
    of_pairs: OnceCell<Vec<Proposal>>,
}

impl Proposals {
    pub(super) fn of(
        plan: &mut RealFftPlanner<f32>,
        capture: &Capture,
        levels: &[Level],
        level: usize,
    ) -> Self {
        let spectral = spectrum::candidates(plan, capture, &levels[level]).into_iter();
        let spectral =
            spectral.map(|one| Proposal::new(one.hz, (2.0 / one.harmonics as f64).min(0.25)));
        Self { level, spectral: spectral.collect(), of_pairs: OnceCell::new() }
    }

    /// Combs by the power of the ends of stalls, best first.
    pub(super) fn spectral<'a>(
        &'a self,
        capture: &'a Capture,
        levels: &'a [Level],
    ) -> impl Iterator<Item = Comb> {
        self.combs(&self.spectral, capture, levels)
    }

    /// Combs by pairs of stalls, best first.
    pub(super) fn of_pairs<'a>(
        &'a self,
        capture: &'a Capture,
        levels: &'a [Level],
    ) -> impl Iterator<Item = Comb> {
        let proposals = self.of_pairs.get_or_init(|| {
            let candidates = pairs::candidates(capture.run_ns, &levels[self.level]).into_iter();
            candidates.map(|one| Proposal::new(one.hz, one.smear)).collect()
        });
        self.combs(proposals, capture, levels)
    }

    /// Has the combs fitted again: other packets are explained now.
    pub(super) fn fit_again(&mut self) {
        let of_pairs = self.of_pairs.get_mut().into_iter().flatten();
        self.spectral.iter_mut().chain(of_pairs).for_each(|one| one.comb = OnceCell::new());
    }

    /// The combs of proposals, each of which is fitted once.
    fn combs<'a>(
        &self,
        proposals: &'a [Proposal],
        capture: &'a Capture,
        levels: &'a [Level],
    ) -> impl Iterator<Item = Comb> {
        let level = self.level;
        let fitted =
            move |one: &'a Proposal| *one.comb.get_or_init(|| one.fitted(capture, levels, level));
        proposals.iter().filter_map(fitted)
    }
}

impl Proposal {
    fn new(hz: f64, smear: f64) -> Self {
        Self { hz, smear, comb: OnceCell::new() }
    }

    /// The comb near it, or the multiple or fraction of that which is likeliest, followed if its clock wanders; `None` if it is
    /// not to be believed.
    fn fitted(&self, capture: &Capture, levels: &[Level], level: usize) -> Option<Comb> {
        let near = comb::near(capture, levels, level, self.hz, self.smear);
        let comb = near.filter(|comb| comb.net(capture.run_ns) >= BELIEVED_NATS)?;
        let unsure = (!comb.is_sure()).then_some(comb);
        let level = &levels[comb.level];
        Some(match unsure.and_then(|comb| wander::followed(capture, level, &comb)) {
            Some(comb) => wander::fundamental(capture, level, &comb),
            None => fundamental(capture, levels, comb),
        })
    }
}
