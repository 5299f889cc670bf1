//! [`Names`]: the names that are ours, by who asks.
//!
//! A party's names are answered to its members alone, and a member may know some of them by names of its
//! own. Nobody learns of anything by asking for a name of another party.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What names of ours may end in: containers have it as their search domain.
pub(crate) const DOMAIN: &str = "ci-tool.internal";

/// Names and their addresses. Clones are the same table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Arc<RwLock<Table>>);

#[derive(Debug, Default)]
struct Table {
    askers: HashMap<Ipv4Addr, Asker>,
    /// By party and name.
    names: HashMap<(u32, String), Vec<Ipv4Addr>>,
    /// How many askers there have been.
    count: u64,
}

#[derive(Debug)]
struct Asker {
    /// Tells it from an earlier one with the same address.
    number: u64,
    party: u32,
    aliases: HashMap<String, Ipv4Addr>,
}

/// A member of a party, as one who asks; it is forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct Asking {
    names: Names,
    address: Ipv4Addr,
    number: u64,
}

/// A name in the table; it goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Name {
    names: Names,
    key: (u32, String),
    address: Ipv4Addr,
}

/// What is known of a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It has these addresses.
    Ours(Vec<Ipv4Addr>),
    /// It would be ours, and there is none.
    Nobody,
    /// Somebody else may know it.
    NotOurs,
}

impl Names {
    /// Answers who asks from an address as a member of a party, with names that only it knows.
    pub(crate) fn admit(
        &self,
        address: Ipv4Addr,
        party: u32,
        aliases: &[(String, Ipv4Addr)],
    ) -> Asking {
        let aliases = aliases.iter().map(|(name, address)| (plain(name), *address)).collect();
        let mut table = self.write();
        table.count += 1;
        let number = table.count;
        table.askers.insert(address, Asker { number, party, aliases });
        Asking { names: self.clone(), address, number }
    }

    /// Gives a name of a party an address, beside those that it may have already. Case does not matter,
    /// nor does a dot at the end.
    pub(crate) fn publish(&self, party: u32, name: &str, address: Ipv4Addr) -> Name {
        let key = (party, plain(name));
        self.write().names.entry(key.clone()).or_default().push(address);
        Name { names: self.clone(), key, address }
    }

    /// What a name means to who asks.
    pub(crate) fn find(&self, asker: Ipv4Addr, name: &str) -> Found {
        let plain = plain(name);
        let own = plain.strip_suffix(DOMAIN).and_then(|rest| rest.strip_suffix('.'));
        let table = self.read();
        let known = table.askers.get(&asker).and_then(|asker| {
            let name = own.unwrap_or(&plain);
            let alias = asker.aliases.get(name).map(|address| vec![*address]);
            alias.or_else(|| table.names.get(&(asker.party, name.to_owned())).cloned())
        });
        match known {
            Some(addresses) => Found::Ours(addresses),
            None if own.is_some() => Found::Nobody,
            None => Found::NotOurs,
        }
    }

    /// Every change is one insert or one remove: a panic elsewhere leaves the table whole.
    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut table = self.names.write();
        if table.askers.get(&self.address).is_some_and(|asker| asker.number == self.number) {
            table.askers.remove(&self.address);
        }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let mut table = self.names.write();
        let Some(addresses) = table.names.get_mut(&self.key) else { return };
        if let Some(place) = addresses.iter().position(|address| *address == self.address) {
            addresses.remove(place);
        }
        if addresses.is_empty() {
            table.names.remove(&self.key);
        }
    }
}

fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const TWO: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
    const ASKER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

    #[test]
    fn a_name_is_there_as_long_as_somebody_holds_it() {
        let names = Names::default();
        let _asking = names.admit(ASKER, 1, &[]);
        let first = names.publish(1, "Web.Example.", ONE);
        let second = names.publish(1, "web.example", TWO);
        assert_eq!(names.find(ASKER, "WEB.example"), Found::Ours(vec![ONE, TWO]));
        drop(first);
        assert_eq!(names.find(ASKER, "web.example."), Found::Ours(vec![TWO]));
        drop(second);
        assert_eq!(names.find(ASKER, "web.example"), Found::NotOurs);
    }

    #[test]
    fn only_members_of_a_party_learn_its_names() {
        let names = Names::default();
        let _name = names.publish(1, "db", ONE);
        assert_eq!(names.find(ASKER, "db"), Found::NotOurs);
        let stranger = names.admit(ASKER, 2, &[]);
        assert_eq!(names.find(ASKER, "db"), Found::NotOurs);
        let member = names.admit(ASKER, 1, &[("Mine".to_owned(), TWO)]);
        // Who came before at this address takes nothing away when it goes.
        drop(stranger);
        assert_eq!(names.find(ASKER, "db.ci-tool.internal."), Found::Ours(vec![ONE]));
        assert_eq!(names.find(ASKER, "mine"), Found::Ours(vec![TWO]));
        assert_eq!(names.find(TWO, "mine"), Found::NotOurs);
        drop(member);
        assert_eq!(names.find(ASKER, "db.ci-tool.internal"), Found::Nobody);
    }
}
