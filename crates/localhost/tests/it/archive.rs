//! Archives of hosts that no host can be: refused with one error, or read without the parts that are too large.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tailtrim_host::{Unread, limits};
use tailtrim_lint::Running;
use tailtrim_localhost::inspect::open;
use tempfile::TempDir;

/// An archive of files by path and content, as `audit --capture` writes it.
fn tar(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let patterns =
        ("tailtrim/patterns".to_owned(), b"/proc/cmdline\n/sys/class/net/*/operstate\n".to_vec());
    for (path, content) in files.into_iter().chain([patterns]) {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, content.as_slice()).unwrap();
    }
    archive.into_inner().unwrap()
}

fn written(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn refused(path: &Path) -> String {
    open(path).err().unwrap().to_string()
}

fn interfaces(count: usize) -> impl Iterator<Item = (String, Vec<u8>)> {
    (0..count).map(|number| (format!("sys/class/net/eth{number}/operstate"), Vec::new()))
}

fn words() -> Vec<u8> {
    (0..100_000).flat_map(|word| format!("isolcpus={word} ").into_bytes()).collect()
}

#[test]
fn a_boot_line_that_no_kernel_takes_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let archive = written(&folder, "host.tar", &tar([("proc/cmdline".to_owned(), words())]));
    let below = folder.path().join("root");
    fs::create_dir_all(below.join("proc")).unwrap();
    fs::write(below.join("proc/cmdline"), words()).unwrap();
    for path in [archive, below] {
        let tree = open(&path).unwrap();
        let told = tree.read("/proc/cmdline").unwrap_err().to_string();
        assert!(told.starts_with("/proc/cmdline: longer than 4097 bytes"), "{told}");
        let running = Running::read(tree.as_ref());
        assert_eq!(running.line, None);
        assert!(running.unread.iter().any(|why| why.contains("longer than 4097")));
    }
    let longest = [vec![b'x'; limits::BOOT_LINE - 1], b"\n".to_vec()].concat();
    let archive =
        written(&folder, "long.tar", &tar([("proc/cmdline".to_owned(), longest.clone())]));
    assert_eq!(open(&archive).unwrap().read("/proc/cmdline").unwrap(), longest);
}

#[test]
fn more_interfaces_than_a_host_has_are_not_gone_through() {
    let folder = tempfile::tempdir().unwrap();
    let archive = written(&folder, "many.tar", &tar(interfaces(300_000)));
    assert!(refused(&archive).contains("more than 150000 files"));
    let archive = written(&folder, "more.tar", &tar(interfaces(limits::NAMES + 1)));
    let tree = open(&archive).unwrap();
    assert!(matches!(tree.list("/sys/class/net"), Err(Unread::Broken { problem, .. })
        if problem.starts_with("more than 32768 names")));
    let archive = written(&folder, "some.tar", &tar(interfaces(1_000)));
    assert_eq!(open(&archive).unwrap().list("/sys/class/net").unwrap().len(), 1_000);
}

#[test]
fn a_file_that_no_capture_can_be_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.tar");
    File::create(&path).unwrap().set_len(200 << 20).unwrap();
    let told = refused(&path);
    assert!(told.contains("more than 160 MiB"), "{told}");
    // And one that becomes one once it is decompressed.
    let many = (0..200).map(|number| (format!("proc/irq/{number}/x"), vec![0; 1 << 20]));
    let bytes = zstd::encode_all(&tar(many)[..], 1).unwrap();
    assert!(bytes.len() < 1 << 20);
    let bomb = written(&folder, "bomb.tar.zst", &bytes);
    let told = refused(&bomb);
    assert!(told.contains("more than 160 MiB"), "{told}");
}

#[test]
fn content_that_is_too_long_or_too_deep_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let page = "sys/class/net/eth0/operstate".to_owned();
    let archive = written(&folder, "page.tar", &tar([(page, vec![b'x'; 100_000])]));
    let told = open(&archive).unwrap().read("/sys/class/net/eth0/operstate").unwrap_err();
    assert!(told.to_string().contains(": longer than 65536 bytes"));
    let deep = "sys/".repeat(40) + "x";
    let archive = written(&folder, "deep.tar", &tar([(deep, Vec::new())]));
    assert!(refused(&archive).contains("42 names, expected at most 4096 and 32"));
}

#[test]
fn compression_is_recognised_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let plain = tar([("proc/cmdline".to_owned(), b"quiet\n".to_vec())]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let skippable =
        [b"\x50\x2a\x4d\x18\x01\0\0\0x".to_vec(), zstd::encode_all(&plain[..], 1).unwrap()];
    for (name, bytes) in [
        ("a.tar.zst", plain.clone()),
        ("b.tar.gz", gzip.finish().unwrap()),
        ("c.tar", skippable.concat()),
    ] {
        let tree = open(&written(&folder, name, &bytes)).unwrap();
        assert_eq!(tree.text("/proc/cmdline").unwrap(), "quiet", "{name}");
    }
}

/// An archive of one file whose path is as `packed`, which this library would not write, and a list of patterns.
fn tar_of(packed: &str) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_size(5);
    header.as_gnu_mut().unwrap().name[..packed.len()].copy_from_slice(packed.as_bytes());
    header.set_cksum();
    let mut archive = tar::Builder::new(Vec::new());
    archive.append(&header, b"quiet".as_slice()).unwrap();
    [&archive.into_inner().unwrap()[..1024], &tar([])].concat()
}

#[test]
fn a_path_is_the_same_however_it_was_packed() {
    let folder = tempfile::tempdir().unwrap();
    for packed in
        ["proc/cmdline", "./proc/cmdline", "/proc/cmdline", "proc//./cmdline", ".//proc/cmdline/"]
    {
        let tree = open(&written(&folder, "host.tar", &tar_of(packed))).unwrap();
        assert_eq!(tree.read("/proc/cmdline").unwrap(), b"quiet", "{packed}");
        assert_eq!(tree.list("/").unwrap(), ["proc", "tailtrim"], "{packed}");
    }
    let told = refused(&written(&folder, "host.tar", &tar_of("proc/../../etc/shadow")));
    assert!(told.contains("proc/../../etc/shadow: a path that goes up"), "{told}");
}
