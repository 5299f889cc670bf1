//! [`Stream`]: a layout as one file, read piece by piece. Names are sorted and nothing has a time, so
//! equal images give equal bytes.

use super::{DOCKER_NAME, DockerImage, INDEX_NAME, LAYOUT, LAYOUT_NAME, blob_name};
use crate::manifest::to_json;
use crate::tar::{self, Entry, Kind};
use crate::{Descriptor, Digest, Family, Index};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Cursor, Read};

/// Where the bytes of a blob come from.
pub enum Source {
    /// Here they are.
    Bytes(Vec<u8>),
    /// Opened when their turn comes.
    Open(Box<dyn FnOnce() -> io::Result<Box<dyn Read + Send>> + Send>),
}

/// A blob of an archive.
pub struct Blob {
    /// Its name.
    pub digest: Digest,
    /// How many bytes it has.
    pub size: u64,
    /// Its bytes.
    pub source: Source,
}

/// What goes into an archive.
pub struct Contents {
    /// The images or indexes that the archive is about.
    pub top: Vec<Descriptor>,
    /// All blobs; equal ones are written once.
    pub blobs: Vec<Blob>,
    /// Configuration and layers of the only image, for programs that know docker's form alone.
    pub docker: Option<(Digest, Vec<Digest>)>,
}

/// The bytes of an archive.
pub struct Stream {
    parts: VecDeque<Part>,
    present: Box<dyn Read + Send>,
    /// Bytes that the present part still owes.
    left: u64,
    size: u64,
}

struct Part {
    size: u64,
    source: Source,
}

impl Stream {
    /// The archive of these contents.
    pub fn new(contents: Contents) -> Self {
        let mut stream =
            Self { parts: VecDeque::new(), present: Box::new(io::empty()), left: 0, size: 0 };
        stream.document(LAYOUT_NAME, LAYOUT.to_vec());
        stream.document(INDEX_NAME, Index::new(Family::Oci, contents.top).to_bytes());
        if let Some((config, layers)) = contents.docker {
            let image = DockerImage {
                config: blob_name(&config),
                repo_tags: None,
                layers: layers.iter().map(blob_name).collect(),
            };
            stream.document(DOCKER_NAME, to_json(&[image]));
        }
        for folder in ["blobs/", "blobs/sha256/"] {
            stream.put(tar::head(&Entry::new(folder, Kind::Directory, 0o755)));
        }
        let blobs: BTreeMap<Digest, Blob> =
            contents.blobs.into_iter().map(|blob| (blob.digest, blob)).collect();
        for (digest, blob) in blobs {
            stream.member(&blob_name(&digest), blob.size, blob.source);
        }
        stream.put(tar::END.to_vec());
        stream
    }

    /// How many bytes there are in all.
    pub fn size(&self) -> u64 {
        self.size
    }

    fn document(&mut self, name: &str, bytes: Vec<u8>) {
        self.member(name, bytes.len() as u64, Source::Bytes(bytes));
    }

    fn member(&mut self, name: &str, size: u64, source: Source) {
        let entry = Entry { size, ..Entry::new(name, Kind::File, 0o644) };
        self.put(tar::head(&entry));
        self.push(size, source);
        self.put(tar::padding(size).to_vec());
    }

    fn put(&mut self, bytes: Vec<u8>) {
        self.push(bytes.len() as u64, Source::Bytes(bytes));
    }

    fn push(&mut self, size: u64, source: Source) {
        self.size += size;
        self.parts.push_back(Part { size, source });
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 {
            let Some(part) = self.parts.pop_front() else { return Ok(0) };
            self.left = part.size;
            self.present = match part.source {
                Source::Bytes(bytes) => Box::new(Cursor::new(bytes)),
                Source::Open(open) => open()?,
            };
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let length = self.present.read(&mut buffer[..most])?;
        if length == 0 && most > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a blob is cut"));
        }
        self.left -= length as u64;
        // Some sources know only at their end whether they were right.
        if self.left == 0 && self.present.read(&mut [0])? > 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a blob is too long"));
        }
        Ok(length)
    }
}
