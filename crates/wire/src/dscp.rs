//! Traffic classes as people write them.

/// A differentiated services code point by number or by name (RFC 2474, RFC 2597, RFC 3246, RFC 5865,
/// RFC 8622).
///
/// # Errors
/// It is neither; the text names what is expected.
pub fn parse(text: &str) -> Result<u8, String> {
    let expected = || {
        format!(
            "invalid DSCP {text:?}, expected 0 to 63, EF, VA, LE, BE, CS0 to CS7 or AF11 to AF43"
        )
    };
    let upper = text.to_ascii_uppercase();
    let known = match upper.as_str() {
        "EF" => Some(46),
        "VA" => Some(44),
        "LE" => Some(1),
        "BE" => Some(0),
        _ => None,
    };
    let digits = |prefix: &str| -> Option<Vec<u8>> {
        upper.strip_prefix(prefix).map(|rest| rest.bytes().map(|b| b.wrapping_sub(b'0')).collect())
    };
    let class = match digits("CS").as_deref() {
        Some([class @ 0..=7]) => Some(class * 8),
        _ => None,
    };
    let assured = match digits("AF").as_deref() {
        Some([class @ 1..=4, drop @ 1..=3]) => Some(class * 8 + drop * 2),
        _ => None,
    };
    let number = text.parse::<u8>().ok().filter(|number| *number < 64);
    known.or(class).or(assured).or(number).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_by_number_and_name() {
        for (text, expected) in
            [("EF", 46), ("af41", 34), ("AF13", 14), ("cs6", 48), ("le", 1), ("0", 0), ("63", 63)]
        {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        for text in ["", "64", "AF14", "AF51", "CS8", "CS", "AF1", "express", "-1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
