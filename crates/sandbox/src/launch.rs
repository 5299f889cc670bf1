//! From a [`Spec`] to a request for the zygote: checks, pipes, encoding.

use crate::cgroup::Group;
use crate::streams::{Incoming, Outgoing};
use crate::wire::{self, Channel, Failure, Input, MountEntry, MountKind, Run, Stage, shorten};
use crate::{
    Company, Endpoint, Error, Lead, MountPoint, Network, Process, Root, Source, Spec, Stdin,
    Terminal, packet,
};
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use store::Mount;

/// Everything of a run that the engine holds once the request is made.
pub(crate) struct Launch {
    request: Vec<u8>,
    /// What is sent along; dropped when it has been.
    descriptors: Sent,
    pub(crate) stdout: Incoming,
    pub(crate) stderr: Incoming,
    pub(crate) stdin: Option<Outgoing>,
    pub(crate) status: OwnedFd,
    pub(crate) names: Names,
    terminal: Option<Terminal>,
    endpoint: Option<Endpoint>,
    company: Option<Company>,
    lead: Option<Lead>,
}

struct Sent {
    status: OwnedFd,
    streams: Vec<OwnedFd>,
    root: Root,
    mounts: Vec<Mount>,
    body: Option<OwnedFd>,
}

/// What the user called things, for errors.
pub(crate) struct Names {
    program: String,
    workdir: String,
    stdin: String,
    pub(crate) redirect_stdout: Option<String>,
    pub(crate) redirect_stderr: Option<String>,
}

impl Launch {
    /// Checks the specification and makes what is needed to run it.
    /// `network` is what the command can reach when the specification does not say.
    pub(crate) fn prepare(
        spec: Spec,
        group: Option<&Group>,
        network: Network,
    ) -> Result<Launch, Error> {
        check(&spec)?;
        let network = spec.network.unwrap_or(network);
        let beside = matches!(spec.root, Root::Of(_));
        // Only on the engine's network does anybody have an address to be known by.
        let bridged = network == Network::Bridge && !beside;
        let names = Names::of(&spec);
        let company = spec.company.filter(|company| bridged && company.matters());
        let made = Error::host("cannot make a pipe");
        let (uid, gid) = (spec.user.uid, spec.user.gid);
        let (status, their_status) = packet::pair().map_err(|error| made(error.into()))?;
        let (stdout, their_stdout) = Incoming::pipe(uid, gid).map_err(&made)?;
        let (stderr, their_stderr) = Incoming::pipe(uid, gid).map_err(&made)?;
        let mut streams = vec![their_stdout, their_stderr];
        let (mut stdin, mut input) = (None, Input::Null);
        match spec.stdin {
            Stdin::Empty => {}
            Stdin::File(path) => input = Input::File(path),
            Stdin::Bytes(bytes) => {
                let (ours, theirs) = Outgoing::pipe(bytes, uid, gid).map_err(&made)?;
                stdin = Some(ours);
                input = Input::Pipe;
                streams.push(theirs);
            }
        }
        let (entries, mounts) = entries(spec.mounts);
        let run = Run {
            args: spec.args,
            env: spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            workdir: spec.workdir,
            uid,
            gid,
            groups: spec.user.groups,
            init: spec.init,
            all_capabilities: spec.all_capabilities,
            stdin: input,
            redirect_stdout: spec.redirect_stdout,
            redirect_stderr: spec.redirect_stderr,
            mounts: entries,
            group_files: group.map_or(0, |group| group.entrances().count() as u8),
            held: company.is_some(),
            led: spec.lead.is_some(),
            beside,
            resolves: network != Network::None,
            terminal: spec.terminal.as_ref().map(|it| (it.size.columns, it.size.rows)),
            endpoint: spec.endpoint.as_ref().map(|it| it.variables.clone()).unwrap_or_default(),
        };
        let powers = match run.all_capabilities {
            true => wire::POWERS_ALL,
            false if run.held => wire::POWERS_KNOWN,
            false => wire::POWERS_USUAL,
        };
        let network = if beside { wire::NETWORK_BESIDE } else { network.byte() };
        let head = [wire::RUN, group_kind(group), network, powers];
        let (request, body) =
            encode(&run, head).map_err(Error::host("cannot encode the request"))?;
        let descriptors = Sent { status: their_status, streams, root: spec.root, mounts, body };
        let (terminal, endpoint, lead) = (spec.terminal, spec.endpoint, spec.lead);
        Ok(Launch {
            request,
            descriptors,
            stdout,
            stderr,
            stdin,
            status,
            names,
            terminal,
            endpoint,
            company,
            lead,
        })
    }

