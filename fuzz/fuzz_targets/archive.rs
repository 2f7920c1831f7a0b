//! A captured host of unknown origin: it is refused, or everything in it can be listed and read. The audit's checks of
//! it are the target `host`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailtrim_fuzz::with_tar_sums;
use tailtrim_host::{Tree, Unread};
use tailtrim_localhost::inspect::read_capture;

/// An archive of a few kilobytes has fewer files and directories.
const MOST: usize = 1_000;

fuzz_target!(|data: &[u8]| {
    match read_capture(with_tar_sums(data).as_slice()) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(None) => {}
        Ok(Some(tree)) => walk(tree.as_ref()),
    }
});

fn walk(tree: &dyn Tree) {
    let mut left = vec!["/".to_owned()];
    let mut seen = 0;
    while let Some(path) = left.pop() {
        seen += 1;
        assert!(seen < MOST, "{path}: more than was packed");
        if let Ok(names) = tree.list(&path) {
            assert!(names.is_sorted());
            let path = path.trim_end_matches('/');
            left.extend(names.iter().map(|name| format!("{path}/{name}")));
        }
        let missing = |why| matches!(why, Unread::Missing { .. });
        if tree.read(&path).is_err_and(missing) {
            assert!(tree.list(&path).is_ok() || tree.link(&path).is_ok(), "{path}: listed and missing");
        }
    }
}
