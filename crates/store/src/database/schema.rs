//! Opening the file, and what to do when it is damaged.

use super::now;
use crate::Error;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the tables, raised together with the store's format. The one before is brought up to date; any other is begun anew, since the
/// contents are a cache.
const SCHEMA: i64 = 2;
/// Call records are kept this long after their last use.
const CALLS_KEPT: i64 = 7 * 24 * 3600;

/// The value comes last, so that a pass over all needs does not read it.
const ACTIONS: &str = "
    CREATE TABLE actions(
        key BLOB PRIMARY KEY, kind TEXT NOT NULL, label TEXT NOT NULL,
        created INTEGER NOT NULL, last_used INTEGER NOT NULL,
        needs BLOB NOT NULL, value BLOB NOT NULL);
    CREATE TABLE sizes(
        layer BLOB PRIMARY KEY, bytes INTEGER NOT NULL, shared BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE manifests(
        layer BLOB PRIMARY KEY, digest BLOB NOT NULL, scrubbed INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX manifests_by_scrubbed ON manifests(scrubbed);
";

const TABLES: &str = "
    CREATE TABLE calls(
        digest BLOB PRIMARY KEY, handle INTEGER NOT NULL,
        record BLOB NOT NULL, last_used INTEGER NOT NULL);
    CREATE INDEX calls_by_handle ON calls(handle);
    CREATE INDEX calls_by_last_used ON calls(last_used);
    CREATE TABLE merges(
        input BLOB PRIMARY KEY, layer TEXT NOT NULL, level INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX merges_by_layer ON merges(layer);
    CREATE TABLE digests(snapshot BLOB PRIMARY KEY, tree BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
";

/// Opens the file for writing. If that fails it is moved aside and begun anew, unless what failed is
/// the disk and not the file. Gives a word for the user where results were lost.
pub(super) fn open_or_renew(path: &Path) -> Result<(Connection, Option<String>), Error> {
    let marker = damage_marker(path);
    let first = if marker.exists() {
        Err("it was found damaged while in use".to_owned())
    } else {
        match open_writer(path) {
            Err(Error::Database(error)) if !is_about_file(&error) => return Err(error.into()),
            opened => opened.map_err(|error| error.to_string()),
        }
    };
    let reason = match first {
        Ok((connection, 0)) => return Ok((connection, None)),
        Ok((connection, forgotten)) => {
            let word = format!(
                "the cache of an older version was taken over: {forgotten} results are made anew"
            );
            return Ok((connection, Some(word)));
        }
        Err(reason) => reason,
    };
    let aside = path.with_extension("sqlite.damaged");
    tracing::warn!(
        "the database `{}` cannot be used ({reason}); it is moved to `{}` and begun anew",
        path.display(),
        aside.display()
    );
    move_aside(path, &aside)?;
    let (connection, _) = open_writer(path)?;
    remove(&marker)?;
    let word = format!("the database of the cache cannot be used ({reason}) and is begun anew");
    Ok((connection, Some(word)))
}

pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "query_only", true)?;
    set_limits(&connection)?;
    Ok(connection)
}

/// File whose presence says that the database is to be begun anew at the next start.
pub(super) fn damage_marker(path: &Path) -> PathBuf {
    path.with_extension("sqlite.renew")
}

pub(super) fn mark_damaged(marker: &Path) {
    if let Err(error) = std::fs::write(marker, "") {
        tracing::warn!("cannot write `{}`: {error}", marker.display());
    }
}

/// Whether the error says that the file itself is bad.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Whether another file in its place would be any better.
fn is_about_file(error: &rusqlite::Error) -> bool {
    use ErrorCode::{
        DatabaseBusy, DatabaseLocked, DiskFull, OutOfMemory, PermissionDenied, ReadOnly,
    };
    let others = [DatabaseBusy, DatabaseLocked, DiskFull, OutOfMemory, PermissionDenied, ReadOnly];
    error.sqlite_error_code().is_none_or(|code| !others.contains(&code))
}

/// Forgets call records that nobody has used for long.
pub(super) fn expire_calls(connection: &Connection) -> rusqlite::Result<usize> {
    connection.execute("DELETE FROM calls WHERE last_used < ?1", [now() - CALLS_KEPT])
}

/// Opens the file, and says how many results were forgotten to bring it up to date.
fn open_writer(path: &Path) -> Result<(Connection, i64), Error> {
    let mut connection = Connection::open(path)?;
    set_limits(&connection)?;
    // Nothing is lost if making the tables is: they are made again.
    connection.pragma_update(None, "synchronous", "off")?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let mut forgotten = 0;
    match (version, tables) {
        (0, 0) => create(&mut connection)?,
        (SCHEMA, _) => probe(&connection)?,
        (1, _) => forgotten = migrate(&mut connection)?,
        _ => return Err(Error::Commit(format!("its tables have version {version}"))),
    }
    // A commit is on disk when it returns; only the writer's thread waits for that.
    connection.pragma_update(None, "synchronous", "full")?;
    Ok((connection, forgotten))
}

fn set_limits(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(10))?;
    // In KiB. Each connection has a cache of its own, and the kernel caches the file anyway.
    connection.pragma_update(None, "cache_size", -64)
}

fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(ACTIONS)?;
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    transaction.commit()
}

/// Brings the tables of version 1 up to date. Its results did not say what they need, so there is no
/// telling what may be collected: they are forgotten.
fn migrate(connection: &mut Connection) -> rusqlite::Result<i64> {
    let transaction = connection.transaction()?;
    let sql = "SELECT count(*) FROM actions";
    let forgotten: i64 = transaction.query_row(sql, [], |row| row.get(0))?;
    transaction.execute_batch("DROP TABLE actions")?;
    transaction.execute_batch(ACTIONS)?;
    super::seal::seal_calls(&transaction)?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    transaction.commit()?;
    tracing::warn!("the store was written by an older version: {forgotten} results are made anew");
    Ok(forgotten)
}

/// Reads a little of every table: damage at the roots shows at once, the rest when it is met.
fn probe(connection: &Connection) -> rusqlite::Result<()> {
    for table in ["actions", "sizes", "manifests", "calls", "merges", "digests", "meta"] {
        let sql = format!("SELECT EXISTS(SELECT 1 FROM {table})");
        connection.query_row(&sql, [], |row| row.get::<_, bool>(0))?;
    }
    Ok(())
}

fn move_aside(path: &Path, aside: &Path) -> Result<(), Error> {
    if path.exists() {
        std::fs::rename(path, aside).map_err(Error::io("move aside", path))?;
    }
    // They belong to the damaged file and would be replayed into the new one.
    for suffix in ["sqlite-wal", "sqlite-shm"] {
        remove(&path.with_extension(suffix))?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
