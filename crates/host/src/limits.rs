//! Limits on the size of a host's files. A captured host that has more was not written by a kernel: a file that is too
//! large is refused before it is read, so that the time for the rest stays short.

/// Bytes of the boot line: the largest `COMMAND_LINE_SIZE` of all architectures (2,048 on x86 and 64-bit Arm, 4,096 on
/// LoongArch and s390), with the end of its line.
pub const BOOT_LINE: usize = 4_097;

/// Bytes of a file of sysfs: the largest page that Linux has (64 KiB; 4 KiB on x86).
const SYSFS: u64 = 64 << 10;

/// Bytes of a list of file names that a capture has of itself.
const PATTERNS: u64 = 64 << 10;

/// Bytes of any other file. `/proc/interrupts` of 1,024 CPUs and 1,000 interrupts has 11 MB.
const OTHER: u64 = 16 << 20;

/// Bytes of all files of a capture together, and of the capture as it lies on a disk.
pub const CAPTURE: u64 = 160 << 20;

/// Files of a capture. A host of 1,024 CPUs has fewer than 100,000 that an audit reads.
pub const FILES: usize = 150_000;

/// Names in one directory: interfaces, interrupts, CPUs.
pub const NAMES: usize = 32_768;

/// Bytes of a path, as in a system call.
pub const PATH: usize = 4_096;

/// Directories above a file.
pub const DEPTH: usize = 32;

/// Largest number of bytes of a file.
#[must_use]
pub fn longest(path: &str) -> u64 {
    let page = ["/sys/devices/", "/sys/class/", "/sys/module/", "/sys/bus/", "/proc/sys/"];
    match path {
        "/proc/cmdline" => BOOT_LINE as u64,
        _ if path.starts_with("/tailtrim/patterns") => PATTERNS,
        _ if page.iter().any(|start| path.starts_with(start)) => SYSFS,
        _ => OTHER,
    }
}

/// Problem of a file that is longer, for people.
#[must_use]
pub fn too_long(path: &str) -> String {
    format!("longer than {} bytes, not a file of the kernel", longest(path))
}
