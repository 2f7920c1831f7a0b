//! Fields at fixed places of a packet.

/// The bytes from `at` on, where a caller has checked that they are there; zeros where not.
#[must_use]
pub fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
}

/// Writes where there is room, which a caller has checked; nothing where there is none.
pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}
