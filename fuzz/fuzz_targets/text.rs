//! Bytes as words that users type: selections and probabilities.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailtrim_stats::Probability;
use tailtrim_tail::signature::Selection;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<Selection>() {
        Ok(selection) => assert_eq!(selection.to_string().parse(), Ok(selection)),
        Err(error) => assert!(error.to_string().starts_with("signature ")),
    }
    match text.parse::<Probability>() {
        Ok(p) => {
            assert_eq!(p.to_string().parse(), Ok(p));
            assert!(p.as_f64() > 0.0 && p.as_f64() <= 1.0);
            assert!(p.complement_f64() >= 0.0 && p.complement_f64() <= 1.0);
            assert!(!p.percent_text().is_empty());
            for n in [0, 1, 1000, u64::MAX] {
                assert!((1..=n.max(1)).contains(&p.rank(n)));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
