//! Which name was meant.

/// Edit distance: letters inserted, left out, replaced, or swapped with the next one (Damerau).
/// Case, `-` and `_` make no difference.
pub(super) fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (letters(left), letters(right));
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut this = vec![row + 1];
        for (column, b) in right.iter().enumerate() {
            let mut best = (last[column] + usize::from(a != b))
                .min(last[column + 1] + 1)
                .min(this[column] + 1);
            let swapped = row > 0 && column > 0 && left[row - 1] == *b && right[column - 1] == *a;
            if swapped {
                let earlier: &Vec<usize> = &before;
                best = best.min(earlier[column - 1] + 1);
            }
            this.push(best);
        }
        before = std::mem::replace(&mut last, this);
    }
    last[right.len()]
}

fn letters(text: &str) -> Vec<char> {
    let plain = |letter: char| if letter == '-' { '_' } else { letter.to_ascii_lowercase() };
    text.chars().map(plain).collect()
}

/// The nearest of some names, the first of equals; `None` where none is near enough to be a slip.
pub(super) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let most = slips(length);
    let near = names.filter(|name| name.len().abs_diff(length) <= most);
    let known = near.map(|name| (distance(word, name), name));
    // A short name is within a slip or two of many: three of four letters must be right.
    let slip = known.filter(|(distance, name)| *distance <= most.min(slips(name.len())));
    slip.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

fn slips(length: usize) -> usize {
    match length {
        0..=2 => 0,
        3..=7 => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_keyboard() {
        for (wrong, right, slips) in [
            ("nosoftlookup", "nosoftlockup", 1),
            ("pcie_asmp", "pcie_aspm", 1),
            ("isolcpu", "isolcpus", 1),
            ("NOHZ-full", "nohz_full", 0),
            ("relaible", "reliable", 1),
            ("", "abc", 3),
        ] {
            assert_eq!(distance(wrong, right), slips, "{wrong}");
            assert_eq!(distance(right, wrong), slips, "{wrong}");
        }
    }

    #[test]
    fn what_is_near_enough() {
        let names = ["nmi_watchdog", "mce", "psi", "nohz_full", "nohz"];
        let meant = |word| nearest(word, names.into_iter());
        assert_eq!(meant("nmiwatchdog"), Some("nmi_watchdog"));
        assert_eq!(meant("nohzfull"), Some("nohz_full"));
        assert_eq!(meant("mec"), Some("mce"));
        assert_eq!(meant("xy"), None);
        assert_eq!(meant("splash"), None);
    }
}
