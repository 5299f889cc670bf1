//! Version 2: one hierarchy, and a process can be cloned straight into a group of it.
//!
//! A group that hands controllers down may have no processes of its own, unless it is the top. So the
//! engine moves itself and the zygote into a leaf first.

use super::{
    Group, MemoryFiles, PERIOD, make_directory, needed, parse, quota, unlimited, write_if_present,
};
use crate::{Error, Limits};
use rustix::fs::{Mode, OFlags};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The engine's own group.
pub(super) struct Place<'a> {
    pub(super) own: &'a Path,
    /// Whether it is the top of the hierarchy, which may have processes beside groups.
    pub(super) top: bool,
}

/// The group that runs nest in.
#[derive(Debug)]
pub(super) struct Tree {
    own: PathBuf,
    base: PathBuf,
    /// Where the engine went, if it had to move.
    leaf: Option<PathBuf>,
    controllers: Vec<&'static str>,
}

/// Whether a group has the controllers that make it worth using.
pub(super) fn usable(own: &Path) -> bool {
    fs::read_to_string(own.join("cgroup.controllers"))
        .is_ok_and(|list| parse::has_all(&list, &["memory", "pids"]))
}

impl Tree {
    /// Moves the engine and the zygote out of the way and hands the controllers down.
    pub(super) fn prepare(
        place: &Place<'_>,
        name: &str,
        limits: &Limits,
        zygote: i32,
    ) -> Result<Tree, Error> {
        let controllers = needed(limits);
        let list = fs::read_to_string(place.own.join("cgroup.controllers")).unwrap_or_default();
        if !parse::has_all(&list, &controllers) {
            return Err(unlimited(
                &controllers,
                format!("the engine's group only has `{}`", list.trim()),
            ));
        }
        let base = place.own.join(name);
        let leaf = (!place.top).then(|| base.join("engine"));
        let tree = Tree { own: place.own.to_owned(), base, leaf, controllers };
        match tree.establish(zygote) {
            Ok(()) => Ok(tree),
            Err(error) => {
                tree.close();
                let reason = format!("cannot use `{}`: {error}", tree.own.display());
                Err(unlimited(&tree.controllers, reason))
            }
        }
    }

    fn establish(&self, zygote: i32) -> io::Result<()> {
        make_directory(&self.base)?;
        if let Some(leaf) = &self.leaf {
            make_directory(leaf)?;
            // Zero is whoever writes, with all its threads.
            fs::write(leaf.join("cgroup.procs"), "0")?;
            fs::write(leaf.join("cgroup.procs"), zygote.to_string())?;
        }
        self.hand_down(&self.own, '+')?;
        self.hand_down(&self.base, '+')
    }

    fn hand_down(&self, group: &Path, sign: char) -> io::Result<()> {
        let words: Vec<String> =
            self.controllers.iter().map(|name| format!("{sign}{name}")).collect();
        fs::write(group.join("cgroup.subtree_control"), words.join(" "))
    }

    /// A group with the limits on it.
    pub(super) fn create(&self, number: &str, limits: &Limits) -> io::Result<Group> {
        let directory = self.base.join(number);
        fs::create_dir(&directory)?;
        let mut group = Group {
            directories: vec![directory.clone()],
            entrances: Vec::new(),
            memory: None,
            unified: true,
        };
        if let Some(bytes) = limits.memory {
            fs::write(directory.join("memory.max"), bytes.to_string())?;
            // Or the limit would only move memory to the disk.
            write_if_present(&directory.join("memory.swap.max"), "0")?;
            group.memory = Some(MemoryFiles {
                events: directory.join("memory.events"),
                peak: directory.join("memory.peak"),
                limit: bytes,
            });
        }
        if let Some(pids) = limits.pids {
            fs::write(directory.join("pids.max"), pids.to_string())?;
        }
        if let Some(cpus) = limits.cpus {
            fs::write(directory.join("cpu.max"), format!("{} {PERIOD}", quota(cpus)))?;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        group.entrances.push(rustix::fs::open(&directory, flags, Mode::empty())?);
        Ok(group)
    }

    /// Undoes [`Tree::prepare`] as far as others allow it: while another engine uses the controllers of
    /// the same group, they stay handed down and this engine stays in its leaf.
    pub(super) fn close(&self) {
        let undone = self.hand_down(&self.base, '-').and_then(|()| self.hand_down(&self.own, '-'));
        if let Err(error) = undone {
            tracing::debug!("controllers stay handed down in {}: {error}", self.own.display());
        }
        if let Some(leaf) = &self.leaf {
            let back = fs::write(self.own.join("cgroup.procs"), "0");
            let removed = back.and_then(|()| super::remove_if_present(leaf));
            if let Err(error) = removed {
                tracing::debug!("the engine stays in {}: {error}", leaf.display());
            }
        }
        if let Err(error) = super::remove_if_present(&self.base) {
            tracing::debug!("{} is left to the next sweep: {error}", self.base.display());
        }
    }
}
