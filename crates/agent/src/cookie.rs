//! The cookie of UDP echo: bytes that reflector and client both know.

/// Eight bytes of sixteen hexadecimal digits.
pub(crate) fn parse(text: &str) -> Result<[u8; 8], String> {
    let expected = || format!("invalid cookie {text:?}, expected 16 hexadecimal digits");
    if text.len() != 16 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(expected());
    }
    u64::from_str_radix(text, 16).map(u64::to_be_bytes).map_err(|_| expected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_digits_are_eight_bytes() {
        assert_eq!(parse("00112233AABBccdd"), Ok([0, 0x11, 0x22, 0x33, 0xaa, 0xbb, 0xcc, 0xdd]));
        for text in [
            "",
            "0",
            "00112233aabbccd",
            "00112233aabbccdd0",
            "+0112233aabbccdd",
            "g0112233aabbccdd",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
