//! One's own engine, where an engine of another version may be in the way.
//!
//! One engine runs on a state folder, and versions do not talk to each other. The rules:
//!
//! - A newer client waits until an older engine is idle, makes it end and starts its own on the same
//!   folder. The wait has a limit, and the older engine turns nobody away meanwhile: whoever works with
//!   it is not disturbed, and the newer client is not kept waiting for long.
//! - Who may not take the folder runs beside it, in a folder of its version below it: a newer client
//!   after that limit, an older client that meets a newer engine or what a newer engine left behind.
//!   An older client never ends a newer engine, so two versions in turns do not end each other.
//! - With `CITOOL_LEAVE_OLD_ENGINE` engines of other versions are left alone altogether.
//!
//! The next command tries the folder itself first, so running beside is not for ever.

mod version;

use crate::connect::{Connection, end};
use crate::environment::ClientEnvironment;
use crate::route::Route;
use crate::start::dial_or_start;
use crate::{Error, Notices};
use config::paths::StateFiles;
use protocol::VERSION;
use protocol::session::{EngineVersion, Purpose, Welcome};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long an older engine may take to be idle and end, if the environment says nothing else.
pub(crate) const GIVE_WAY_LIMIT: Duration = Duration::from_secs(10);
/// Who waits longer than this is told for what.
const QUIET_WAIT: Duration = Duration::from_millis(500);

/// A greeted connection to an engine of this version, and its socket.
type Reached = (Connection, Welcome, PathBuf);

/// Reaches an engine of this version on the state folder or beside it, and starts it where needed.
pub(crate) async fn reach(
    environment: &ClientEnvironment,
    files: &StateFiles,
    purpose: Purpose,
    notices: &Notices,
) -> Result<Reached, Error> {
    let on = |files: StateFiles, purpose: Purpose| async move {
        let (connection, welcome) = dial_or_start(environment, &files, purpose).await?;
        Ok::<Reached, Error>((connection, welcome, files.socket()))
    };
    let deadline = Instant::now() + environment.give_way_limit;
    let reason = loop {
        match on(files.clone(), purpose.clone()).await {
            Err(Error::OtherVersion(other)) => {
                let engine = other.engine;
                if environment.leave_old_engine || !version::is_older(&engine) {
                    break format!("an engine of version {} runs here", engine.version);
                }
                if !gives_way(files, &engine, deadline, notices).await? {
                    break format!("the engine of version {} is busy", engine.version);
                }
            }
            Err(Error::NewerState(_)) => break "a newer version keeps its cache here".to_owned(),
            settled => return settled,
        }
    };
    let beside = files.beside(VERSION);
    notices.tell(&format!(
        "{reason}: this command runs on version {VERSION}, with a cache of its own in `{}`",
        beside.dir().display()
    ));
    on(beside, purpose).await
}

/// Waits until the engine has ended, which it does when it is idle. Says whether it has.
async fn gives_way(
    files: &StateFiles,
    engine: &EngineVersion,
    deadline: Instant,
    notices: &Notices,
) -> Result<bool, Error> {
    let route = Route::Socket(files.socket());
    let mut ending = std::pin::pin!(end(&route, Purpose::Stop { force: false, when_idle: true }));
    let quietly = deadline.min(Instant::now() + QUIET_WAIT);
    let mut ended = timeout_at(quietly, &mut ending).await;
    if ended.is_err() && Instant::now() < deadline {
        notices.tell(&format!(
            "waiting for the older engine (version {}, process {}) to end its work",
            engine.version, engine.pid
        ));
        ended = timeout_at(deadline, ending).await;
    }
    match ended {
        // Ended, or gone before it was asked.
        Ok(Ok(_)) => Ok(true),
        // It has sessions and does not wait for their end.
        Ok(Err(Error::Refused(_))) | Err(_) => Ok(false),
        Ok(Err(error)) => Err(error),
    }
}
