//! Instructions of BPF by name, and jumps to places that are known later.
//!
//! Encoding: RFC 9669.

use crate::sys::bpf::Instruction;

/// Bytes that an instruction reads or writes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Size {
    Byte = 0x10,
    Half = 0x08,
    Word = 0x00,
    Double = 0x18,
}

/// What is calculated; of 64 bits.
#[derive(Debug, Clone, Copy)]
pub(super) enum Op {
    Add = 0x00,
    Subtract = 0x10,
    Multiply = 0x20,
    Divide = 0x30,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Xor = 0xa0,
    Set = 0xb0,
}

/// When to jump; numbers are without sign.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    Equal = 0x10,
    NotEqual = 0x50,
    Greater = 0x20,
    AtLeast = 0x30,
    Less = 0xa0,
}

/// A place to jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(usize);

const ALU64: u8 = 0x07;
const JUMP: u8 = 0x05;
const JUMP_WORD: u8 = 0x06;
const BY_REGISTER: u8 = 0x08;
const LOAD: u8 = 0x61;
const STORE_VALUE: u8 = 0x62;
const STORE: u8 = 0x63;
/// What the second word of a wide instruction's register means.
const MAP_FILE: u8 = 1;
const MAP_VALUE: u8 = 2;

/// A program under construction.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    text: Vec<Instruction>,
    /// Where each label is, once that is known.
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Assembly {
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The label is here.
    pub(super) fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.text.len());
    }

    fn push(&mut self, code: u8, to: u8, from: u8, offset: i16, value: i32) {
        let registers =
            if cfg!(target_endian = "little") { to | from << 4 } else { to << 4 | from };
        self.text.push(Instruction { code, registers, offset, value });
    }

    /// `to` becomes `to` op `value`.
    pub(super) fn calculate(&mut self, op: Op, to: u8, value: i32) {
        self.push(ALU64 | op as u8, to, 0, 0, value);
    }

    /// `to` becomes `to` op `from`.
    pub(super) fn combine(&mut self, op: Op, to: u8, from: u8) {
        self.push(ALU64 | BY_REGISTER | op as u8, to, from, 0, 0);
    }

    /// Keeps the lower 32 bits.
    pub(super) fn truncate(&mut self, to: u8) {
        self.push(0xbc, to, to, 0, 0);
    }

    /// Turns a number of so many bits into the network's order.
    pub(super) fn network_order(&mut self, to: u8, bits: i32) {
        self.push(0xdc, to, 0, 0, bits);
    }

    /// A value of 64 bits.
    pub(super) fn wide(&mut self, to: u8, value: u64) {
        self.two(to, 0, value as i32, (value >> 32) as i32);
    }

    /// A map, by its descriptor.
    pub(super) fn map(&mut self, to: u8, file: i32) {
        self.two(to, MAP_FILE, file, 0);
    }

    /// The address of a byte in the only value of a map.
    pub(super) fn map_value(&mut self, to: u8, file: i32, byte: i32) {
        self.two(to, MAP_VALUE, file, byte);
    }

    fn two(&mut self, to: u8, kind: u8, low: i32, high: i32) {
        self.push(0x18, to, kind, 0, low);
        self.push(0, 0, 0, 0, high);
    }

    pub(super) fn load(&mut self, size: Size, to: u8, from: u8, offset: i16) {
        self.push(LOAD | size as u8, to, from, offset, 0);
    }

    pub(super) fn store(&mut self, size: Size, to: u8, offset: i16, from: u8) {
        self.push(STORE | size as u8, to, from, offset, 0);
    }

    pub(super) fn store_value(&mut self, size: Size, to: u8, offset: i16, value: i32) {
        self.push(STORE_VALUE | size as u8, to, 0, offset, value);
    }

    /// Adds `from` to the 64 bits at `to`, whoever does so at the same time on other CPUs.
    pub(super) fn add_atomically(&mut self, to: u8, offset: i16, from: u8) {
        self.push(0xdb, to, from, offset, 0);
    }

    pub(super) fn call(&mut self, helper: i32) {
        self.push(0x85, 0, 0, 0, helper);
    }

    pub(super) fn jump(&mut self, to: Label) {
        self.jumps.push((self.text.len(), to));
        self.push(JUMP, 0, 0, 0, 0);
    }

    /// Jumps when a register is so compared with a value, which is extended with its sign.
    pub(super) fn jump_if(&mut self, register: u8, when: When, value: i32, to: Label) {
        self.jumps.push((self.text.len(), to));
        self.push(JUMP | when as u8, register, 0, 0, value);
    }

    /// As [`jump_if`](Self::jump_if), for the lower 32 bits only.
    pub(super) fn jump_if_word(&mut self, register: u8, when: When, value: u32, to: Label) {
        self.jumps.push((self.text.len(), to));
        self.push(JUMP_WORD | when as u8, register, 0, 0, value.cast_signed());
    }

    pub(super) fn jump_if_than(&mut self, register: u8, when: When, other: u8, to: Label) {
        self.jumps.push((self.text.len(), to));
        self.push(JUMP | BY_REGISTER | when as u8, register, other, 0, 0);
    }

    pub(super) fn exit(&mut self, answer: i32) {
        self.calculate(Op::Set, 0, answer);
        self.push(0x95, 0, 0, 0, 0);
    }

    /// The program, without what is never reached, since the kernel refuses programs that have such; `None` when
    /// a label is nowhere or a jump too far.
    pub(super) fn finish(self) -> Option<Vec<Instruction>> {
        let Self { text, labels, jumps } = self;
        let mut targets = vec![None; text.len()];
        for (at, label) in jumps {
            targets[at] = Some(labels[label.0]?);
        }
        let reached = reached(&text, &targets);
        // Where each instruction comes to stand.
        let mut places = Vec::with_capacity(text.len() + 1);
        let mut place = 0_i64;
        for reached in &reached {
            places.push(place);
            place += i64::from(*reached);
        }
        // What follows the program, where it is the first part of another.
        places.push(place);
        let mut finished = Vec::new();
        for (at, mut instruction) in text.into_iter().enumerate().filter(|(at, _)| reached[*at]) {
            if let Some(target) = targets[at] {
                // From the instruction behind the jump.
                instruction.offset = i16::try_from(places[target] - places[at] - 1).ok()?;
            }
            finished.push(instruction);
        }
        Some(finished)
    }
}

