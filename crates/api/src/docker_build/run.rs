//! `RUN`: a command, and what it sees besides the files of its stage.

use super::build::Build;
use super::stage::StageState;
use crate::cache_volume::CacheSharingMode;
use crate::container::{StepCommand, StepMount};
use crate::directory::Directory;
use crate::edit::Edit;
use crate::owner::OwnerSpec;
use crate::paths;
use crate::services::Services;
use crate::tree::Tree;
use dockerfile::{CommandLine, Heredoc, Mount, MountKind, Run, RunNetwork, Sharing};
use graph::Context;
use protocol::Error;
use sandbox::Network;
use std::sync::Arc;
use store::Kind;

/// Where secrets are mounted that name no place.
const SECRETS: &str = "/run/secrets";
/// Where the socket of an ssh agent is mounted that names no place, with a number behind it.
const AGENT: &str = "/run/buildkit/ssh_agent.";
/// The variable that says where the socket of an ssh agent is.
const AGENT_VARIABLE: &str = "SSH_AUTH_SOCK";
/// What a socket of an ssh agent is called that has no other name.
const DEFAULT_AGENT: &str = "default";
/// Permission bits of a secret's file.
const SECRET_MODE: u32 = 0o400;
/// Where a script that stands in the Dockerfile is mounted.
const SCRIPTS: &str = "/.heredoc";

/// `RUN`
pub(super) async fn run(
    state: &mut StageState,
    build: &Arc<Build>,
    run: &Run,
    cx: &Context,
) -> Result<(), Error> {
    if run.insecure {
        let error = Error::user("security.insecure is not allowed");
        return Err(error.with_hint(
            "run the command after the build, by `withExec` with `insecureRootCapabilities`",
        ));
    }
    let mut step = StepCommand {
        args: vec![],
        env: state.env.clone(),
        volatile: build.scope.proxies(&state.env),
        mounts: vec![],
        network: match run.network {
            RunNetwork::Default => None,
            RunNetwork::None => Some(Network::None),
            RunNetwork::Host => Some(Network::Host),
        },
        init: build.request.init,
    };
    step.args = command_line(state, run, &mut step.mounts, cx.get::<Services>()?).await?;
    if step.args.is_empty() {
        return Err(Error::user("there is nothing to run"));
    }
    let mut agents = 0;
    for raw in &run.mounts {
        let mount = state.expand(build, |expander| raw.resolve(expander))?;
        match mount.kind {
            MountKind::Ssh => {
                agent(state, build, &mount, (&mut step, agents))?;
                agents += 1;
            }
            MountKind::Secret => secret(state, build, &mount, &mut step)?,
            MountKind::Tmpfs => {
                let (path, size) = (place(state, &mount), mount.size);
                step.mounts.push(StepMount::Temporary { path, size });
            }
            MountKind::Bind => step.mounts.push(bind(state, build, &mount).await?),
            MountKind::Cache => step.mounts.push(cache(state, build, &mount).await?),
        }
    }
    state.container = state.container.after_step(step, cx).await?;
    Ok(())
}

/// The words that run the command, with its here-documents.
async fn command_line(
    state: &StageState,
    run: &Run,
    mounts: &mut Vec<StepMount>,
    services: &Services,
) -> Result<Vec<String>, Error> {
    let (text, first) = match (&run.command, run.heredocs.first()) {
        (CommandLine::Shell(text), Some(first)) => (text, first),
        _ => return Ok(state.command_line(&run.command)),
    };
    let alone = run.heredocs.len() == 1 && is_alone(text);
    if !alone {
        // The shell knows what a here-document is.
        let mut whole = text.clone();
        for heredoc in &run.heredocs {
            whole.push_str(&format!("\n{}{}", heredoc.text, heredoc.name));
        }
        return Ok(state.shell(&whole));
    }
    let contents = first.contents();
    if !contents.starts_with("#!") {
        return Ok(state.shell(&contents));
    }
    mounts.push(script(first, services).await?);
    Ok(state.shell(&format!("{SCRIPTS}/{}", first.name)))
}

/// Whether a command is a here-document and nothing else.
fn is_alone(text: &str) -> bool {
    let word = text.trim().trim_start_matches(|c: char| c.is_ascii_digit());
    let name = word.trim_start_matches("<<").trim_start_matches('-');
    let quoted = name.len() > 1
        && ["'", "\""].iter().any(|quote| name.starts_with(quote) && name.ends_with(quote));
    word.starts_with("<<") && (quoted || !name.contains(char::is_whitespace))
}

/// A script with a line that says who runs it.
async fn script(heredoc: &Heredoc, services: &Services) -> Result<StepMount, Error> {
    let name = heredoc.name.replace('/', "_");
    let contents: Arc<[u8]> = heredoc.contents().into_bytes().into();
    let edit = Edit::NewFile { path: name.clone(), contents, mode: 0o755, owner: OwnerSpec::Root };
    let tree = Tree::empty().edited(edit, services).await?;
    let path = format!("{SCRIPTS}/{}", heredoc.name);
    Ok(StepMount::File { path, tree, name, read_only: true })
}

/// Where something is mounted.
fn place(state: &StageState, mount: &Mount) -> String {
    state.container.path_from_workdir(mount.target.as_deref().unwrap_or_default())
}

fn mount_owner(mount: &Mount) -> Option<OwnerSpec> {
    let (uid, gid) = (mount.uid, mount.gid);
    (uid.is_some() || gid.is_some()).then(|| {
        OwnerSpec::Named(format!("{}:{}", uid.unwrap_or_default(), gid.unwrap_or_default()))
    })
}

