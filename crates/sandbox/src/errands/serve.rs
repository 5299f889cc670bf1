//! The attendant's own side: one thread, one poll, no wait for anything but the next event.

use super::{Answer, MAX_ORDER, Order};
use crate::packet;
use crate::sys::{self, Clone3, Strings};
use crate::zygote::role_socket;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, kill_process_group, wait};
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// Where the system keeps its programs.
const PLACES: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The whole life of the attendant. The role that [`super::Errands::start`] starts our binary in must do
/// nothing but call this and exit with what it returns.
pub fn errands_main() -> i32 {
    let Ok(socket) = role_socket() else { return 2 };
    // First of all: the engine may be gone already, which then shows as the end of the socket.
    if rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
        return 2;
    }
    sys::block_all();
    Serving { socket, running: vec![] }.serve();
    // All that still runs dies with us, whose namespace it is in.
    0
}

struct Serving {
    socket: OwnedFd,
    running: Vec<Running>,
}

/// A program that runs.
struct Running {
    pid: i32,
    pidfd: OwnedFd,
    line: OwnedFd,
}

impl Serving {
    fn serve(&mut self) {
        loop {
            let mut polled = vec![PollFd::new(&self.socket, PollFlags::IN)];
            for running in &self.running {
                polled.push(PollFd::new(&running.pidfd, PollFlags::IN));
                // Nothing is ever said on a line: what shows is that it was closed.
                polled.push(PollFd::new(&running.line, PollFlags::empty()));
            }
            match poll(&mut polled, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let deserted: Vec<usize> = (0..self.running.len())
                .filter(|index| !polled[2 + 2 * index].revents().is_empty())
                .collect();
            let spoken = !polled[0].revents().is_empty();
            for index in deserted {
                kill_group(self.running[index].pid);
            }
            self.bury();
            if spoken && !self.obey() {
                return;
            }
        }
    }

    /// Buries what has ended, our own and what those left to process 1.
    fn bury(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get();
            let Some(index) = self.running.iter().position(|running| running.pid == pid) else {
                continue;
            };
            let Running { pid, line, .. } = self.running.swap_remove(index);
            // What it left behind holds its streams open.
            kill_group(pid);
            let signal = || status.terminating_signal().map(|signal| 128 + signal);
            let code = status.exit_status().or_else(signal).unwrap_or(1);
            tell(&line, &Answer::Ended(code));
        }
    }

    /// Starts one program; false when nobody will ask for more.
    fn obey(&mut self) -> bool {
        let mut buffer = vec![0; MAX_ORDER];
        let packet = match packet::receive(&self.socket, &mut buffer) {
            Ok(packet) if packet.length > 0 => packet,
            Err(Errno::AGAIN | Errno::INTR) => return true,
            _ => return false,
        };
        let Ok([stdin, stdout, stderr, line]) = <[OwnedFd; 4]>::try_from(packet.descriptors) else {
            return true;
        };
        let started = match postcard::from_bytes(&buffer[..packet.length]) {
            Ok(order) => start(&order, [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()]),
            Err(error) => Err(Answer::Failed(error.to_string())),
        };
        match started {
            Ok((pid, pidfd)) => self.running.push(Running { pid, pidfd, line }),
            Err(answer) => tell(&line, &answer),
        }
        true
    }
}

fn start(order: &Order, streams: [BorrowedFd<'_>; 3]) -> Result<(i32, OwnedFd), Answer> {
    let Some(path) = find(&order.program) else { return Err(Answer::Missing) };
    let failed = |errno: Errno| Answer::Failed(errno.to_string());
    let text = |text: &str| CString::new(text).map_err(|_| Answer::Failed("a zero in it".into()));
    let words = std::iter::once(&order.program).chain(&order.arguments).map(|word| text(word));
    let words = Strings::new(words.collect::<Result<_, _>>()?);
    let variables = order.environment.iter().map(|(name, value)| text(&format!("{name}={value}")));
    let variables = Strings::new(variables.collect::<Result<_, _>>()?);
    let (path, folder) = (text(&path)?, text(&order.folder)?);
    match sys::clone_process(0, None).map_err(failed)? {
        Clone3::Child => {
            let [stdin, stdout, stderr] = streams;
            let prepared = rustix::process::setsid()
                .and_then(|_| rustix::process::chdir(&folder))
                .and_then(|()| rustix::stdio::dup2_stdin(stdin))
                .and_then(|()| rustix::stdio::dup2_stdout(stdout))
                .and_then(|()| rustix::stdio::dup2_stderr(stderr));
            if prepared.is_ok() {
                sys::close_on_exec_from(3);
                sys::default_all();
                sys::unblock_all();
                sys::execute(&path, &words, &variables);
            }
            sys::exit_now(126)
        }
        Clone3::Parent { pid, pidfd } => Ok((pid, pidfd)),
    }
}

/// The path of a program.
fn find(program: &str) -> Option<String> {
    if program.contains('/') {
        return Some(program.to_owned());
    }
    let runs = |path: &String| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
    };
    PLACES.iter().map(|place| format!("{place}/{program}")).find(runs)
}

fn kill_group(pid: i32) {
    if let Some(group) = crate::zygote::process(pid) {
        // A group that is gone needs no killing.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn tell(line: &OwnedFd, answer: &Answer) {
    if let Ok(bytes) = postcard::to_stdvec(answer) {
        // Who does not listen does not wait.
        let _ = packet::send(line, &bytes, &[]);
    }
}
