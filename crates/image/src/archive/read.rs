//! [`Archive`]: finds an image in a file.

use super::{DOCKER_NAME, DockerImage, INDEX_NAME, blob_name};
use crate::error::shorten;
use crate::manifest::json;
use crate::tar::{Kind, Reader};
use crate::{Descriptor, Digest, Document, Error, Index, MAX_DOCUMENT_BYTES, Manifest, Platform};
use std::collections::HashMap;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Most files in an archive: an image has a few for each layer.
const MAX_MEMBERS: usize = 100_000;
/// How deep indexes may nest.
const MAX_NESTING: usize = 4;
/// How many links may lead from one file of an archive to the next.
const MAX_LINKS: usize = 8;
/// Annotations that name an image in a layout.
const NAMES: [&str; 2] = ["org.opencontainers.image.ref.name", "io.containerd.image.name"];

/// A file that holds images, uncompressed itself.
pub struct Archive<R> {
    file: R,
    members: HashMap<String, Member>,
}

#[derive(Clone, Debug)]
enum Member {
    File { offset: u64, size: u64 },
    Link(String),
}

/// An image in an archive.
#[derive(Debug)]
pub struct Found {
    /// Digest of its manifest, where it has one.
    pub manifest: Option<Digest>,
    /// The bytes of its configuration.
    pub config: Vec<u8>,
    /// Its layers, oldest first.
    pub layers: Vec<FoundLayer>,
    /// What its manifest says beside.
    pub annotations: Vec<(String, String)>,
}

/// A layer in an archive.
#[derive(Clone, Debug)]
pub struct FoundLayer {
    /// Where its bytes begin.
    pub offset: u64,
    /// How many there are.
    pub size: u64,
    /// Their digest, where the archive promises one.
    pub digest: Option<Digest>,
}

impl<R: Read + Seek> Archive<R> {
    /// Looks through a file once.
    pub fn open(mut file: R) -> Result<Self, Error> {
        let mut members = HashMap::new();
        file.rewind()?;
        let counted = Counted { inner: BufReader::with_capacity(1 << 17, &mut file), count: 0 };
        let mut reader = Reader::new(counted);
        while let Some(entry) = reader.next_entry().map_err(not_an_archive)? {
            let name = tidy(&String::from_utf8_lossy(&entry.path));
            let member = match entry.kind {
                Kind::File => Member::File { offset: reader.get_ref().count, size: entry.size },
                Kind::HardLink(target) => Member::Link(tidy(&String::from_utf8_lossy(&target))),
                Kind::Symlink(target) => {
                    let above = name.rsplit_once('/').map_or("", |(above, _)| above);
                    Member::Link(tidy(&format!("{above}/{}", String::from_utf8_lossy(&target))))
                }
                _ => continue,
            };
            members.insert(name, member);
            if members.len() > MAX_MEMBERS {
                return Err(Error::Archive(format!(
                    "the archive has more than {MAX_MEMBERS} files"
                )));
            }
        }
        Ok(Self { file, members })
    }

    /// The image of this name, or the only one if the name is empty, for a platform.
    pub fn image(&mut self, tag: &str, platform: &Platform) -> Result<Found, Error> {
        if self.members.contains_key(INDEX_NAME) {
            let bytes = self.document(INDEX_NAME)?;
            return match Document::parse("", &bytes)? {
                Document::Index(index) => self.in_layout(&index, tag, platform),
                Document::Manifest(_) => {
                    Err(Error::Archive(format!("`{INDEX_NAME}` of the archive is no index")))
                }
            };
        }
        if self.members.contains_key(DOCKER_NAME) {
            let images: Vec<DockerImage> = json("the archive", &self.document(DOCKER_NAME)?)?;
            return self.in_docker(&images, tag);
        }
        let message =
            format!("the archive holds no image: neither `{INDEX_NAME}` nor `{DOCKER_NAME}`");
        Err(Error::Archive(message))
    }

    /// What the archive was opened from.
    pub fn into_inner(self) -> R {
        self.file
    }

    fn in_layout(&mut self, index: &Index, tag: &str, platform: &Platform) -> Result<Found, Error> {
        let mut next = choose(index, tag, platform)?.clone();
        for _ in 0..MAX_NESTING {
            let bytes = self.blob(&next)?;
            match Document::parse(&next.media_type, &bytes)? {
                Document::Manifest(manifest) => {
                    return self.with_manifest(next.digest, &manifest);
                }
                Document::Index(index) => next = index.pick(platform)?.clone(),
            }
        }
        Err(Error::Archive(format!("indexes of the archive nest deeper than {MAX_NESTING}")))
    }

    fn with_manifest(&mut self, digest: Digest, manifest: &Manifest) -> Result<Found, Error> {
        let config = self.blob(&manifest.config)?;
        let mut layers = vec![];
        for layer in &manifest.layers {
            let (offset, size) = self.locate(&blob_name(&layer.digest))?;
            check_size(layer, size)?;
            layers.push(FoundLayer { offset, size, digest: Some(layer.digest) });
        }
        let annotations = manifest.annotations.clone().into_iter().collect();
        Ok(Found { manifest: Some(digest), config, layers, annotations })
    }

