//! The compiled filter against the table it was compiled from, run in an interpreter.

use super::rules::{ARCHITECTURE, ranges, verdict};
use super::tree::{Range, Verdict, compile};
use crate::sys::FilterInstruction;

const ALLOWED: u32 = 0x7FFF_0000;
const REFUSED: u32 = 0x0005_0000 | libc::EPERM as u32;
const UNKNOWN: u32 = 0x0005_0000 | libc::ENOSYS as u32;
const KILLED: u32 = 0x8000_0000;

/// What the kernel would answer, and after how many instructions.
fn run(
    program: &[FilterInstruction],
    number: u32,
    architecture: u32,
    args: [u64; 6],
) -> (u32, usize) {
    let mut data = Vec::new();
    data.extend(number.to_ne_bytes());
    data.extend(architecture.to_ne_bytes());
    data.extend(0u64.to_ne_bytes());
    args.iter().for_each(|argument| data.extend(argument.to_ne_bytes()));
    let (mut at, mut value, mut steps) = (0usize, 0u32, 0usize);
    loop {
        let FilterInstruction { code, jt, jf, k } = program[at];
        at += 1;
        steps += 1;
        let branch = |taken: bool| usize::from(if taken { jt } else { jf });
        match code {
            0x20 => {
                let start = k as usize;
                value = u32::from_ne_bytes(data[start..start + 4].try_into().unwrap());
            }
            0x54 => value &= k,
            0x05 => at += k as usize,
            0x15 => at += branch(value == k),
            0x35 => at += branch(value >= k),
            0x45 => at += branch(value & k != 0),
            0x06 => return (k, steps),
            other => panic!("instruction {other:#x}"),
        }
    }
}

fn call(number: libc::c_long, args: [u64; 6]) -> u32 {
    run(&compile(ARCHITECTURE, &ranges()), number as u32, ARCHITECTURE, args).0
}

#[test]
fn every_number_gets_the_verdict_of_the_table() {
    let program = compile(ARCHITECTURE, &ranges());
    for number in (0..2000).chain([0x4000_0000, 0x4000_0001, u32::MAX]) {
        let expected = match verdict(number) {
            Verdict::Allow => ALLOWED,
            Verdict::Refuse => REFUSED,
            Verdict::Unknown => UNKNOWN,
            _ => continue,
        };
        assert_eq!(run(&program, number, ARCHITECTURE, [0; 6]).0, expected, "call {number}");
    }
}

#[test]
fn the_search_is_short() {
    let program = compile(ARCHITECTURE, &ranges());
    let longest = (0..600).map(|number| run(&program, number, ARCHITECTURE, [0; 6]).1).max();
    assert!(longest.unwrap() <= 20, "{longest:?} instructions for one call");
    assert!(program.len() < 400, "{} instructions", program.len());
}

#[test]
fn another_architecture_is_killed() {
    let program = compile(ARCHITECTURE, &ranges());
    assert_eq!(run(&program, 0, 0x4000_0003, [0; 6]).0, KILLED);
}

#[test]
fn clone_may_not_make_namespaces() {
    assert_eq!(call(libc::SYS_clone, [libc::SIGCHLD as u64, 0, 0, 0, 0, 0]), ALLOWED);
    for flag in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWNET, libc::CLONE_NEWCGROUP]
    {
        let flags = (flag | libc::SIGCHLD) as u64;
        assert_eq!(call(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]), REFUSED, "{flag:#x}");
    }
    assert_eq!(call(libc::SYS_clone3, [0; 6]), UNKNOWN);
}

#[test]
fn arguments_decide_where_they_should() {
    assert_eq!(call(libc::SYS_personality, [0xFFFF_FFFF, 0, 0, 0, 0, 0]), ALLOWED);
    assert_eq!(call(libc::SYS_personality, [0x2_0008, 0, 0, 0, 0, 0]), ALLOWED);
    assert_eq!(call(libc::SYS_personality, [0x40_0000, 0, 0, 0, 0, 0]), REFUSED);
    assert_eq!(call(libc::SYS_socket, [libc::AF_INET as u64, 0, 0, 0, 0, 0]), ALLOWED);
    assert_eq!(call(libc::SYS_socket, [libc::AF_VSOCK as u64, 0, 0, 0, 0, 0]), REFUSED);
    let make = |kind: u32| call(libc::SYS_mknodat, [0, 0, u64::from(kind | 0o666), 0, 0, 0]);
    assert_eq!(make(libc::S_IFIFO), ALLOWED);
    assert_eq!(make(0), ALLOWED);
    assert_eq!(make(libc::S_IFCHR), REFUSED);
    assert_eq!(make(libc::S_IFBLK), REFUSED);
}

#[test]
fn what_programs_need_is_allowed_and_what_leads_out_is_not() {
    let allowed = [
        libc::SYS_openat,
        libc::SYS_execve,
        libc::SYS_ptrace,
        libc::SYS_chroot,
        libc::SYS_futex,
        libc::SYS_rseq,
        libc::SYS_openat2,
        libc::SYS_close_range,
        libc::SYS_fchmodat2,
    ];
    for number in allowed {
        assert_eq!(call(number, [0; 6]), ALLOWED, "call {number}");
    }
    let refused =
        [libc::SYS_mount, libc::SYS_unshare, libc::SYS_setns, libc::SYS_syslog, libc::SYS_bpf];
    for number in refused {
        assert_eq!(call(number, [0; 6]), REFUSED, "call {number}");
    }
}

#[test]
fn long_programs_jump_far() {
    let ranges: Vec<Range> = (0..600)
        .map(|first| Range {
            first,
            verdict: if first % 2 == 0 { Verdict::Allow } else { Verdict::Refuse },
        })
        .collect();
    let program = compile(1, &ranges);
    for number in 0..600 {
        let expected = if number % 2 == 0 { ALLOWED } else { REFUSED };
        assert_eq!(run(&program, number, 1, [0; 6]).0, expected, "call {number}");
    }
}
