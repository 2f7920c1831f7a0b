//! Programs that are bound to an interface, and ask its driver for the NIC's stamp of a frame.

use super::{Object, said};
use aya::Ebpf;
use aya::maps::Map;
use aya_obj::btf::{Btf, BtfKind};
use aya_obj::generated::bpf_insn;
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use tailtrim_sys::bpf::{self, Instruction};

/// Name of the question in the kernel, since Linux 6.3.
const QUESTION: &str = "bpf_xdp_metadata_rx_timestamp";
/// Call of it in a compiled file: `NIC_STAMP` in `bpf/kernel.h`.
const PLACE: i32 = 0x7fff_0001;
/// `BPF_JMP | BPF_CALL`.
const CALL: u8 = 0x85;
/// `BPF_PSEUDO_KFUNC_CALL`.
const OF_KERNEL: u8 = 2;

/// Loads a program of a file, whose maps are loaded already, for one interface.
pub fn load(
    object: &Object,
    maps: &Ebpf,
    program: &str,
    interface: u32,
    pieces: bool,
) -> io::Result<OwnedFd> {
    let mut parsed = aya_obj::Object::parse(object.0).map_err(said)?;
    let files: Vec<(String, RawFd, aya_obj::Map)> = maps
        .maps()
        .filter_map(|(name, map)| {
            Some((name.to_owned(), file(map)?, parsed.maps.get(name)?.clone()))
        })
        .collect();
    let sections: HashSet<usize> = parsed.functions.keys().map(|(section, _)| *section).collect();
    let known = files.iter().map(|(name, file, map)| (name.as_str(), *file, map));
    parsed.relocate_maps(known, &sections).map_err(said)?;
    let found = parsed.programs.get(program).map(aya_obj::Program::function_key);
    let function = found.and_then(|key| parsed.functions.get(&key));
    let function = function.ok_or_else(|| super::missing(program))?;
    let question = question()?;
    let code: Vec<_> = function.instructions.iter().map(|one| written(*one, question)).collect();
    bpf::load_bound_xdp(&code, &parsed.license, interface, pieces)
}

fn file(map: &Map) -> Option<RawFd> {
    match map {
        Map::Array(map) | Map::XskMap(map) => Some(map.fd().as_fd().as_raw_fd()),
        _ => None,
    }
}

/// The kernel's number of the question.
fn question() -> io::Result<u32> {
    let lacks = || {
        let told = "this kernel gives programs no stamps of NICs, expected Linux 6.3 with CONFIG_DEBUG_INFO_BTF";
        io::Error::new(io::ErrorKind::Unsupported, told)
    };
    let types = Btf::from_sys_fs().map_err(|_| lacks())?;
    types.id_by_type_name_kind(QUESTION, BtfKind::Func).map_err(|_| lacks())
}

/// An instruction as the kernel takes it, with the number of the question in its place.
fn written(mut one: bpf_insn, question: u32) -> Instruction {
    if one.code == CALL && one.src_reg() == 0 && one.imm == PLACE {
        one.set_src_reg(OF_KERNEL);
        one.imm = question.cast_signed();
    }
    let (to, from) = (one.dst_reg(), one.src_reg());
    let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
    let ([a, b], [c, d, e, f]) = (one.off.to_ne_bytes(), one.imm.to_ne_bytes());
    [one.code, registers, a, b, c, d, e, f]
}