    /// What is to be sent to the zygote.
    pub(crate) fn request<'a>(
        &'a self,
        group: Option<&'a Group>,
    ) -> (&'a [u8], Vec<BorrowedFd<'a>>) {
        let Sent { status, streams, root, mounts, body } = &self.descriptors;
        let mut descriptors = vec![status.as_fd()];
        descriptors.extend(group.iter().flat_map(|group| group.entrances()));
        descriptors.extend(streams.iter().map(AsFd::as_fd));
        descriptors.push(match root {
            Root::Mount(mount) => mount.as_fd(),
            Root::Of(Process(process)) => process.as_fd(),
        });
        descriptors.extend(mounts.iter().map(AsFd::as_fd));
        descriptors.extend(body.iter().map(AsFd::as_fd));
        (&self.request, descriptors)
    }

    /// Lets go of what was sent: as long as the engine holds the ends of pipes that the command writes
    /// to, it never sees their end.
    pub(crate) fn sent(self) -> Sending {
        let Launch {
            stdout, stderr, stdin, status, names, terminal, endpoint, company, lead, ..
        } = self;
        Sending { stdout, stderr, stdin, status, names, terminal, endpoint, company, lead }
    }
}

/// What is left of a [`Launch`] after the request was sent.
pub(crate) struct Sending {
    pub(crate) stdout: Incoming,
    pub(crate) stderr: Incoming,
    pub(crate) stdin: Option<Outgoing>,
    pub(crate) status: OwnedFd,
    pub(crate) names: Names,
    pub(crate) terminal: Option<Terminal>,
    pub(crate) endpoint: Option<Endpoint>,
    /// Set only if the run is held until it is a member.
    pub(crate) company: Option<Company>,
    pub(crate) lead: Option<Lead>,
}

fn group_kind(group: Option<&Group>) -> u8 {
    match group {
        None => wire::GROUP_NONE,
        Some(group) if group.unified() => wire::GROUP_DIRECTORY,
        Some(_) => wire::GROUP_FILES,
    }
}

/// The packet, and a file with the body where that is too long for a packet.
fn encode(run: &Run, head: [u8; wire::HEAD]) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let packet = postcard::to_extend(run, head.to_vec()).map_err(io::Error::other)?;
    if packet.len() <= wire::MAX_PACKET {
        return Ok((packet, None));
    }
    let mut file = File::from(rustix::fs::memfd_create("request", MemfdFlags::CLOEXEC)?);
    file.write_all(&packet[wire::HEAD..])?;
    let [_, rest @ ..] = head;
    let packet = std::iter::once(wire::RUN_IN_FILE).chain(rest).collect();
    Ok((packet, Some(OwnedFd::from(file))))
}

