//! A command beside that of a container which the program made.
//!
//! Two processes of ours attend to it. The first is the engine's to signal and outside of the container's process
//! namespace. Its child is inside, has the program start the command and inherits it: it ends with the
//! command's exit code, and kills the command when the first is gone.

use super::call::{Program, Streams};
use super::console::Console;
use super::scout::{self, Place};
use super::{NAME, bundle, config, connect_nothing, made, take, write};
use crate::container::init::{self, Watch};
use crate::container::{Descriptors, NOT_BEGUN, connect_streams, report};
use crate::sys::{self, Clone3};
use crate::wire::{Failure, Run, Runtime};
use crate::zygote::{World, process};
use rustix::process::Signal;
use std::os::fd::{AsFd, OwnedFd};

/// What the second process gets when the first is gone.
const BEQUEST: Signal = Signal::POWER;

/// Does everything, in the cloned process; the result is its exit code.
pub(super) fn begin(
    (world, runtime): (&World, &Runtime),
    run: Run,
    status: &OwnedFd,
    descriptors: Descriptors,
) -> i32 {
    if let Err(error) = sys::enter_container(descriptors.root.as_fd()) {
        return report(status, Failure::setup("enter the container")(error));
    }
    match sys::clone_process(0, None) {
        Ok(Clone3::Child) => {
            let ended = inside((world, runtime), run, status, descriptors);
            sys::exit_now(ended.unwrap_or_else(|failure| report(status, failure)))
        }
        Ok(Clone3::Parent { pid, .. }) => {
            drop(descriptors);
            process(pid).map_or(NOT_BEGUN, init::attend)
        }
        Err(error) => report(status, Failure::setup("enter the container")(error)),
    }
}

fn inside(
    (world, runtime): (&World, &Runtime),
    mut run: Run,
    status: &OwnedFd,
    mut descriptors: Descriptors,
) -> Result<i32, Failure> {
    let failed = Failure::setup("end with who watches it");
    rustix::process::set_parent_process_death_signal(Some(BEQUEST)).map_err(&failed)?;
    let us = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(us)).map_err(failed)?;
    rustix::process::chdir(bundle(runtime)).map_err(Failure::setup("enter the bundle"))?;
    rustix::process::setsid().map_err(Failure::setup("begin a session"))?;
    let found = scout::send((world, &run), Place::Inside(made("pid")?), status)?;
    take(found, &mut run, &mut descriptors);
    let name = format!("b{}", us.as_raw_nonzero());
    write(&format!("{name}.json"), &config::process(world, &run).to_string())?;
    connect_streams(world, &descriptors).map_err(Failure::setup("connect the streams"))?;
    drop(descriptors);
    let console = Console::listen(format!("{name}.console"), run.terminal)?;
    let program = Program::new(runtime, format!("{name}.log"));
    let mut words = vec!["exec".to_owned(), "--detach".to_owned()];
    words.push(format!("--process={name}.json"));
    words.push(format!("--pid-file={name}.pid"));
    words.extend(console.as_ref().map(Console::flag));
    words.push(NAME.to_owned());
    let execute = program.spawn(&words, (world, Streams::Given), status)?;
    let mut ended = Vec::new();
    // Not to the program: it would swallow them, or leave the command to nobody.
    let mut watch = Watch::new(Some(BEQUEST));
    if watch.until(execute, &mut |other, code| ended.push((other, code))) != 0 {
        return Err(program.failure());
    }
    connect_nothing(world).map_err(Failure::setup("let go of the streams"))?;
    let pid = made(&format!("{name}.pid"))?;
    if let Some(console) = console {
        console.hand_on(status)?;
    }
    if let Some((_, code)) = ended.into_iter().find(|(other, _)| *other == pid) {
        return Ok(code);
    }
    watch.pass_on_to(pid);
    Ok(watch.until(pid, &mut |_, _| {}))
}
