//! Capabilities of this process, taken away while it has one thread: they belong to threads, and those that are
//! started afterwards have no more than the first one.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};
use std::io;

/// Makes this process, and programs that it executes, never gain privileges: for verbs that keep their own privileges
/// until they end. The later steps may not be allowed to a user; by the first one executed programs gain nothing even
/// then.
pub fn gain_nothing() {
    // It works on every Linux from 3.5 on.
    let _ = never_gain();
    let _ = empty_bounding_set(CapabilitySet::empty());
    let _ = clear_ambient_set();
}

/// Makes this process, and programs that it executes, never gain privileges.
pub fn never_gain() -> io::Result<()> {
    Ok(set_no_new_privs(true)?)
}

/// Keeps of the capabilities only these: those of this thread, and those that it would hand on.
pub fn keep(needed: CapabilitySet) -> io::Result<()> {
    clear_ambient_set()?;
    let now = capabilities(None)?;
    let left = CapabilitySets {
        effective: now.effective & needed,
        permitted: now.permitted & needed,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, left)?)
}

/// Leaves in the bounding set only these. Needs CAP_SETPCAP, and with it mostly root.
pub fn empty_bounding_set(but: CapabilitySet) -> io::Result<()> {
    // The kernel may have more of them than any list knows.
    for capability in (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit)) {
        match capability_is_in_bounding_set(capability) {
            Ok(true) if !but.contains(capability) => {
                remove_capability_from_bounding_set(capability)?;
            }
            Ok(_) => {}
            // The last one was before.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn clear_ambient_set() -> io::Result<()> {
    match clear_ambient_capability_set() {
        // Before Linux 4.3 there was none.
        Err(Errno::INVAL) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
