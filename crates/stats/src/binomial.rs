//! Tails of the binomial distribution, for any real number of trials.
//!
//! A tail probability is an incomplete beta function, which is smooth in the number of trials and
//! of successes: that is what dependent samples, worth a fraction of an independent one each, ask
//! for, and at integers it is the exact sum. It is computed as a saddle-point term (Loader 2000,
//! "Fast and accurate computation of binomial probabilities") times a continued fraction (DiDonato
//! and Morris 1992, algorithm 708): some dozens of steps for 10^12 trials, and no cancellation for
//! rare events.

use std::f64::consts::TAU;

/// P(X >= `hits`) for X ~ Bin(`trials`, `x`), where `y` = 1 − `x` and numbers need not be whole; one
/// for fewer than one hit.
#[must_use]
pub fn binomial_tail(hits: f64, trials: f64, x: f64, y: f64) -> f64 {
    if hits < 1.0 { 1.0 } else { beta(hits, (trials - hits + 1.0).max(1.0), x, y) }
}

/// The regularised incomplete beta function I_x(a, b) for `a, b >= 1`, `x > 0`, `y > 0` and
/// `x + y = 1`. At integers it is P(X >= a) for X ~ Bin(a + b − 1, x).
///
/// Both `x` and `y` are passed: computing one from the other would lose the digits of the smaller.
pub(super) fn beta(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let lead = a * y - b * x;
    if lead < 0.0 {
        // The fraction converges on the far side of the mean only.
        1.0 - beta_beyond_mean(b, a, y, x, -lead)
    } else {
        beta_beyond_mean(a, b, x, y, lead)
    }
}

