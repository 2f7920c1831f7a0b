//! Questions to a driver by `SIOCETHTOOL`, in structures of 32-bit words that begin with the command.
//!
//! Commands and structures: `<linux/ethtool.h>`. The kernel writes as much as a command's structure has, wherever that
//! ends: how long it is stands here, with the command.

use super::interface::exchange;
use std::io;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const GET_STRINGS: u32 = 0x1b;
const GET_SET_INFO: u32 = 0x37;
const GET_INDIRECTION: u32 = 0x38;
const GET_FEATURES: u32 = 0x3a;
/// `ETH_SS_FEATURES`: the set of the names of features.
const FEATURES: u32 = 4;
/// Words of a name (`ETH_GSTRING_LEN`), and of the states of 32 features (`struct ethtool_get_features_block`).
const NAME: usize = 8;
const BLOCK: usize = 4;
/// More entries of an indirection table, and more features, than any interface has.
const MOST_ENTRIES: usize = 1 << 16;
const MOST_FEATURES: usize = 1_024;

/// A command whose structure has so many words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command<const WORDS: usize>(u32);

/// `struct ethtool_drvinfo`
pub(crate) const DRIVER: Command<49> = Command(0x03);
/// `struct ethtool_coalesce`
pub(crate) const COALESCE: Command<23> = Command(0x0e);
/// `struct ethtool_ringparam`
pub(crate) const RINGS: Command<9> = Command(0x10);
/// `struct ethtool_pauseparam`
pub(crate) const PAUSE: Command<4> = Command(0x12);
/// `struct ethtool_channels`
pub(crate) const CHANNELS: Command<9> = Command(0x3c);
/// `struct ethtool_ts_info`
pub(crate) const TIMESTAMPING: Command<11> = Command(0x41);
/// `struct ethtool_eee`
pub(crate) const EEE: Command<10> = Command(0x44);

/// Asks an interface.
pub(crate) fn get<const WORDS: usize>(
    interface: &str,
    command: Command<WORDS>,
) -> io::Result<[u32; WORDS]> {
    let mut words = [0; WORDS];
    words[0] = command.0;
    // SAFETY: the command's structure has so many words.
    unsafe { ask(interface, &mut words) }?;
    Ok(words)
}

/// The queue of each entry of the table by which receive-side scaling chooses one.
pub(crate) fn indirection(interface: &str) -> io::Result<Vec<u32>> {
    let mut size = [GET_INDIRECTION, 0];
    // SAFETY: asked for no entries, the kernel writes how many there are, the second word.
    unsafe { ask(interface, &mut size) }?;
    let entries = size[1] as usize;
    if entries == 0 || entries > MOST_ENTRIES {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let mut words = vec![0; 2 + entries];
    (words[0], words[1]) = (GET_INDIRECTION, size[1]);
    // SAFETY: the second word says for how many entries there is room; the kernel refuses if it has more.
    unsafe { ask(interface, &mut words) }?;
    Ok(words.split_off(2))
}

/// The names of the features of an interface, and of each 32 of them the bits: available, requested, active, never
/// changed.
pub(crate) fn features(interface: &str) -> io::Result<(Vec<[u32; NAME]>, Vec<[u32; BLOCK]>)> {
    // Command, reserved, a mask of sets in two words, and for each set in it how many names it has.
    let mut info = [GET_SET_INFO, 0, 1 << FEATURES, 0, 0];
    // SAFETY: for the one set that is asked for, the kernel writes one number.
    unsafe { ask(interface, &mut info) }?;
    let count = info[4] as usize;
    if info[2] == 0 || count == 0 || count > MOST_FEATURES {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let mut names = vec![0; 3 + count * NAME];
    (names[0], names[1], names[2]) = (GET_STRINGS, FEATURES, info[4]);
    // SAFETY: the kernel writes all names of the set, whatever room there is. It has said how many these are, a number
    // that is built into it (`netdev_features_strings`).
    unsafe { ask(interface, &mut names) }?;
    let blocks = count.div_ceil(32);
    let mut states = vec![0; 2 + blocks * BLOCK];
    (states[0], states[1]) = (GET_FEATURES, blocks as u32);
    // SAFETY: the second word says for how many blocks there is room, and the kernel writes no more.
    unsafe { ask(interface, &mut states) }?;
    Ok((names[3..].as_chunks().0.to_vec(), states[2..].as_chunks().0.to_vec()))
}

/// # Safety
/// The kernel writes no more words than these for the command in the first of them.
unsafe fn ask(interface: &str, words: &mut [u32]) -> io::Result<()> {
    // SAFETY: the caller's; any bits are a word.
    unsafe { exchange(interface, SIOCETHTOOL, words.as_mut_ptr().cast()) }
}
