//! The places of a container's file system that something is mounted onto.

use super::sockets;
use super::{Container, MountPoint, MountSource};
use crate::paths;
use crate::services::Services;
use store::{Target, TargetKind};

/// What the sandbox mounts onto and so must exist in the root.
pub(super) fn targets(container: &Container, services: &Services) -> Vec<Target> {
    let laid = services.surroundings.targets();
    services.targets.iter().cloned().chain(laid).chain(places(container)).collect()
}

/// Where a container has something mounted.
pub(super) fn places(container: &Container) -> Vec<Target> {
    let mounts = container.mounts.iter().map(|mount| Target {
        path: mount.path.clone(),
        kind: match mount.source {
            MountSource::File { .. } => TargetKind::File,
            _ => TargetKind::Directory,
        },
    });
    mounts.chain(container.secrets.targets()).chain(sockets::targets(container)).collect()
}

/// The places that lie in a mount, as it sees them: they must exist there, and must not stay.
pub(super) fn within(mount: &MountPoint, places: &[Target]) -> Vec<Target> {
    let inside = |place: &Target| {
        let rest = paths::below(&mount.path, &place.path).filter(|rest| !rest.is_empty())?;
        Some(Target { path: format!("/{rest}"), ..place.clone() })
    };
    places.iter().filter_map(inside).collect()
}