/// I_x(a, b) where `lead`, a·y − b·x, is not negative.
fn beta_beyond_mean(a: f64, b: f64, x: f64, y: f64, lead: f64) -> f64 {
    // At z standard deviations beyond the mean k steps leave an error of about e^(−2z√(2k)): 80
    // steps at z = 2. Only tails of almost one half come near the limit.
    const STEPS: u32 = 100_000;
    let denominator = |m: f64| {
        let even = m * (b - m) * x / (a + 2.0 * m - 1.0);
        let odd = (a + m) * (lead + 1.0 + m * (1.0 + y)) / (a + 2.0 * m + 1.0);
        m + even + odd
    };

    // Lentz's method. No term can vanish here: denominators are positive for m <= b, where it
    // matters, and beyond that the numerators have become negligible.
    let mut fraction = a * (lead + 1.0) / (a + 1.0);
    let (mut c, mut d) = (fraction, 0.0);
    for step in 1..STEPS {
        let m = f64::from(step);
        let scale = x / (a + 2.0 * m - 1.0);
        let numerator = (a + m - 1.0) * scale * (a + b + m - 1.0) * scale * m * (b - m);
        let partial = denominator(m);
        d = 1.0 / (partial + numerator * d);
        c = partial + numerator / c;
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    point(a, b - 1.0, x, y) * a * y / fraction
}

/// The probability of `hits` hits and `misses` misses, where a hit has probability `x` and a miss
/// `y` = 1 − x.
fn point(hits: f64, misses: f64, x: f64, y: f64) -> f64 {
    if misses == 0.0 {
        return power(x, y, hits);
    }
    if hits == 0.0 {
        return power(y, x, misses);
    }
    let n = hits + misses;
    let stirling = stirling_error(n) - stirling_error(hits) - stirling_error(misses);
    let deviance = deviance(hits, n * x) + deviance(misses, n * y);
    (stirling - deviance).exp() * (n / (TAU * hits * misses)).sqrt()
}

/// `x` to the power of `n`, where `y` = 1 − x.
pub(super) fn power(x: f64, y: f64, n: f64) -> f64 {
    (n * logarithm(x, y)).exp()
}

/// The natural logarithm of `x`, where `y` = 1 − x; near one from `y`, which has the digits.
pub(super) fn logarithm(x: f64, y: f64) -> f64 {
    if x > 0.5 { (-y).ln_1p() } else { x.ln() }
}

/// ln Γ(x + 1) minus Stirling's approximation of it, for `x > 0`.
fn stirling_error(x: f64) -> f64 {
    let (mut x, mut error) = (x, 0.0);
    // From 16 on the last term kept is below the precision of the sum.
    while x < 16.0 {
        error += (x + 0.5) * (1.0 / x).ln_1p() - 1.0;
        x += 1.0;
    }
    let s = 1.0 / (x * x);
    let series = 1.0 / 1260.0 - s * (1.0 / 1680.0 - s / 1188.0);
    error + (1.0 / 12.0 - s * (1.0 / 360.0 - s * series)) / x
}

/// x·ln(x/m) + m − x without cancellation (Loader's `bd0`).
fn deviance(x: f64, m: f64) -> f64 {
    if (x - m).abs() >= 0.1 * (x + m) {
        return x * (x / m).ln() + m - x;
    }
    let v = (x - m) / (x + m);
    let (mut sum, mut term) = ((x - m) * v, 2.0 * x * v);
    for j in 1..100 {
        term *= v * v;
        let next = sum + term / f64::from(2 * j + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative agreement to nine digits.
    fn assert_close(got: f64, want: f64, what: &str) {
        assert!((got / want - 1.0).abs() < 1e-9, "{what}: {got} is not {want}");
    }

    /// P(X >= hits) by adding up the terms from a recurrence, an independent route.
    fn tail_by_sum(hits: u32, n: u32, x: f64) -> f64 {
        let mut term = (1.0 - x).powi(n as i32);
        let mut sum = 0.0;
        for k in 0..=n {
            if k >= hits {
                sum += term;
            }
            term *= f64::from(n - k) / f64::from(k + 1) * x / (1.0 - x);
        }
        sum
    }

    #[test]
    fn equals_the_sum_at_integers() {
        for n in [1_u32, 2, 3, 5, 10, 37, 200] {
            for x in [0.001, 0.02, 0.3, 0.5] {
                // Beyond 80 hits the sum runs into numbers too small for an f64.
                for hits in 1..=n.min(80) {
                    let (a, b) = (f64::from(hits), f64::from(n - hits + 1));
                    let what = format!("hits {hits} of {n} at {x}");
                    assert_close(beta(a, b, x, 1.0 - x), tail_by_sum(hits, n, x), &what);
                }
            }
        }
    }

    #[test]
    fn equals_closed_forms_between_integers() {
        for x in [0.001_f64, 0.2, 0.5, 0.9] {
            let y = 1.0 - x;
            for r in [1.0, 1.25, 2.5, 7.75] {
                assert_close(beta(r, 1.0, x, y), x.powf(r), "I_x(a, 1) = x^a");
                let want = -(r * (-x).ln_1p()).exp_m1();
                assert_close(beta(1.0, r, x, y), want, "I_x(1, b) = 1 − (1 − x)^b");
                let want = x.powf(r) * (1.0 + r * y);
                assert_close(beta(r, 2.0, x, y), want, "I_x(a, 2) = x^a (1 + a y)");
            }
        }
    }

    #[test]
    fn tends_to_poisson_for_rare_events() {
        // P(Poisson(3) >= 8) and P(Poisson(3) <= 0): the limit of 10^12 trials.
        let (n, q) = (1e12, 3e-12);
        assert_close(beta(8.0, n - 7.0, q, 1.0 - q), 0.011_904_503_856_357_3, ">= 8");
        assert_close(beta(n, 1.0, 1.0 - q, q), (-3.0_f64).exp(), "<= 0");
        // Far from the mean the tail is tiny but still a number.
        assert!(beta(900.0, n, q, 1.0 - q) < 1e-300);
    }

    #[test]
    fn converges_for_large_balanced_counts() {
        // z standard deviations above the mean of Bin(10^12, 1/2), with continuity correction:
        // the skewness is zero, so the normal tail is right to seven digits.
        for (z, tail) in [(1.0, 0.158_655_253_9), (1.96, 0.024_997_895_1), (4.0, 3.167_124_18e-5)] {
            let a = 5e11 + z * 5e5 + 0.5;
            let got = beta(a, 1e12 - a + 1.0, 0.5, 0.5);
            assert!((got / tail - 1.0_f64).abs() < 1e-6, "z {z}: {got}");
        }
    }
}
