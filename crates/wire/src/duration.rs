//! Times as people write them, in ns: `20us`, `2.5ms`, or without a unit where an option has a usual one.

/// A time with its unit, also behind a space: `500ns`, `20us`, `2.5 ms`, `1s`, `10min`, `48h`.
///
/// `None` where it is none: no unit, a sign, a part of a nanosecond, or more than 2⁶³ ns.
#[must_use]
pub fn time_ns(text: &str) -> Option<u64> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(at);
    let unit_ns = match unit.strip_prefix(' ').unwrap_or(unit) {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    decimal(number, unit_ns)
}

/// A time with its unit, or a decimal number of `unit_ns`: `500ms`, `5`, `0.25`.
///
/// `None` where it is neither: a sign, a part of a nanosecond, or more than 2⁶³ ns.
#[must_use]
pub fn time_or_number_ns(text: &str, unit_ns: u64) -> Option<u64> {
    time_ns(text).or_else(|| decimal(text, unit_ns))
}

/// Exactly, without floating point.
fn decimal(number: &str, unit_ns: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !number.contains(|c: char| c.is_ascii_digit()) || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let parse = |digits: &str| format!("0{digits}").parse::<u64>().ok();
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = parse(fraction)?.checked_mul(unit_ns)?;
    if part % scale != 0 {
        return None;
    }
    let ns = parse(whole)?.checked_mul(unit_ns)?.checked_add(part / scale)?;
    (ns <= i64::MAX.cast_unsigned()).then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_units() {
        for (text, ns) in [
            ("1us", 1_000),
            ("2.5ms", 2_500_000),
            ("500ns", 500),
            ("0.25µs", 250),
            (".5us", 500),
            ("10 ms", 10_000_000),
            ("1.s", 1_000_000_000),
            ("1.5min", 90_000_000_000),
            ("48h", 172_800_000_000_000),
            ("0us", 0),
            ("1.000000000000s", 1_000_000_000),
        ] {
            assert_eq!(time_ns(text), Some(ns), "{text}");
        }
        for wrong in
            ["", "1", "us", ".us", "0.5ns", "-1us", "+1us", "1d", "1  us", "1.2.3us", "1e3us"]
        {
            assert_eq!(time_ns(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn seconds_are_exact_with_and_without_their_unit() {
        let seconds_ns = |text: &str| time_or_number_ns(text, 1_000_000_000);
        assert_eq!(seconds_ns("0.000000001"), Some(1));
        assert_eq!(seconds_ns("9223372036.854775807"), Some(i64::MAX.cast_unsigned()));
        assert_eq!(seconds_ns("5"), seconds_ns("5s"));
        assert_eq!(seconds_ns("0.25"), seconds_ns("250ms"));
        for wrong in
            ["9223372036.854775808", "99999999999999999999", "0.0000000001", "5m", ".", "-1"]
        {
            assert_eq!(seconds_ns(wrong), None, "{wrong}");
        }
    }
}
