//! The shared key of authenticated test packets.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// Bytes of a truncated HMAC (RFC 8762 section 4.4).
pub const HMAC_LEN: usize = 16;
/// Shorter keys are guessed (RFC 4868 asks for as many bytes as the hash has; this is half of that, the
/// length of what is sent).
const LEAST_BYTES: usize = 16;

/// HMAC-SHA-256 truncated to its first 128 bits (RFC 8762 section 4.4, RFC 4868), with its key.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

/// A key that is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Too easy to guess.
    #[error(
        "the key has {0} bytes, expected {LEAST_BYTES} or more (for example: openssl rand -hex 32)"
    )]
    Short(usize),
    /// Hexadecimal digits come in pairs.
    #[error("the key starts with 0x, expected pairs of hexadecimal digits behind it")]
    Digits,
}

impl Key {
    /// A key of bytes.
    ///
    /// # Errors
    /// [`KeyError::Short`].
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        if bytes.len() < LEAST_BYTES {
            return Err(KeyError::Short(bytes.len()));
        }
        Hmac::new_from_slice(bytes).map(Self).map_err(|_| KeyError::Short(bytes.len()))
    }

    /// A key as a file has it: one line, the bytes themselves, or pairs of hexadecimal digits behind `0x`.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn of_text(text: &[u8]) -> Result<Self, KeyError> {
        let line = text.trim_ascii();
        let Some(digits) = line.strip_prefix(b"0x") else { return Self::of_bytes(line) };
        let (pairs, []) = digits.as_chunks::<2>() else { return Err(KeyError::Digits) };
        let bytes: Option<Vec<u8>> = pairs.iter().map(|pair| byte(*pair)).collect();
        Self::of_bytes(&bytes.ok_or(KeyError::Digits)?)
    }

    /// The HMAC over several pieces, one behind the other.
    #[must_use]
    pub fn sign(&self, pieces: &[&[u8]]) -> [u8; HMAC_LEN] {
        let whole = self.over(pieces).finalize().into_bytes();
        crate::bytes::field(&whole, 0)
    }

    /// Whether this is their HMAC. Takes as long for one that differs in the first as in the last byte.
    #[must_use]
    pub fn is_signed(&self, pieces: &[&[u8]], hmac: &[u8; HMAC_LEN]) -> bool {
        self.over(pieces).verify_truncated_left(hmac).is_ok()
    }

    fn over(&self, pieces: &[&[u8]]) -> Hmac<Sha256> {
        pieces.iter().fold(self.0.clone(), |mac, piece| mac.chain_update(piece))
    }
}

fn byte([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    Some(digit(high)? << 4 | digit(low)?)
}

impl fmt::Debug for Key {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors_hold() {
        // RFC 4231 section 4.2: key 20 times 0b, "Hi There".
        let key = Key::of_bytes(&[0x0b; 20]).unwrap();
        let expected = 0xb034_4c61_d8db_3853_5ca8_afce_af0b_f12b_u128.to_be_bytes();
        assert_eq!(key.sign(&[b"Hi There"]), expected);
        assert_eq!(key.sign(&[b"Hi", b"", b" There"]), expected);
        assert!(key.is_signed(&[b"Hi There"], &expected));
        // RFC 4231 section 4.6: truncated to 128 bits.
        let key = Key::of_bytes(&[0x0c; 20]).unwrap();
        let expected = 0xa3b6_1674_7310_0ee0_6e0c_796c_2955_552b_u128.to_be_bytes();
        assert_eq!(key.sign(&[b"Test With Truncation"]), expected);
        // RFC 4231 section 4.7: a key longer than a block.
        let key = Key::of_bytes(&[0xaa; 131]).unwrap();
        let expected = 0x60e4_3159_1ee0_b67f_0d8a_26aa_cbf5_b77f_u128.to_be_bytes();
        assert_eq!(
            key.sign(&[b"Test Using Larger Than Block-Size Key - Hash Key First"]),
            expected
        );
    }

    #[test]
    fn any_other_bit_is_none() {
        let key = Key::of_bytes(&[1; 16]).unwrap();
        let hmac = key.sign(&[b"packet"]);
        for bit in 0..HMAC_LEN * 8 {
            let mut other = hmac;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.is_signed(&[b"packet"], &other));
        }
    }

    #[test]
    fn keys_are_read_as_files_have_them() {
        let plain = Key::of_text(b"sixteen letters!\n").unwrap();
        let digits = Key::of_text(b" 0x7369787465656e206c65747465727321\r\n").unwrap();
        assert_eq!(plain.sign(&[b"x"]), digits.sign(&[b"x"]));
        assert_eq!(Key::of_text(b"short").unwrap_err(), KeyError::Short(5));
        assert_eq!(Key::of_text(b"0x123").unwrap_err(), KeyError::Digits);
        assert_eq!(
            Key::of_text(b"0x+1+2+3+4+5+6+7+8+9+0+1+2+3+4+5+6").unwrap_err(),
            KeyError::Digits
        );
        assert_eq!(format!("{plain:?}"), "Key(…)");
    }
}