/// Files of the context, a stage or an image. What is written to them is thrown away.
async fn bind(state: &StageState, build: &Arc<Build>, mount: &Mount) -> Result<StepMount, Error> {
    let services = build.cx.get::<Services>()?;
    let tree = build.files(mount.from.as_deref(), state.index).await?;
    let (path, read_only) = (place(state, mount), mount.writable != Some(true));
    let source = paths::absolute("/", mount.source.as_deref().unwrap_or("/"));
    let inside = source.trim_start_matches('/').to_owned();
    let snapshot = tree.snapshot(services).await?;
    let found = services.store.view(&snapshot).resolve(&inside, true);
    let found = found.map_err(|error| crate::looks::typed(error, &source))?;
    if found.metadata.kind == Kind::Directory {
        let tree = Directory::below(tree, &inside).as_tree(services).await?;
        return Ok(StepMount::Directory { path, tree, read_only });
    }
    let name = paths::name(&inside).to_owned();
    let source = crate::file::File::below(tree, &inside).as_source(services).await?;
    let (mode, owner) = (None, OwnerSpec::Source);
    let edit = Edit::CopyFile { source, path: name.clone(), mode, owner };
    let tree = Tree::empty().edited(edit, services).await?;
    Ok(StepMount::File { path, tree, name, read_only })
}

/// A directory that stays from build to build.
async fn cache(state: &StageState, build: &Arc<Build>, mount: &Mount) -> Result<StepMount, Error> {
    let services = build.cx.get::<Services>()?;
    let path = place(state, mount);
    let owner = mount_owner(mount);
    let seed = match (&mount.from, mount.mode) {
        (Some(from), _) => {
            let tree = build.files(Some(from), state.index).await?;
            let source = mount.source.as_deref().unwrap_or_default().trim_matches('/');
            Some(Directory::below(tree, source).as_tree(services).await?)
        }
        // A new one that is empty takes the bits of what it starts with.
        (None, Some(mode)) => {
            let owner = owner.clone().unwrap_or(OwnerSpec::Root);
            let edit = Edit::NewDirectory { path: "cache".to_owned(), mode, owner };
            let tree = Tree::empty().edited(edit, services).await?;
            Some(Directory::below(tree, "cache").as_tree(services).await?)
        }
        (None, None) => None,
    };
    Ok(StepMount::Cache {
        key: mount.id.clone().unwrap_or_else(|| path.clone()),
        sharing: match mount.sharing {
            Sharing::Shared => CacheSharingMode::Shared,
            Sharing::Private => CacheSharingMode::Private,
            Sharing::Locked => CacheSharingMode::Locked,
        },
        seed,
        owner,
        read_only: mount.writable == Some(false),
        path,
    })
}

/// A secret, as a file and as a variable.
fn secret(
    state: &StageState,
    build: &Build,
    mount: &Mount,
    step: &mut StepCommand,
) -> Result<(), Error> {
    let target = mount.target.as_deref().map(paths::name);
    let id = mount.id.as_deref().or(mount.source.as_deref()).or(target).unwrap_or_default();
    let Some(secret) = build.secret(id) else {
        if mount.required {
            let error = Error::user(format!("secret {id}: not found: the build requires it"));
            return Err(
                error.with_hint(format!("hand over a secret of the name `{id}` in `secrets`"))
            );
        }
        return Ok(());
    };
    if let Some(name) = &mount.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Error::user(format!("`{name}` cannot be the name of a variable")));
        }
        step.mounts.push(StepMount::SecretVariable { name: name.clone(), secret: secret.clone() });
    }
    if mount.env.is_none() || mount.target.is_some() {
        let path = match &mount.target {
            Some(_) => place(state, mount),
            None => format!("{SECRETS}/{id}"),
        };
        let owner = mount_owner(mount).unwrap_or(OwnerSpec::Root);
        let mode = mount.mode.unwrap_or(SECRET_MODE);
        step.mounts.push(StepMount::Secret { path, mode, owner, secret: secret.clone() });
    }
    Ok(())
}

/// The socket of an ssh agent.
fn agent(
    state: &StageState,
    build: &Build,
    mount: &Mount,
    (step, number): (&mut StepCommand, u32),
) -> Result<(), Error> {
    let id = mount.id.as_deref().unwrap_or(DEFAULT_AGENT);
    let Some(socket) = build.request.ssh.as_ref().filter(|_| id == DEFAULT_AGENT) else {
        if mount.required {
            let error = Error::user(format!("ssh agent {id}: not found: the build requires it"));
            return Err(error.with_hint("hand over the socket of an agent in `ssh`"));
        }
        return Ok(());
    };
    let path = match &mount.target {
        Some(_) => place(state, mount),
        None => format!("{AGENT}{number}"),
    };
    if number == 0 {
        step.env.retain(|(name, _)| name != AGENT_VARIABLE);
        step.env.push((AGENT_VARIABLE.to_owned(), path.clone()));
    }
    let owner = mount_owner(mount).unwrap_or(OwnerSpec::Root);
    step.mounts.push(StepMount::Socket { path, owner, socket: socket.clone() });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_here_document_alone_is_the_script() {
        for text in ["<<EOF", " <<-EOF ", "3<<'E O F'", "<<\"EOF\""] {
            assert!(is_alone(text), "{text}");
        }
        for text in ["cat <<EOF", "<<EOF cat", "<<EOF > /x", "x"] {
            assert!(!is_alone(text), "{text}");
        }
    }
}
