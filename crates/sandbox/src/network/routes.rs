//! The host's routes, as the kernel lists them.

use std::net::Ipv4Addr;

/// Where the kernel lists the routes of the namespace that the reading thread is in.
pub(crate) const LIST: &str = "/proc/thread-self/net/route";

/// One route of IPv4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) network: Ipv4Addr,
    /// Zero for the default route.
    pub(crate) prefix: u8,
    pub(crate) device: String,
}

/// Reads the list; lines that are no routes are left out.
pub(crate) fn parse(text: &str) -> Vec<Route> {
    text.lines().skip(1).filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [device, network, _, _, _, _, _, mask, ..] = fields[..] else { return None };
    // Both are written as the machine's own number of the bytes in their order on the wire.
    let number = |text| u32::from_str_radix(text, 16).ok().map(u32::to_ne_bytes);
    let mask = u32::from_be_bytes(number(mask)?);
    let network = Ipv4Addr::from(number(network)?);
    Some(Route { network, prefix: mask.leading_ones() as u8, device: device.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn routes_are_read() {
        let text = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                    eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                    eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\nbroken\n";
        let routes = parse(text);
        assert_eq!(routes.len(), 2);
        assert_eq!((routes[0].prefix, routes[0].device.as_str()), (0, "eth0"));
        assert_eq!((routes[1].network.to_string().as_str(), routes[1].prefix), ("192.0.2.0", 24));
    }
}
