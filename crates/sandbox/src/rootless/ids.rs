//! The two views on an id: the host's, and that of a user namespace.

use std::fs::read_to_string;

/// Whether this process is in a user namespace of somebody, so that it is root only there.
pub fn inside() -> bool {
    let map = read_to_string("/proc/self/uid_map").unwrap_or_default();
    !map.is_empty() && !is_whole(&map)
}

/// User and group of a process outside, as this process knows them. An id that is not known here is
/// our own: whoever hands us its id and its files is our own user.
pub fn inside_ids((user, group): (u32, u32)) -> (u32, u32) {
    let translate = |file: &str, id: u32, own: u32| match read_to_string(file) {
        Ok(map) => to_inside(&map, id).unwrap_or(own),
        Err(_) => own,
    };
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    (translate("/proc/self/uid_map", user, own.0), translate("/proc/self/gid_map", group, own.1))
}

/// Whether the map is that of a process that is in no user namespace but the first.
fn is_whole(map: &str) -> bool {
    let mut lines = lines(map);
    lines.next() == Some((0, 0, u64::from(u32::MAX))) && lines.next().is_none()
}

fn to_inside(map: &str, id: u32) -> Option<u32> {
    let id = u64::from(id);
    let found = lines(map).find(|(_, outside, count)| (*outside..outside + count).contains(&id))?;
    let (inside, outside, _) = found;
    u32::try_from(inside + (id - outside)).ok()
}

/// First id inside, first id outside, how many.
fn lines(map: &str) -> impl Iterator<Item = (u64, u64, u64)> {
    map.lines().filter_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(inside)), Some(Ok(outside)), Some(Ok(count))) => {
                Some((inside, outside, count))
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "         0          0 4294967295\n";
    const USERS: &str = "         0       1001          1\n         1     100000      65535\n";

    #[test]
    fn the_machine_itself_is_no_namespace_of_somebody() {
        assert!(is_whole(WHOLE));
        assert!(!is_whole(USERS));
        assert!(!is_whole("0 0 65536\n"));
    }

    #[test]
    fn ids_are_found_in_their_line() {
        for (map, outside, inside) in [
            (WHOLE, 1001, Some(1001)),
            (USERS, 1001, Some(0)),
            (USERS, 100_000, Some(1)),
            (USERS, 165_534, Some(65_535)),
            (USERS, 165_535, None),
            (USERS, 0, None),
            ("damaged 1", 1, None),
            ("", 1, None),
        ] {
            assert_eq!(to_inside(map, outside), inside, "{outside} in {map}");
        }
    }
}