    fn in_docker(&mut self, images: &[DockerImage], tag: &str) -> Result<Found, Error> {
        let tags = |image: &DockerImage| image.repo_tags.clone().unwrap_or_default();
        let named = |image: &&DockerImage| tags(image).iter().any(|name| is_named(name, tag));
        let image = match images {
            [only] if tag.is_empty() => only,
            _ if tag.is_empty() => {
                return Err(several(images.iter().flat_map(tags)));
            }
            _ => images
                .iter()
                .find(named)
                .ok_or_else(|| no_such(tag, images.iter().flat_map(tags)))?,
        };
        let config = self.document(&tidy(&image.config))?;
        let mut layers = vec![];
        for layer in &image.layers {
            let (offset, size) = self.locate(&tidy(layer))?;
            layers.push(FoundLayer { offset, size, digest: None });
        }
        Ok(Found { manifest: None, config, layers, annotations: vec![] })
    }

    /// The bytes of a small blob, verified.
    fn blob(&mut self, descriptor: &Descriptor) -> Result<Vec<u8>, Error> {
        let bytes = self.document(&blob_name(&descriptor.digest))?;
        check_size(descriptor, bytes.len() as u64)?;
        let found = Digest::of(&bytes);
        if found != descriptor.digest {
            return Err(Error::Mismatch {
                what: "a document of the archive".to_owned(),
                expected: descriptor.digest.to_string(),
                found: found.to_string(),
            });
        }
        Ok(bytes)
    }

    fn document(&mut self, name: &str) -> Result<Vec<u8>, Error> {
        let (offset, size) = self.locate(name)?;
        if size > MAX_DOCUMENT_BYTES {
            let what = format!("`{}` of the archive", shorten(name));
            return Err(Error::TooLarge { what, limit: MAX_DOCUMENT_BYTES });
        }
        self.file.seek(SeekFrom::Start(offset))?;
        let mut bytes = vec![];
        self.file.by_ref().take(size).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn locate(&self, name: &str) -> Result<(u64, u64), Error> {
        let mut next = name;
        for _ in 0..MAX_LINKS {
            match self.members.get(next) {
                Some(Member::File { offset, size }) => return Ok((*offset, *size)),
                Some(Member::Link(target)) => next = target,
                None => break,
            }
        }
        Err(Error::Archive(format!("the archive lacks `{}`", shorten(name))))
    }
}

/// The image of a layout that is meant.
fn choose<'a>(index: &'a Index, tag: &str, platform: &Platform) -> Result<&'a Descriptor, Error> {
    let names = |one: &Descriptor| {
        NAMES.iter().filter_map(|key| one.annotations.get(*key).cloned()).collect::<Vec<_>>()
    };
    let all = || index.manifests.iter().flat_map(&names);
    let meant: Vec<&Descriptor> = index
        .manifests
        .iter()
        .filter(|one| tag.is_empty() || names(one).iter().any(|name| is_named(name, tag)))
        .collect();
    match meant[..] {
        [] if tag.is_empty() => Err(Error::Archive("the archive holds no image".to_owned())),
        [] => Err(no_such(tag, all())),
        [only] => Ok(only),
        _ if meant.iter().all(|one| one.platform.is_some()) => {
            let digest = index.pick(platform)?.digest;
            let picked = meant.iter().copied().find(|one| one.digest == digest);
            picked.ok_or_else(|| several(all()))
        }
        _ => Err(several(all())),
    }
}

/// Whether a name of an archive is meant by a tag: the same, or its last part after a colon.
fn is_named(name: &str, tag: &str) -> bool {
    name == tag || name.rsplit_once(':').is_some_and(|(_, last)| last == tag)
}

fn several(names: impl Iterator<Item = String>) -> Error {
    Error::Archive(format!("the archive holds several images, name one: {}", list(names)))
}

fn no_such(tag: &str, names: impl Iterator<Item = String>) -> Error {
    let (tag, names) = (shorten(tag), list(names));
    Error::Archive(format!("the archive holds no image `{tag}`; there are: {names}"))
}

fn list(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    if names.is_empty() { "none with a name".to_owned() } else { shorten(&names.join(", ")) }
}

fn check_size(descriptor: &Descriptor, size: u64) -> Result<(), Error> {
    if descriptor.size == size {
        return Ok(());
    }
    let (digest, promised) = (descriptor.digest, descriptor.size);
    Err(Error::Archive(format!("blob {digest} has {size} bytes, not {promised} as promised")))
}

/// A name without parts that mean nothing; what climbs stops at the root, where nothing is.
fn tidy(name: &str) -> String {
    let mut parts: Vec<&str> = vec![];
    for part in name.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn not_an_archive(error: Error) -> Error {
    match error {
        Error::Tar(reason) => Error::Archive(format!("the file is no archive: {reason}")),
        other => other,
    }
}

/// Counts what passes.
struct Counted<R> {
    inner: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.count += length as u64;
        Ok(length)
    }
}
