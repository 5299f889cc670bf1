//! [`Subnet`]: the addresses that containers have, and how a free range is found.
//!
//! ```text
//! .0.1                the gateway: where containers send everything, and where names are answered
//! .0.2 and on         one address for each container
//! the last quarter    one address for each service that is not in a container
//! the last eight      the link between the host and the engine's network, and the probe's
//! ```

use super::routes::Route;
use std::fmt;
use std::net::Ipv4Addr;

/// Addresses at the end that are no container's.
const RESERVED: u32 = 8;
/// The longest prefix that leaves room for the engine and a few containers.
const LONGEST: u8 = 24;
/// The range that is tried first when nobody names one: `10.210.0.0/16`.
const FIRST: u8 = 210;
/// How many ranges are tried, those before the first after those behind it.
const TRIED: u8 = 200;

/// A range of private addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    first: u32,
    prefix: u8,
}

impl Subnet {
    /// The range that begins with this address. None if it is not the first of its range, if there is
    /// too little room, or if it is not in one of the ranges that are for private use.
    pub fn new(first: Ipv4Addr, prefix: u8) -> Option<Subnet> {
        let subnet = Subnet { first: first.into(), prefix };
        let sound = (8..=LONGEST).contains(&prefix)
            && subnet.first.trailing_zeros() >= u32::from(32 - prefix)
            && first.is_private()
            && subnet.at(subnet.size() - 1).is_private();
        sound.then_some(subnet)
    }

    /// The first of the usual ranges that no route of the host leads into.
    pub(crate) fn free(taken: &[Route]) -> Option<Subnet> {
        let second = |number: u8| FIRST.wrapping_add(number);
        // The edges of the range are everybody's favourites.
        let numbers = (0..TRIED).map(second).filter(|number| !matches!(number, 0 | 255));
        let mut ranges =
            numbers.filter_map(|number| Subnet::new(Ipv4Addr::new(10, number, 0, 0), 16));
        ranges.find(|range| !range.is_taken(taken))
    }

    /// Whether a route of the host leads to some of these addresses. The default route does not count.
    pub(crate) fn is_taken(&self, taken: &[Route]) -> bool {
        let overlaps = |route: &Route| {
            let shift = 32 - u32::from(self.prefix.min(route.prefix));
            u32::from(route.network) >> shift == self.first >> shift
        };
        taken.iter().filter(|route| route.prefix > 0).any(overlaps)
    }

    /// Where containers send everything.
    pub(crate) fn gateway(&self) -> Ipv4Addr {
        self.at(1)
    }

    /// How many containers there is room for.
    pub(crate) fn places(&self) -> u32 {
        self.size() - RESERVED - 2 - self.stands()
    }

    /// How many services there is room for that are not in a container.
    pub(crate) fn stands(&self) -> u32 {
        self.size() / 4
    }

    /// The address of a service that is not in a container.
    pub(crate) fn stand(&self, number: u32) -> Ipv4Addr {
        self.at(2 + self.places() + number % self.stands())
    }

    /// The address of a container.
    pub(crate) fn container(&self, place: u32) -> Ipv4Addr {
        self.at(2 + place % self.places())
    }

    /// The two ends of the link between the host and the engine's network.
    pub(crate) fn uplink(&self) -> (Ipv4Addr, Ipv4Addr) {
        (self.at(self.size() - 3), self.at(self.size() - 2))
    }

    /// The two ends of the link that the probe listens on.
    pub(crate) fn probe(&self) -> (Ipv4Addr, Ipv4Addr) {
        (self.at(self.size() - 7), self.at(self.size() - 6))
    }

    /// The first address and the length of the prefix.
    pub(crate) fn parts(&self) -> (Ipv4Addr, u8) {
        (self.at(0), self.prefix)
    }

    fn size(&self) -> u32 {
        1 << (32 - self.prefix)
    }

    fn at(&self, offset: u32) -> Ipv4Addr {
        Ipv4Addr::from(self.first + offset)
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.at(0), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(text: &str, prefix: u8) -> Route {
        Route { network: text.parse().unwrap(), prefix, device: "eth0".to_owned() }
    }

    #[test]
    fn a_range_has_places_that_do_not_overlap() {
        let subnet = Subnet::new(Ipv4Addr::new(10, 210, 0, 0), 16).unwrap();
        assert_eq!(subnet.gateway().to_string(), "10.210.0.1");
        assert_eq!(subnet.container(0).to_string(), "10.210.0.2");
        let last = subnet.container(subnet.places() - 1);
        assert_eq!(last.to_string(), "10.210.191.247");
        assert_eq!(subnet.stand(0).to_string(), "10.210.191.248");
        assert_eq!(subnet.stand(subnet.stands() - 1).to_string(), "10.210.255.247");
        assert_eq!(subnet.stand(subnet.stands()), subnet.stand(0));
        assert_eq!(subnet.container(subnet.places()), subnet.container(0));
        assert_eq!(subnet.uplink().0.to_string(), "10.210.255.253");
        assert_eq!(subnet.probe().1.to_string(), "10.210.255.250");
    }

    #[test]
    fn only_private_ranges_with_room_are_taken() {
        for (text, prefix, sound) in [
            ("10.0.0.0", 8, true),
            ("172.16.0.0", 12, true),
            ("192.168.7.0", 24, true),
            ("192.168.7.0", 25, false),
            ("10.1.1.0", 16, false),
            ("8.8.0.0", 16, false),
            ("192.168.0.0", 15, false),
        ] {
            let subnet = Subnet::new(text.parse().unwrap(), prefix);
            assert_eq!(subnet.is_some(), sound, "{text}/{prefix}");
        }
    }

    #[test]
    fn a_range_that_the_host_uses_is_left_alone() {
        let free = |taken: &[Route]| Subnet::free(taken).map(|subnet| subnet.to_string());
        assert_eq!(free(&[route("0.0.0.0", 0)]).unwrap(), "10.210.0.0/16");
        let taken = [route("10.210.255.252", 30), route("10.208.0.0", 14), route("10.212.1.1", 32)];
        assert_eq!(free(&taken).unwrap(), "10.213.0.0/16");
        assert_eq!(free(&[route("10.0.0.0", 8)]), None);
    }
}