/// Mounts in the order in which they must be made: parents before what lies in them.
fn entries(mut points: Vec<MountPoint>) -> (Vec<MountEntry>, Vec<Mount>) {
    points.sort_by(|a, b| parts(&a.target).cmp(parts(&b.target)));
    let (mut entries, mut mounts) = (Vec::new(), Vec::new());
    for point in points {
        let kind = match point.source {
            Source::Mount(mount) => {
                mounts.push(mount);
                MountKind::Descriptor
            }
            Source::Device(mount) => {
                mounts.push(mount);
                MountKind::Device
            }
            Source::Tmpfs { size } => MountKind::Tmpfs(size),
        };
        entries.push(MountEntry { target: point.target, kind, read_only: point.read_only });
    }
    (entries, mounts)
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

fn check(spec: &Spec) -> Result<(), Error> {
    let invalid = |message: String| Err(Error::Invalid(message));
    if spec.args.is_empty() {
        return invalid("there is no command to run".to_owned());
    }
    if spec.args.iter().any(|argument| argument.contains('\0')) {
        return invalid("an argument contains a zero byte".to_owned());
    }
    for (name, value) in &spec.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return invalid(format!("`{}` cannot be an environment variable", shorten(name)));
        }
    }
    if !spec.workdir.starts_with('/') {
        return invalid(format!(
            "the working directory `{}` is not absolute",
            shorten(&spec.workdir)
        ));
    }
    for point in &spec.mounts {
        if !point.target.starts_with('/') || parts(&point.target).next().is_none() {
            return invalid(format!("nothing can be mounted at `{}`", shorten(&point.target)));
        }
    }
    if matches!(spec.root, Root::Of(_)) && !spec.mounts.is_empty() {
        return invalid("who runs beside another container has no mounts of its own".to_owned());
    }
    // Status, root, body, three streams and three groups at most.
    if spec.mounts.len() + 9 > packet::MAX_DESCRIPTORS {
        return invalid(format!("{} mounts are more than one command can have", spec.mounts.len()));
    }
    Ok(())
}

impl Names {
    fn of(spec: &Spec) -> Names {
        let stdin = match &spec.stdin {
            Stdin::File(path) => shorten(path),
            Stdin::Empty | Stdin::Bytes(_) => String::new(),
        };
        Names {
            program: spec.args.first().map(|program| shorten(program)).unwrap_or_default(),
            workdir: shorten(&spec.workdir),
            stdin,
            redirect_stdout: spec.redirect_stdout.as_deref().map(shorten),
            redirect_stderr: spec.redirect_stderr.as_deref().map(shorten),
        }
    }

    /// What a container reported, in the user's words.
    pub(crate) fn explain(&self, failure: Failure) -> Error {
        let source = io::Error::from_raw_os_error(failure.errno);
        match failure.stage {
            Stage::Setup(stage) => Error::Setup { stage, source },
            Stage::Mount(target) => Error::Mount { target, source },
            Stage::Workdir => Error::Workdir { path: self.workdir.clone(), source },
            Stage::Stdin(reason) => Error::Stdin { path: self.stdin.clone(), reason },
            Stage::Redirect(channel, reason) => self.redirect(channel, reason),
            Stage::Program(code, reason) => {
                Error::Program { program: self.program.clone(), code, reason }
            }
            Stage::Runtime(reason) => Error::Runtime(reason),
        }
    }

    /// A redirected stream that went wrong.
    pub(crate) fn redirect(&self, channel: Channel, reason: String) -> Error {
        let (stream, path) = match channel {
            Channel::Stdout => ("stdout", &self.redirect_stdout),
            Channel::Stderr => ("stderr", &self.redirect_stderr),
        };
        Error::Redirect { stream, path: path.clone().unwrap_or_default(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(targets: &[&str]) -> Vec<String> {
        let point = |target: &&str| MountPoint {
            target: (*target).to_owned(),
            source: Source::Tmpfs { size: None },
            read_only: false,
        };
        let (entries, _) = entries(targets.iter().map(point).collect());
        entries.into_iter().map(|entry| entry.target).collect()
    }

    #[test]
    fn parents_are_mounted_before_what_lies_in_them() {
        assert_eq!(order(&["/a/b/c", "/a-b", "/a", "/a/b"]), ["/a", "/a/b", "/a/b/c", "/a-b"]);
        assert_eq!(order(&["//x//y", "/x/"]), ["/x/", "//x//y"]);
    }

    #[test]
    fn long_names_are_cut_in_errors() {
        assert_eq!(shorten("short"), "short");
        assert_eq!(shorten(&"é".repeat(5000)).chars().count(), wire::SHOWN + 3);
    }
}
