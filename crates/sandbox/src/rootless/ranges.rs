//! Which ids of the machine a user may give to the inside of a namespace.
//!
//! `/etc/subuid` and `/etc/subgid` say so, one range a line: `name:first:count`, where the name may be
//! a number. User and group 0 inside are the user's own; the rest is taken from the ranges.

use super::Error;
use std::fs::read_to_string;

/// Ids beside the user's own. With that one they are the 65,536 that images and packages expect.
pub(super) const NEEDED: u64 = 65_535;

/// Where free ranges begin on most machines.
const FIRST: u64 = 100_000;

const USERS: &str = "/etc/subuid";
const GROUPS: &str = "/etc/subgid";

/// The user who starts the engine.
pub(super) struct Account {
    uid: u32,
    gid: u32,
    name: Option<String>,
}

/// What the programs that write the maps are told: first id inside, first outside, count, and again.
pub(super) struct Maps {
    pub(super) users: Vec<String>,
    pub(super) groups: Vec<String>,
}

impl Account {
    /// The user of this process.
    pub(super) fn own() -> Result<Account, Error> {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        let accounts = read_to_string("/etc/passwd").map_err(Error::host("read `/etc/passwd`"))?;
        Ok(Account { uid, gid, name: name_of(&accounts, uid) })
    }

    /// The maps for this user.
    pub(super) fn maps(&self) -> Result<Maps, Error> {
        // A file that is not there gives nothing to anybody.
        let users = read_to_string(USERS).unwrap_or_default();
        let groups = read_to_string(GROUPS).unwrap_or_default();
        let (user_ranges, group_ranges) = (self.ranges(&users), self.ranges(&groups));
        let short = |ranges: &[Range]| total(ranges) < NEEDED;
        if short(&user_ranges) || short(&group_ranges) {
            let first = free_range(&[&users, &groups]);
            let range = format!("{first}-{}", first + NEEDED);
            let mut options = vec![];
            if short(&user_ranges) {
                options.push(format!("--add-subuids {range}"));
            }
            if short(&group_ranges) {
                options.push(format!("--add-subgids {range}"));
            }
            let (file, found) = match short(&user_ranges) {
                true => (USERS, total(&user_ranges)),
                false => (GROUPS, total(&group_ranges)),
            };
            let user = self.name.clone().unwrap_or_else(|| self.uid.to_string());
            return Err(Error::NoRange { file, user, found, options: options.join(" ") });
        }
        Ok(Maps {
            users: triples(self.uid, &user_ranges),
            groups: triples(self.gid, &group_ranges),
        })
    }

    fn ranges(&self, text: &str) -> Vec<Range> {
        let number = self.uid.to_string();
        let is_own = |name: &str| name == number || Some(name) == self.name.as_deref();
        parse(text).filter(|(name, _)| is_own(name)).map(|(_, range)| range).collect()
    }
}

/// So many ids from the first one on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    first: u64,
    count: u64,
}

fn total(ranges: &[Range]) -> u64 {
    ranges.iter().map(|range| range.count).sum()
}

fn parse(text: &str) -> impl Iterator<Item = (&str, Range)> {
    text.lines().filter_map(|line| {
        let mut fields = line.trim().split(':');
        let name = fields.next().filter(|name| !name.is_empty() && !name.starts_with('#'))?;
        let (first, count) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some((name, Range { first, count }))
    })
}

/// The whole map: the own id first, then ranges until there are enough.
fn triples(own: u32, ranges: &[Range]) -> Vec<String> {
    let mut words = vec!["0".to_owned(), own.to_string(), "1".to_owned()];
    let mut next = 1;
    for range in ranges {
        let count = range.count.min(NEEDED + 1 - next);
        if count > 0 {
            words.extend([next, range.first, count].map(|number| number.to_string()));
        }
        next += count;
    }
    words
}

/// Where a range begins that nobody has.
fn free_range(texts: &[&str]) -> u64 {
    let ends =
        texts.iter().flat_map(|text| parse(text)).map(|(_, range)| range.first + range.count);
    ends.max().unwrap_or(FIRST).max(FIRST)
}

fn name_of(accounts: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    let account = accounts.lines().find(|line| line.split(':').nth(2) == Some(&uid))?;
    account.split(':').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ann() -> Account {
        let accounts = "root:x:0:0::/root:/bin/sh\nann:x:1001:1002::/:/bin/sh\n";
        Account { uid: 1001, gid: 1002, name: name_of(accounts, 1001) }
    }

    #[test]
    fn ranges_are_found_by_name_and_by_number() {
        let text = "bob:100000:65536\nann:165536:65536\n# ann:1:2\n\nbroken\n1001:300000:10\n";
        let expected =
            [Range { first: 165_536, count: 65_536 }, Range { first: 300_000, count: 10 }];
        assert_eq!(ann().ranges(text), expected);
        assert_eq!(free_range(&[text, ""]), 300_010);
        assert_eq!(free_range(&["", ""]), FIRST);
    }

    #[test]
    fn maps_have_65536_ids_from_as_many_ranges_as_it_takes() {
        let one = [Range { first: 165_536, count: 65_536 }];
        assert_eq!(triples(1001, &one).join(" "), "0 1001 1 1 165536 65535");
        let two = [
            Range { first: 100, count: 60_000 },
            Range { first: 90_000, count: 9_000 },
            Range { first: 500_000, count: 9_000 },
        ];
        assert_eq!(triples(1001, &two).join(" "), "0 1001 1 1 100 60000 60001 90000 5535");
    }
}
