//! Student's t and Fisher's F, for degrees of freedom that need not be whole.

use super::Probability;
use super::interval::normal_deviate;

/// P(|T| > |t|).
#[must_use]
pub fn both_tails(t: f64, freedom: f64) -> f64 {
    beyond_ratio(t * t, 1.0, freedom)
}

/// P(F > ratio), of two variances with these degrees of freedom: the incomplete beta function of
/// ν₂ / (ν₂ + ν₁ F) with parameters ν₂ / 2 and ν₁ / 2.
#[must_use]
pub fn beyond_ratio(ratio: f64, above: f64, below: f64) -> f64 {
    if ratio <= 0.0 {
        return 1.0;
    }
    let whole = below + above * ratio;
    let (x, y) = (below / whole, above * ratio / whole);
    let (a, b) = (below / 2.0, above / 2.0);
    let front = libm::exp(
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b)
            + a * libm::log(x)
            + b * libm::log(y),
    );
    // The fraction converges quickly on one side of the mean only.
    let tails = if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, y) / b
    };
    tails.clamp(0.0, 1.0)
}

/// The |t| that is exceeded with probability `alpha`.
#[must_use]
pub fn critical(alpha: f64, freedom: f64) -> f64 {
    let (mut below, mut above) = (0.0, 1.0);
    while both_tails(above, freedom) > alpha && above < 1e12 {
        (below, above) = (above, 2.0 * above);
    }
    for _ in 0..60 {
        let middle = (below + above) / 2.0;
        if both_tails(middle, freedom) > alpha {
            below = middle;
        } else {
            above = middle;
        }
    }
    above
}

/// By how much an estimated variance of so many degrees of freedom is raised, so that an interval of this confidence
/// that takes it for the true one becomes as wide as Student's: (t / z)².
///
/// t is expanded around the standard normal deviate z in powers of 1 / ν (Abramowitz and Stegun 26.7.5). For 95 % it
/// is right to 1 % from two degrees of freedom on, and 11 % too low with one; fewer count as one.
pub(crate) fn widening(confidence: Probability, freedom: f64) -> f64 {
    let z = normal_deviate((confidence.complement_f64() / 2.0).max(5e-19));
    let (x, over) = (z * z, 1.0 / freedom.max(1.0));
    let terms = [
        (x + 1.0) / 4.0,
        ((5.0 * x + 16.0) * x + 3.0) / 96.0,
        (((3.0 * x + 19.0) * x + 17.0) * x - 15.0) / 384.0,
        ((((79.0 * x + 776.0) * x + 1_482.0) * x - 1_920.0) * x - 945.0) / 92_160.0,
    ];
    let ratio = 1.0 + terms.iter().rev().fold(0.0, |sum, term| (sum + term) * over);
    ratio * ratio
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const STEPS: u32 = 500;
    let bounded = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut d = 1.0 / bounded(1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut value) = (1.0, d);
    for step in 1..STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / bounded(1.0 + term * d);
            c = bounded(1.0 + term / c);
            change = c * d;
            value *= change;
        }
        if (change - 1.0_f64).abs() < 1e-14 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabled_values() {
        // Any table of Student's t, two-sided.
        for (alpha, freedom, t) in [
            (0.05, 1.0, 12.706_2),
            (0.05, 2.0, 4.302_65),
            (0.05, 10.0, 2.228_14),
            (0.01, 6.0, 3.707_43),
            (0.05, 1e6, 1.959_966),
            (0.001, 30.0, 3.645_96),
        ] {
            assert!((critical(alpha, freedom) / t - 1.0).abs() < 1e-5, "{alpha} {freedom}");
            assert!((both_tails(t, freedom) / alpha - 1.0).abs() < 1e-4, "{alpha} {freedom}");
        }
        for (alpha, above, below, ratio) in [(0.05, 3.0, 12.0, 3.490_3), (0.01, 2.0, 24.0, 5.613_6)]
        {
            assert!((beyond_ratio(ratio, above, below) / alpha - 1.0).abs() < 1e-3, "{ratio}");
        }
        assert_eq!(both_tails(0.0, 3.0), 1.0);
        assert!(both_tails(1e9, 50.0) < 1e-100);
    }

    /// Student's t of tables, over the normal deviate.
    #[test]
    fn few_degrees_of_freedom_widen_as_students() {
        for (confidence, z, freedom, t) in [
            ("0.95", 1.9600, 2.0, 4.303),
            ("0.95", 1.9600, 5.0, 2.571),
            ("0.95", 1.9600, 15.0, 2.131),
            ("0.9", 1.6449, 3.0, 2.353),
            ("0.99", 2.5758, 4.0, 4.604),
            ("0.99", 2.5758, 30.0, 2.750),
        ] {
            let widened = widening(confidence.parse().unwrap(), freedom).sqrt() * z;
            assert!((widened / t - 1.0).abs() < 0.01, "{confidence} {freedom}: {widened} {t}");
        }
        assert_eq!(widening(Probability::P95, f64::INFINITY), 1.0);
        assert_eq!(widening(Probability::P95, 0.2), widening(Probability::P95, 1.0));
        assert!(widening(Probability::ONE, 1.0).is_finite());
    }
}
