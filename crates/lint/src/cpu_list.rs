//! Lists of CPUs as boot parameters take them: `all`, `N`, and groups such as `0-10:1/2`.

use std::collections::BTreeSet;
use tailtrim_host::Cpus;

/// Why a list is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    /// Something that is neither number, range nor group.
    Malformed,
    /// A range that ends before it begins.
    Backwards,
    /// A group of no CPU, or more CPUs of a group than it has.
    Group,
    /// A CPU that the machine does not have.
    OutOfRange(u32),
}

/// Where a list stops being one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListError {
    pub(super) problem: Problem,
    /// Bytes of the part that is wrong.
    pub(super) at: usize,
    pub(super) end: usize,
    /// CPUs listed before that part.
    pub(super) before: Cpus,
}

/// Which words a kernel knows beside numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Words {
    /// `N`, the last CPU: since 5.13.
    pub(super) last: bool,
    /// `all`: since 5.14.
    pub(super) all: bool,
}

/// Parse as `bitmap_parselist()` (lib/bitmap.c) does for `bits` CPUs.
pub(super) fn parse(text: &str, bits: u32, words: Words) -> Result<Cpus, ListError> {
    let mut cpus = BTreeSet::new();
    let mut at = 0;
    let between = |byte: u8| byte == b',' || byte.is_ascii_whitespace();
    while at < text.len() {
        if text.as_bytes().get(at).is_some_and(|byte| between(*byte)) {
            at += 1;
            continue;
        }
        let rest = &text[at..];
        let end = at + rest.bytes().position(between).unwrap_or(rest.len());
        match region(&text[at..end], bits, words) {
            Ok(region) => cpus.extend(region),
            Err(problem) => {
                return Err(ListError { problem, at, end, before: cpus.into_iter().collect() });
            }
        }
        at = end;
    }
    Ok(cpus.into_iter().collect())
}

fn region(
    text: &str,
    bits: u32,
    words: Words,
) -> Result<impl Iterator<Item = u32> + use<>, Problem> {
    let last = bits.saturating_sub(1);
    let number = |text: &str| match text {
        "N" if words.last => Ok(last),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty() => {
            digits.parse().map_err(|_| Problem::OutOfRange(u32::MAX))
        }
        _ => Err(Problem::Malformed),
    };
    let (range, group) = match text.split_once(':') {
        Some((range, group)) => (range, Some(group.split_once('/').ok_or(Problem::Malformed)?)),
        None => (text, None),
    };
    let (first, end) = if words.all && range.eq_ignore_ascii_case("all") {
        (0, last)
    } else {
        match range.split_once('-') {
            Some((first, end)) => (number(first)?, number(end)?),
            // A group needs a range.
            None if group.is_some() => return Err(Problem::Malformed),
            None => (number(range)?, number(range)?),
        }
    };
    let (used, size) = match group {
        Some((used, size)) => (number(used)?, number(size)?),
        None => (1, 1),
    };
    if first > end {
        return Err(Problem::Backwards);
    }
    if size == 0 || used > size {
        return Err(Problem::Group);
    }
    if end >= bits {
        return Err(Problem::OutOfRange(end));
    }
    Ok((first..=end).filter(move |cpu| (cpu - first) % size < used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: Words = Words { last: true, all: true };

    #[test]
    fn lists_as_the_documentation_has_them() {
        for (text, cpus) in [
            ("1,2,10-20,100-1000:2/25", None),
            ("0-10:1/2", Some("0,2,4,6,8,10")),
            ("0-15:2/4", Some("0-1,4-5,8-9,12-13")),
            ("all", Some("0-15")),
            ("ALL:1/4", Some("0,4,8,12")),
            ("8-N", Some("8-15")),
            ("N", Some("15")),
            ("", Some("")),
            (",,3,", Some("3")),
        ] {
            let parsed = parse(text, 16, ALL).ok().map(|cpus| cpus.to_string());
            assert_eq!(parsed.as_deref(), cpus, "{text}");
        }
    }

    #[test]
    fn where_a_list_ends_to_be_one() {
        for (text, problem, at, before) in [
            ("1-7", Problem::OutOfRange(7), 0, ""),
            ("0,2,9", Problem::OutOfRange(9), 4, "0,2"),
            ("3-1", Problem::Backwards, 0, ""),
            ("1,managed_irq", Problem::Malformed, 2, "1"),
            ("0-3:3/2", Problem::Group, 0, ""),
            ("0-3:1/0", Problem::Group, 0, ""),
            ("1\u{2013}3", Problem::Malformed, 0, ""),
            ("2:1/2", Problem::Malformed, 0, ""),
            ("99999999999", Problem::OutOfRange(u32::MAX), 0, ""),
        ] {
            let error = parse(text, 4, ALL).unwrap_err();
            assert_eq!((error.problem, error.at), (problem, at), "{text}");
            assert_eq!(error.before.to_string(), before, "{text}");
        }
    }

    #[test]
    fn words_came_one_after_the_other() {
        let old = Words { last: false, all: false };
        for text in ["2-N", "N", "all", "all:1/2"] {
            assert_eq!(parse(text, 4, old).unwrap_err().problem, Problem::Malformed, "{text}");
        }
        assert!(parse("2-N", 4, Words { last: true, ..old }).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_a_list_or_not(text in "[0-9N,:/ al\u{2013}-]{0,20}", bits in 1_u32..100) {
            if let Ok(cpus) = parse(&text, bits, ALL) {
                prop_assert!(cpus.iter().all(|cpu| cpu < bits));
            }
        }
    }
}
