//! [`Names`]: the names that are ours.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, PoisonError, RwLock};

/// Names and their addresses. Clones are the same table.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<RwLock<HashMap<String, Vec<Ipv4Addr>>>>);

/// A name in the table; it goes when this is dropped.
#[derive(Debug)]
pub struct Name {
    names: Names,
    name: String,
    address: Ipv4Addr,
}

impl Names {
    /// Gives a name an address, beside those that it may have already. Case does not matter, nor does
    /// a dot at the end.
    pub fn publish(&self, name: &str, address: Ipv4Addr) -> Name {
        let name = plain(name);
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.entry(name.clone()).or_default().push(address);
        Name { names: self.clone(), name, address }
    }

    /// The addresses of a name of ours.
    pub(crate) fn find(&self, name: &str) -> Option<Vec<Ipv4Addr>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if table.is_empty() { None } else { table.get(&plain(name)).cloned() }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let mut table = self.names.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some(addresses) = table.get_mut(&self.name) else { return };
        if let Some(place) = addresses.iter().position(|address| *address == self.address) {
            addresses.remove(place);
        }
        if addresses.is_empty() {
            table.remove(&self.name);
        }
    }
}

fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_there_as_long_as_somebody_holds_it() {
        let names = Names::default();
        let (one, two) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3));
        let first = names.publish("Web.Example.", one);
        let second = names.publish("web.example", two);
        assert_eq!(names.find("WEB.example"), Some(vec![one, two]));
        drop(first);
        assert_eq!(names.find("web.example."), Some(vec![two]));
        drop(second);
        assert_eq!(names.find("web.example"), None);
    }
}
