//! What a machine lacks that an engine without root needs. Each piece is one error, and where there
//! is a command that mends it, the hint is that command.

use rustix::io::Errno;
use std::io;

/// Why a user's engine cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program that writes the maps of ids is not installed.
    #[error("`{0}` is not installed, which gives an engine without root its user and group ids")]
    MissingProgram(&'static str),
    /// The machine gives the user no range of ids, or a short one.
    #[error("{}", no_range(.file, .user, *.found))]
    NoRange {
        /// The file that should.
        file: &'static str,
        /// The user's name, or number.
        user: String,
        /// How many ids it gives.
        found: u64,
        /// What `usermod` is to be told.
        options: String,
    },
    /// A setting of the machine forbids user namespaces.
    #[error("this machine lets users make no user namespaces: `{setting}` is {value}")]
    SwitchedOff {
        /// Its name.
        setting: &'static str,
        /// Its value.
        value: &'static str,
        /// The setting that would do, as `sysctl` takes it.
        command: &'static str,
    },
    /// The kernel makes no user namespace.
    #[error("the kernel makes no user namespace for this user: {errno}")]
    Refused {
        /// What it said.
        errno: Errno,
    },
    /// Root of the new namespace may not mount.
    #[error("root of a user namespace may not mount on this machine: {errno}")]
    Powerless {
        /// What the kernel said.
        errno: Errno,
    },
    /// The program that writes a map said no.
    #[error("`{program}` refused to give this user its ids: {said}")]
    MapRefused {
        /// Which.
        program: String,
        /// What it said.
        said: String,
    },
    /// Something of the host failed.
    #[error("cannot {action}: {source}")]
    Host {
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl Error {
    /// The way out.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::MissingProgram(_) => "sudo apt install uidmap".to_owned(),
            Self::NoRange { user, options, .. } => format!("sudo usermod {options} {user}"),
            Self::SwitchedOff { command, .. } => format!("sudo sysctl -w {command}"),
            Self::Refused { .. } | Self::Powerless { .. } => {
                "in a container it needs the right to make namespaces; or run the engine as root"
                    .to_owned()
            }
            // It says so also of the own process of who has changed the group.
            Self::MapRefused { said, .. } if said.contains("different user") => {
                "start it with the group that the account has in /etc/passwd: log in anew"
                    .to_owned()
            }
            Self::MapRefused { .. } => {
                "it must be installed set-user-id root: sudo apt install --reinstall uidmap"
                    .to_owned()
            }
            Self::Host { .. } => return None,
        })
    }

    pub(super) fn host(action: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| Error::Host { action, source }
    }
}

fn no_range(file: &str, user: &str, found: u64) -> String {
    let needed = super::ranges::NEEDED;
    match found {
        0 => format!(
            "`{file}` gives user `{user}` no ids, and an engine without root needs {needed}"
        ),
        found => format!(
            "`{file}` gives user `{user}` {found} ids, and an engine without root needs {needed}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_with_the_command_that_mends_it() {
        let options = "--add-subuids 100000-165535".to_owned();
        let range = |found| Error::NoRange {
            file: "/etc/subuid",
            user: "ann".into(),
            found,
            options: options.clone(),
        };
        for (error, said, hint) in [
            (Error::MissingProgram("newuidmap"), "`newuidmap` is not installed", "install uidmap"),
            (range(0), "gives user `ann` no ids", "--add-subuids 100000-165535 ann"),
            (range(9), "gives user `ann` 9 ids", "--add-subuids 100000-165535 ann"),
            (
                Error::SwitchedOff { setting: "a.b", value: "0", command: "a.b=1" },
                "`a.b` is 0",
                "sudo sysctl -w a.b=1",
            ),
        ] {
            assert!(error.to_string().contains(said), "{error}");
            assert!(error.hint().unwrap().contains(hint), "{error:?}");
        }
    }
}
