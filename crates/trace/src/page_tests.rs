//! Pages made by hand; recorded ones are in `tests/trace.rs`.

use super::*;
use proptest::prelude::*;

const LAYOUT: Layout = Layout { commit_offset: 8, commit_size: 8, data_offset: 16 };

fn page(start: u64, flags: u64, words: &[u32]) -> Vec<u8> {
    let mut bytes = start.to_le_bytes().to_vec();
    bytes.extend(((words.len() as u64 * 4) | flags).to_le_bytes());
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes
}

fn entries(bytes: &[u8]) -> Vec<(u64, usize)> {
    let page = Page::new(LAYOUT, bytes).unwrap();
    page.entries().map(|entry| entry.map(|e| (e.stamp, e.record.len())).unwrap()).collect()
}

#[test]
fn every_kind_of_entry() {
    let words = [
        1, // 4 bytes, no ticks later
        7,
        5 << 5, // length in a word of its own: 4 + 6 bytes, to the next word
        10,
        8,
        9,
        3 << 5 | TIME_EXTEND, // 2 * 2^27 + 3 ticks
        2,
        1 << 5 | PADDING, // a discarded record of 8 bytes
        8,
        0,
        2 << 5 | 2, // 8 bytes
        1,
        2,
        PADDING, // the rest is empty
        77,
    ];
    let late = 100 + 5 + (2 << 27) + 3 + 1 + 2;
    assert_eq!(entries(&page(100, 0, &words)), [(100, 4), (105, 6), (late, 8)]);
}

#[test]
fn an_absolute_time_keeps_the_upper_bits() {
    let before = 3 << 59 | 1_000;
    let words = [9 << 5 | TIME_STAMP, 2, 1, 0];
    assert_eq!(entries(&page(before, 0, &words)), [(3 << 59 | 2 << 27 | 9, 4)]);
    // It went over the 59 bits meanwhile.
    let before = (3 << 59) + (1 << 58);
    assert_eq!(entries(&page(before, 0, &words)), [(4 << 59 | 2 << 27 | 9, 4)]);
}

#[test]
fn lost_entries_are_told() {
    let mut bytes = page(1, MISSED | MISSED_STORED | 0xffff_ffff << 32, &[1, 7]);
    bytes.extend(14_045_u64.to_le_bytes());
    assert_eq!(Page::new(LAYOUT, &bytes).unwrap().missed, Some(Missed::Count(14_045)));
    assert_eq!(entries(&bytes), [(1, 4)]);
    let uncounted = page(1, MISSED, &[1, 7]);
    assert_eq!(Page::new(LAYOUT, &uncounted).unwrap().missed, Some(Missed::Some));
    assert_eq!(Page::new(LAYOUT, &page(1, 0, &[1, 7])).unwrap().missed, None);
}

#[test]
fn damage_is_told_and_ends_the_page() {
    assert_eq!(Page::new(LAYOUT, &[0; 15]).unwrap_err(), PageError::Short(15));
    let long = page(1, 100, &[0]);
    assert!(matches!(Page::new(LAYOUT, &long), Err(PageError::Length { there: 4, .. })));
    for words in [&[28][..], &[0, 3], &[0, u32::MAX], &[TIME_EXTEND], &[1 << 5 | PADDING, u32::MAX]]
    {
        let bytes = page(1, 0, &[&[1, 7][..], words].concat());
        let found: Vec<_> = Page::new(LAYOUT, &bytes).unwrap().entries().collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], Err(PageError::Entry { at: 8, there: 8 + words.len() * 4 }));
    }
}

#[test]
fn a_layout_of_another_kind_is_refused() {
    assert_eq!(
        Layout::parse("\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"),
        Err(LayoutError("commit"))
    );
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        if let Ok(page) = Page::new(LAYOUT, &bytes) {
            // Every entry takes four bytes at least, so that this ends.
            prop_assert!(page.entries().count() <= bytes.len() / 4 + 1);
        }
    }

    #[test]
    fn any_entries(words in proptest::collection::vec(prop_oneof![any::<u32>(), 0_u32..200], 0..128), start: u64) {
        let bytes = page(start, 0, &words);
        let read = Page::new(LAYOUT, &bytes).unwrap();
        prop_assert!(read.entries().count() <= words.len() + 1);
    }
}
