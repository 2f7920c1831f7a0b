//! Many quantiles looked at: p-values that hold for all of them together.

use super::draws::Draws;

/// Corrects p-values so that the chance of any false verdict stays what one alone would have
/// (Westfall and Young 1993, algorithm 2.8). Unlike Holm's correction it knows how much
/// neighbouring quantiles say the same.
pub(super) fn step_down(found: &[f64], draws: &Draws) -> Vec<f64> {
    let columns = draws.p_values();
    let count = columns.first().map_or(0, Vec::len);
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|x, y| found[*x].total_cmp(&found[*y]));
    let mut smallest = vec![f64::INFINITY; count];
    let mut corrected = vec![1.0; found.len()];
    // From the least significant on, the smallest p among those not yet decided.
    for &index in order.iter().rev() {
        for (least, p) in smallest.iter_mut().zip(&columns[index]) {
            *least = least.min(*p);
        }
        let reached = smallest.iter().filter(|least| **least <= found[index]).count();
        corrected[index] = (reached + 1) as f64 / (count + 1) as f64;
    }
    let mut largest = 0.0_f64;
    for &index in &order {
        largest = largest.max(corrected[index]).max(found[index]);
        corrected[index] = largest;
    }
    corrected
}

/// The p-value that the smallest of all quantiles undercuts with probability `alpha`.
pub(super) fn smallest_p_at(draws: &Draws, alpha: f64) -> f64 {
    let columns = draws.p_values();
    let count = columns.first().map_or(0, Vec::len);
    let mut smallest = vec![f64::INFINITY; count];
    for column in &columns {
        for (least, p) in smallest.iter_mut().zip(column) {
            *least = least.min(*p);
        }
    }
    smallest.sort_unstable_by(f64::total_cmp);
    let index = libm::floor(alpha * (count + 1) as f64) as usize;
    smallest.get(index.saturating_sub(1)).copied().unwrap_or(alpha)
}