/// Which instructions are reached from the first.
fn reached(text: &[Instruction], targets: &[Option<usize>]) -> Vec<bool> {
    const ALWAYS: u8 = JUMP;
    const EXIT: u8 = 0x95;
    const WIDE: u8 = 0x18;
    let mut reached = vec![false; text.len()];
    let mut starts = vec![0];
    while let Some(mut at) = starts.pop() {
        while at < text.len() && !reached[at] {
            reached[at] = true;
            starts.extend(targets[at]);
            match text[at].code {
                ALWAYS | EXIT => break,
                // Its second half belongs to it.
                WIDE => {
                    reached[at + 1] = true;
                    at += 2;
                }
                _ => at += 1,
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_encoded_as_the_standard_says() {
        let mut assembly = Assembly::default();
        let end = assembly.label();
        assembly.load(Size::Half, 1, 7, 12);
        assembly.jump_if(1, When::Equal, 8, end);
        assembly.calculate(Op::Add, 2, -1);
        assembly.combine(Op::Divide, 3, 4);
        assembly.place(end);
        assembly.exit(2);
        let text = assembly.finish().unwrap();
        let codes: Vec<u8> = text.iter().map(|instruction| instruction.code).collect();
        assert_eq!(codes, [0x69, 0x15, 0x07, 0x3f, 0xb7, 0x95]);
        assert_eq!((text[0].offset, text[1].offset, text[2].value), (12, 2, -1));
        let mut assembly = Assembly::default();
        let (end, unused) = (assembly.label(), assembly.label());
        assembly.jump_if(1, When::Equal, 8, end);
        assembly.wide(1, 7);
        assembly.jump(end);
        assembly.place(unused);
        assembly.exit(1);
        assembly.place(end);
        assembly.exit(2);
        let text = assembly.finish().unwrap();
        let codes: Vec<u8> = text.iter().map(|instruction| instruction.code).collect();
        assert_eq!(codes, [0x15, 0x18, 0, 0x05, 0xb7, 0x95]);
        assert_eq!((text[0].offset, text[3].offset), (3, 0));
        let mut unfinished = Assembly::default();
        let nowhere = unfinished.label();
        unfinished.jump(nowhere);
        assert_eq!(unfinished.finish(), None);
    }
}
