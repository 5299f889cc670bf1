//! Runs dpkg inside an image that is being made.

use super::Assembler;
use super::error::Error;
use super::report::{Report, Step};
use sandbox::{MountPoint, Spec};
use std::sync::{Arc, Mutex, PoisonError};
use store::{Scratch, Snapshot, Target, TargetKind};

/// How much of the output an error shows.
const TAIL: usize = 4096;

/// One run.
pub(super) struct Run<'a> {
    /// What the step is called.
    pub(super) title: &'a str,
    pub(super) base: &'a Snapshot,
    pub(super) script: String,
    pub(super) mounts: Vec<MountPoint>,
    /// What scripts take for the present where they write a date.
    pub(super) date: u64,
}

impl Assembler {
    /// Runs a script over a snapshot and gives the snapshot it leaves.
    pub(super) async fn run(&self, run: Run<'_>, report: &dyn Report) -> Result<Snapshot, Error> {
        let step = report.step(run.title);
        let targets = self.targets(&run.mounts);
        let (store, base) = (self.depot.store.clone(), run.base.clone());
        let scratch = super::blocking(move || Ok(store.begin(&base, &targets)?)).await?;
        let root = scratch.mount_clone()?;
        let scratch = Arc::new(Mutex::new(Some(scratch)));
        let tail = Arc::new(Mutex::new(Tail::default()));
        let args = vec!["/bin/sh".to_owned(), "-c".to_owned(), run.script];
        let spec = Spec {
            mounts: run.mounts,
            env: environment(run.date),
            // What an image is must not depend on what the network says.
            network: Some(sandbox::Network::None),
            keep: Box::new(scratch.clone()),
            ..Spec::new(sandbox::Root::Mount(root), args)
        };
        let output = {
            let (tail, step) = (tail.clone(), step.clone());
            Box::new(move |_, bytes: &[u8]| {
                lock(&tail).push(bytes);
                step.log(&String::from_utf8_lossy(bytes));
            })
        };
        let exit = self.sandbox.run(spec, output).await?;
        if exit.code != 0 {
            return Err(Error::Configure { code: exit.code, output: lock(&tail).text() });
        }
        commit(&scratch, &step).await
    }

    fn targets(&self, mounts: &[MountPoint]) -> Vec<Target> {
        let more = mounts
            .iter()
            .map(|mount| Target { path: mount.target.clone(), kind: TargetKind::Directory });
        self.targets.iter().cloned().chain(more).collect()
    }
}

async fn commit(
    scratch: &Arc<Mutex<Option<Scratch>>>,
    step: &Arc<dyn Step>,
) -> Result<Snapshot, Error> {
    let scratch = lock(scratch).take();
    let gone = || Error::Internal("the tree of a finished run is gone".to_owned());
    let scratch = scratch.ok_or_else(gone)?;
    let snapshot = super::blocking(move || Ok(scratch.commit()?)).await?;
    step.done();
    Ok(snapshot)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn environment(date: u64) -> Vec<(String, String)> {
    [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/root"),
        ("LC_ALL", "C.UTF-8"),
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("DEBCONF_NONINTERACTIVE_SEEN", "true"),
        ("SOURCE_DATE_EPOCH", &date.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

/// The end of what a run wrote.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let surplus = self.0.len().saturating_sub(TAIL);
        self.0.drain(..surplus);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim_end().to_owned()
    }
}
