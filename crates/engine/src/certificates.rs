//! The machine's certificates, for commands in containers.
//!
//! A company's own authority is in the machine's bundle and in no image. So what the machine trusts is
//! added to what the image trusts, for the time of a command.

use api::{BUNDLE, Certificates};
use protocol::Digest;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use store::{Laid, Target, TargetKind};

/// Where distributions keep their bundle.
const PLACES: [&str; 5] = [
    BUNDLE,
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// What gives commands the certificates of a file, or of the machine. None if there are none.
pub(crate) fn of(file: Option<&Path>) -> Option<Certificates> {
    let own = || PLACES.iter().map(Path::new).find(|place| place.exists());
    let file = file.or_else(own)?.to_owned();
    let bundle = HostBundle { file, known: Mutex::default() };
    (!bundle.now().blocks.is_empty())
        .then(|| -> Certificates { Box::new(move || bundle.targets()) })
}

/// The machine's bundle and how it was when it was read last.
struct HostBundle {
    file: PathBuf,
    known: Mutex<(Option<Stamp>, Arc<Bundle>)>,
}

type Stamp = (u64, u64, i64, i64);

/// Certificates, each as it stands in its file.
#[derive(Debug, Default)]
struct Bundle {
    blocks: Vec<String>,
    digest: Option<Digest>,
}

impl HostBundle {
    fn now(&self) -> Arc<Bundle> {
        let found = fs::metadata(&self.file).ok();
        let stamp =
            found.map(|found| (found.ino(), found.size(), found.mtime(), found.mtime_nsec()));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != stamp || known.1.digest.is_none() {
            let bytes = fs::read(&self.file).unwrap_or_default();
            *known = (stamp, Arc::new(Bundle::read(&bytes)));
        }
        known.1.clone()
    }

    /// One file in every root, and whichever others an image has.
    fn targets(&self) -> Vec<Target> {
        let bundle = self.now();
        let target = |place: &&str| {
            let (bundle, always) = (bundle.clone(), *place == BUNDLE);
            let digest = bundle.digest?;
            let make = move |old: Option<&[u8]>| bundle.added_to(old, always);
            let laid = Laid { digest, make: Arc::new(make) };
            Some(Target { path: (*place).to_owned(), kind: TargetKind::Laid(laid) })
        };
        PLACES.iter().filter_map(target).collect()
    }
}

impl Bundle {
    fn read(bytes: &[u8]) -> Bundle {
        let text = String::from_utf8_lossy(bytes);
        let blocks = blocks(&text).map(str::to_owned).collect();
        Bundle { blocks, digest: Some(Digest::of(bytes)) }
    }

    /// What an image trusts with what we add to it; none if there is nothing to add.
    fn added_to(&self, old: Option<&[u8]>, always: bool) -> Option<Vec<u8>> {
        if old.is_none() && !always {
            return None;
        }
        let old = String::from_utf8_lossy(old.unwrap_or_default());
        let trusted: HashSet<String> = blocks(&old).map(plain).collect();
        let missing = self.blocks.iter().filter(|block| !trusted.contains(&plain(block)));
        let mut added = missing.peekable();
        added.peek()?;
        let mut text = old.clone().into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        added.for_each(|block| {
            text.push_str(block);
            text.push('\n');
        });
        Some(text.into_bytes())
    }
}

/// The certificates of a text.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split(BEGIN).skip(1).filter_map(move |rest| {
        let length = rest.find(END)? + END.len();
        let begin = rest.as_ptr() as usize - text.as_ptr() as usize - BEGIN.len();
        text.get(begin..begin + BEGIN.len() + length)
    })
}

/// A certificate without its line breaks, which differ from tool to tool.
fn plain(block: impl AsRef<str>) -> String {
    block.as_ref().split_ascii_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(body: &str) -> String {
        format!("{BEGIN}\n{body}\n{END}\n")
    }

    #[test]
    fn what_the_machine_trusts_is_added_to_what_the_image_trusts() {
        let text = format!("# first\n{}# second\n{}", certificate("A\nB"), certificate("C"));
        let bundle = Bundle::read(text.as_bytes());
        assert_eq!(bundle.blocks.len(), 2);
        let own = format!("{}# mine\n{}", certificate("D"), certificate("AB").trim_end());
        let merged = bundle.added_to(Some(own.as_bytes()), false).unwrap();
        assert_eq!(String::from_utf8(merged).unwrap(), format!("{own}\n{}", certificate("C")));
    }

    #[test]
    fn an_image_that_trusts_all_of_it_stays_as_it_is() {
        let bundle = Bundle::read(certificate("A").as_bytes());
        assert_eq!(bundle.added_to(Some(certificate("A").as_bytes()), true), None);
        assert_eq!(bundle.added_to(None, false), None);
        assert_eq!(bundle.added_to(None, true).unwrap(), certificate("A").as_bytes());
        assert!(Bundle::read(b"no certificate").blocks.is_empty());
    }

    #[test]
    fn a_change_of_the_machines_bundle_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        fs::write(&file, "").unwrap();
        assert!(of(Some(&file)).is_none(), "nothing to trust");
        fs::write(&file, certificate("A")).unwrap();
        let certificates = of(Some(&file)).unwrap();
        let before = certificates();
        fs::write(&file, certificate("AA")).unwrap();
        assert_eq!(before.len(), PLACES.len());
        assert_ne!(certificates(), before);
    }
}
