//! Who owns a file and who runs a command: `user[:group]`, by name or number.
//!
//! Names are looked up in the passwd and group files of the tree they are used on, never on the host.

use protocol::{DigestBuilder, Error};
use std::io::Read;
use store::{Owner, View};

/// Largest passwd or group file that is read.
const MAX_DATABASE_BYTES: u64 = 16 << 20;

/// An owner as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnerSpec {
    /// root:root, for new entries.
    Root,
    /// What the source has, for copies.
    Source,
    /// `user[:group]`.
    Named(String),
}

/// A user to run a command as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// User id.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// Home directory.
    pub home: String,
}

/// Reads a file of the tree; none where there is no such file.
pub(crate) type ReadFile<'a> = dyn Fn(&str) -> Option<String> + 'a;

struct Account {
    name: String,
    uid: u32,
    gid: u32,
    home: String,
}

impl OwnerSpec {
    /// The owner that an argument names. Empty means root.
    pub(crate) fn parse(text: &str) -> Self {
        if text.is_empty() { Self::Root } else { Self::Named(text.to_owned()) }
    }

    /// Feeds the identity of an edit.
    pub(crate) fn digest_into(&self, digest: &mut DigestBuilder) {
        match self {
            Self::Root => digest.text("root"),
            Self::Source => digest.text("source"),
            Self::Named(text) => digest.text("named").text(text),
        };
    }

    /// Whether account files must be read to know the owner.
    pub(crate) fn is_by_name(&self) -> bool {
        matches!(self, Self::Named(text) if !text.chars().all(|c| c.is_ascii_digit() || c == ':'))
    }

    /// The numbers; none keeps the source's.
    pub(crate) fn resolve(&self, read: &ReadFile<'_>) -> Result<Option<Owner>, Error> {
        match self {
            Self::Root => Ok(Some(Owner::default())),
            Self::Source => Ok(None),
            Self::Named(text) => {
                let identity = identify(text, read)?;
                Ok(Some(Owner { uid: identity.uid, gid: identity.gid }))
            }
        }
    }
}

/// Looks up `user[:group]`. Empty is root.
pub(crate) fn identify(text: &str, read: &ReadFile<'_>) -> Result<Identity, Error> {
    let (user, group) = match text.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (text, None),
    };
    let accounts = accounts(&read("/etc/passwd").unwrap_or_default());
    let wanted = if user.is_empty() { "0" } else { user };
    let account = match wanted.parse::<u32>() {
        Ok(uid) => accounts.iter().find(|account| account.uid == uid),
        Err(_) => accounts.iter().find(|account| account.name == wanted),
    };
    let uid = match (account, wanted.parse::<u32>()) {
        (Some(account), _) => account.uid,
        (None, Ok(uid)) => uid,
        (None, Err(_)) => return Err(Error::user(format!("unable to find user `{user}`"))),
    };
    let groups_text = read("/etc/group").unwrap_or_default();
    let gid = match group {
        Some(group) => find_group(group, &groups_text)?,
        None => account.map_or(0, |account| account.gid),
    };
    let groups = match (account, group) {
        (Some(account), None) => memberships(&account.name, gid, &groups_text),
        _ => vec![],
    };
    let home = account.map_or_else(|| "/".to_owned(), |account| account.home.clone());
    Ok(Identity { uid, gid, groups, home })
}

/// Reads a file of a view if it is a regular one of sane size.
pub(crate) fn read_small_file(view: &View, path: &str) -> Option<String> {
    let file = view.open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_DATABASE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn accounts(passwd: &str) -> Vec<Account> {
    let parse = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        let home = fields.nth(1)?.to_owned();
        Some(Account { name, uid, gid, home })
    };
    passwd.lines().filter_map(parse).collect()
}

/// Name, id and members of each group.
fn groups(text: &str) -> impl Iterator<Item = (&str, u32, &str)> {
    text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let gid = fields.nth(1)?.parse().ok()?;
        Some((name, gid, fields.next().unwrap_or_default()))
    })
}

fn find_group(group: &str, text: &str) -> Result<u32, Error> {
    if let Ok(gid) = group.parse() {
        return Ok(gid);
    }
    groups(text)
        .find(|(name, ..)| *name == group)
        .map(|(_, gid, _)| gid)
        .ok_or_else(|| Error::user(format!("unable to find group `{group}`")))
}

fn memberships(user: &str, primary: u32, text: &str) -> Vec<u32> {
    groups(text)
        .filter(|(_, gid, members)| *gid != primary && members.split(',').any(|name| name == user))
        .map(|(_, gid, _)| gid)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Option<String> {
        match path {
            "/etc/passwd" => Some(
                "root:x:0:0:root:/root:/bin/sh\nbroken\nann:x:1000:1001::/home/ann:/bin/sh\n"
                    .into(),
            ),
            "/etc/group" => Some("root:x:0:\nstaff:x:50:ann,bob\nann:x:1001:\nbob:x:7:".into()),
            _ => None,
        }
    }

    #[track_caller]
    fn check(text: &str, expected: Result<(u32, u32, Vec<u32>, &str), &str>) {
        let found = identify(text, &read);
        match (found, expected) {
            (Ok(found), Ok((uid, gid, groups, home))) => {
                let home = home.to_owned();
                assert_eq!(found, Identity { uid, gid, groups, home }, "{text}");
            }
            (Err(found), Err(expected)) => assert_eq!(found.message, expected, "{text}"),
            (found, expected) => panic!("{text}: {found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn names_and_numbers() {
        check("", Ok((0, 0, vec![], "/root")));
        check("root", Ok((0, 0, vec![], "/root")));
        check("ann", Ok((1000, 1001, vec![50], "/home/ann")));
        check("1000", Ok((1000, 1001, vec![50], "/home/ann")));
        check("ann:staff", Ok((1000, 50, vec![], "/home/ann")));
        check("ann:12", Ok((1000, 12, vec![], "/home/ann")));
        check("77", Ok((77, 0, vec![], "/")));
        check("77:88", Ok((77, 88, vec![], "/")));
        check("nobody", Err("unable to find user `nobody`"));
        check("ann:none", Err("unable to find group `none`"));
    }

    #[test]
    fn a_tree_without_accounts_knows_numbers_only() {
        assert_eq!(identify("0", &|_| None).unwrap().uid, 0);
        assert!(identify("root", &|_| None).is_err());
    }
}
