//! Containers for other machines, and for graphics processors.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testkit::{Session, State};

/// A program for a machine of this kind that ends with code 0 (`wanted`: its machine number in the ELF
/// header, its instructions).
fn program(machine: u16, code: &[u32]) -> Vec<u8> {
    let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    let (base, head) = (0x40_0000_u64, 120_u64);
    let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    elf.extend_from_slice(&2_u16.to_le_bytes());
    elf.extend_from_slice(&machine.to_le_bytes());
    elf.extend_from_slice(&1_u32.to_le_bytes());
    elf.extend_from_slice(&(base + head).to_le_bytes());
    elf.extend_from_slice(&64_u64.to_le_bytes());
    elf.extend_from_slice(&0_u64.to_le_bytes());
    elf.extend_from_slice(&0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 64, 0, 0] {
        elf.extend_from_slice(&half.to_le_bytes());
    }
    elf.extend_from_slice(&1_u32.to_le_bytes());
    elf.extend_from_slice(&5_u32.to_le_bytes());
    let size = head + code.len() as u64;
    for word in [0, base, base, size, size, 0x1000] {
        elf.extend_from_slice(&word.to_le_bytes());
    }
    elf.extend_from_slice(&code);
    elf
}

/// The number of 64-bit ARM in the header of a program, and a program that ends well.
const ARM: (u16, [u32; 3]) = (183, [0xd280_0000, 0xd280_0ba8, 0xd400_0001]);
/// The same for 64-bit RISC-V.
const RISC_V: (u16, [u32; 3]) = (243, [0x0000_0513, 0x05d0_0893, 0x0000_0073]);

/// A handler of the kernel's for programs of a machine, as long as it lives. Newer kernels forget their
/// handlers with the last mount of their list, so somebody holds one meanwhile.
struct Handler(Child);

/// Mounts the list, registers, waits for the end of its input and takes the handler away again.
const HOLD: &str = "d=$(mktemp -d) && mount -t binfmt_misc none $d && printf %s \"$2\" > $d/register \
                    && echo ready && cat; printf %s -1 > $d/$1; umount $d; rmdir $d";

impl Handler {
    fn new(machine: u16, interpreter: &str) -> Self {
        let name = format!("ci-tool-t{}", std::process::id());
        let magic = format!(
            r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x{machine:02x}\x00"
        );
        let mask =
            r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff";
        let line = format!(":{name}:M::{magic}:{mask}:{interpreter}:F");
        let mut child = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", HOLD, "sh", &name, &line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let output = child.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n", "the kernel has a list of handlers");
        Self(child)
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Runs a program in a container for its platform.
fn document(state: &State, session: &Session, platform: &str, elf: &[u8]) -> String {
    let name = platform.replace('/', "-");
    let folder = state.workdir().join(&name);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("run");
    std::fs::write(&path, elf).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let root = session.host_directory(&folder);
    format!(
        r#"{{ container(platform: "{platform}") {{ withRootfs(directory: "{root}") {{
            withExec(args: ["/run"]) {{ exitCode }} }} }} }}"#
    )
}

#[test]
fn programs_of_another_machine_run_through_a_handler_of_the_kernel() {
    let state = State::new();
    let session = Session::start(&state);
    // Nobody registers this one.
    let risc_v = document(&state, &session, "linux/riscv64", &program(RISC_V.0, &RISC_V.1));
    let failed = session.exec_error(&risc_v);
    assert_eq!(failed.code, 126);
    assert!(failed.message.contains("neither a program for this machine"), "{}", failed.message);
    let rootfs = format!("--directory={}", state.workdir().join("linux-riscv64").display());
    let line =
        ["core", "container", "--platform=linux/riscv64", "with-rootfs", &rootfs, "with-exec"];
    let output = state.cli(line.iter().chain(&["--args=/run", "exit-code"])).run();
    let said = output.fails(126);
    assert!(said.contains("qemu-user-static") && said.contains("linux/riscv64"), "{said}");

    let qemu = "/usr/bin/qemu-aarch64-static";
    assert!(Path::new(qemu).exists(), "`qemu-user-static` is installed");
    let _handler = Handler::new(ARM.0, qemu);
    let arm = document(&state, &session, "linux/arm64", &program(ARM.0, &ARM.1));
    assert_eq!(session.leaf(&arm), 0);
}

#[test]
fn a_machine_without_graphics_processors_says_so() {
    if Path::new("/dev/nvidia0").exists() || Path::new("/dev/dri").exists() {
        return;
    }
    let state = State::new();
    for words in [&["experimental-with-all-gpus"][..], &["experimental-with-gpu", "--devices=0"]] {
        let line = ["core", "container"].iter().chain(words).chain(&["sync"]);
        let output = state.cli(line).run();
        let said = output.fails(1);
        assert!(said.contains("the engine's machine has no GPU"), "{said}");
        assert!(said.contains("install its driver"), "{said}");
    }
}
