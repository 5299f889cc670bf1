//! Ranges of system call numbers to a filter program that searches them by halves.

use crate::sys::FilterInstruction;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// It goes through.
    Allow,
    /// It fails with "operation not permitted".
    Refuse,
    /// It fails with "function not implemented".
    Unknown,
    /// It is refused if the argument has any of these bits.
    RefuseBits { argument: u8, bits: u32 },
    /// It is refused if the argument is this.
    RefuseValue { argument: u8, value: u32 },
    /// It is refused unless the argument is one of these.
    AllowOnly { argument: u8, values: &'static [u32] },
    /// It is refused if the argument is the file type of a device.
    RefuseDevice { argument: u8 },
}

/// Numbers from `first` up to the next range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) first: u32,
    pub(super) verdict: Verdict,
}

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const ALLOWED: u32 = 0x7FFF_0000;
const FAILED: u32 = 0x0005_0000;
const KILLED: u32 = 0x8000_0000;

/// Offsets in what the filter reads: number, architecture, then (after the instruction pointer) the arguments.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// A filter that looks the number up in `ranges`, which begin at 0 and are in order, and ends a process
/// that calls in the manner of another architecture, whose numbers mean other things.
pub(super) fn compile(architecture: u32, ranges: &[Range]) -> Vec<FilterInstruction> {
    let mut program = vec![
        instruction(LOAD, ARCHITECTURE),
        jump(JUMP_IF_EQUAL, architecture, 1, 0),
        instruction(RETURN, KILLED),
        instruction(LOAD, NUMBER),
    ];
    program.extend(search(ranges));
    program
}

fn search(ranges: &[Range]) -> Vec<FilterInstruction> {
    if let [range] = ranges {
        return decide(range.verdict);
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let Some(boundary) = high.first() else { return refuse() };
    let low = search(low);
    let mut program = match u8::try_from(low.len()) {
        Ok(distance) => vec![jump(JUMP_IF_AT_LEAST, boundary.first, distance, 0)],
        // A conditional jump reaches 255 instructions far, an unconditional one any distance.
        Err(_) => {
            vec![jump(JUMP_IF_AT_LEAST, boundary.first, 0, 1), instruction(JUMP, low.len() as u32)]
        }
    };
    program.extend(low);
    program.extend(search(high));
    program
}

fn decide(verdict: Verdict) -> Vec<FilterInstruction> {
    match verdict {
        Verdict::Allow => allow(),
        Verdict::Refuse => refuse(),
        Verdict::Unknown => vec![instruction(RETURN, FAILED | libc::ENOSYS as u32)],
        Verdict::RefuseBits { argument, bits } => {
            vec![load(argument), jump(JUMP_IF_ANY_BIT, bits, 1, 0), ALLOW, REFUSE]
        }
        Verdict::RefuseValue { argument, value } => {
            vec![load(argument), jump(JUMP_IF_EQUAL, value, 1, 0), ALLOW, REFUSE]
        }
        Verdict::AllowOnly { argument, values } => {
            let mut program = vec![load(argument)];
            for (index, value) in values.iter().enumerate() {
                let distance = (values.len() - index) as u8;
                program.push(jump(JUMP_IF_EQUAL, *value, distance, 0));
            }
            program.extend([REFUSE, ALLOW]);
            program
        }
        Verdict::RefuseDevice { argument } => vec![
            load(argument),
            instruction(AND, libc::S_IFMT),
            jump(JUMP_IF_EQUAL, libc::S_IFCHR, 2, 0),
            jump(JUMP_IF_EQUAL, libc::S_IFBLK, 1, 0),
            ALLOW,
            REFUSE,
        ],
    }
}

const ALLOW: FilterInstruction = instruction(RETURN, ALLOWED);
const REFUSE: FilterInstruction = instruction(RETURN, FAILED | libc::EPERM as u32);

fn allow() -> Vec<FilterInstruction> {
    vec![ALLOW]
}

fn refuse() -> Vec<FilterInstruction> {
    vec![REFUSE]
}

/// Loads the low half of an argument; every argument that is looked at has no more than that.
fn load(argument: u8) -> FilterInstruction {
    let high_first = if cfg!(target_endian = "big") { 4 } else { 0 };
    instruction(LOAD, ARGUMENTS + 8 * u32::from(argument) + high_first)
}

const fn instruction(code: u16, operand: u32) -> FilterInstruction {
    FilterInstruction { code, jt: 0, jf: 0, k: operand }
}

const fn jump(code: u16, operand: u32, if_true: u8, if_false: u8) -> FilterInstruction {
    FilterInstruction { code, jt: if_true, jf: if_false, k: operand }
}
