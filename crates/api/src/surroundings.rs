//! [`Surroundings`]: what a command gets of the machine it runs on and what is no part of its action.
//!
//! It has to be right for the machine and says nothing about the work: how the network is reached, and whom to
//! trust there. So equal work stays equal on another machine, behind another proxy. What a container
//! says itself always wins.

use store::Target;

/// What of the machine a command gets.
#[derive(Default)]
pub struct Surroundings {
    /// Variables that say how the network is reached.
    pub proxies: Vec<(String, String)>,
    /// Gives the files with certificates that commands trust; none adds nothing.
    pub certificates: Option<Certificates>,
}

/// Gives files that are laid over those of a root, as they are now.
pub type Certificates = Box<dyn Fn() -> Vec<Target> + Send + Sync>;

/// Where most programs look for certificates, and where these are in every root.
pub const BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Variables that lead programs there which look elsewhere.
const BUNDLE_VARIABLES: [&str; 5] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
];

impl Surroundings {
    /// The files with certificates, as they are now.
    pub(crate) fn targets(&self) -> Vec<Target> {
        self.certificates.as_ref().map(|certificates| certificates()).unwrap_or_default()
    }

    /// Adds to an environment what it does not say itself, in capitals or not.
    pub(crate) fn add_to(&self, env: &mut Vec<(String, String)>) {
        let own: Vec<String> = env.iter().map(|(name, _)| name.clone()).collect();
        let says = |name: &str| own.iter().any(|own| own.eq_ignore_ascii_case(name));
        env.extend(self.proxies.iter().filter(|(name, _)| !says(name)).cloned());
        if self.certificates.is_some() {
            let missing = BUNDLE_VARIABLES.into_iter().filter(|name| !says(name));
            env.extend(missing.map(|name| (name.to_owned(), BUNDLE.to_owned())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn what_a_container_says_wins() {
        let surroundings = Surroundings {
            proxies: vec![pair("HTTP_PROXY", "http://p"), pair("no_proxy", "localhost")],
            certificates: Some(Box::new(Vec::new)),
        };
        let mut env = vec![pair("http_proxy", "http://own"), pair("SSL_CERT_FILE", "/own")];
        surroundings.add_to(&mut env);
        let find = |name: &str| env.iter().filter(|(known, _)| known == name).count();
        assert_eq!((find("HTTP_PROXY"), find("no_proxy"), find("SSL_CERT_FILE")), (0, 1, 1));
        assert!(env.contains(&pair("CURL_CA_BUNDLE", BUNDLE)), "{env:?}");
    }
}
