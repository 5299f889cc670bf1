//! The documents that were asked last: clients repeat themselves.

use super::Document;
use crate::Digest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest text of a kept document, and how many are kept: together they bound the memory.
const MAX_TEXT: usize = 64 << 10;
const MAX_DOCUMENTS: usize = 64;

/// Checked documents by digest of their text. The texts are not kept.
#[derive(Default)]
pub(crate) struct DocumentCache(Mutex<Table>);

#[derive(Default)]
struct Table {
    clock: u64,
    documents: HashMap<Digest, (u64, Arc<Document>)>,
}

impl DocumentCache {
    pub(crate) fn get(&self, text: &Digest) -> Option<Arc<Document>> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.clock += 1;
        let now = table.clock;
        let (used, document) = table.documents.get_mut(text)?;
        *used = now;
        Some(document.clone())
    }

    /// Keeps a document unless it is long or holds something sensitive.
    pub(crate) fn put(&self, text: Digest, length: usize, document: &Arc<Document>) {
        if document.sensitive || length > MAX_TEXT {
            return;
        }
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if table.documents.len() >= MAX_DOCUMENTS {
            let oldest = table.documents.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(text, _)| *text) {
                table.documents.remove(&oldest);
            }
        }
        table.clock += 1;
        let now = table.clock;
        table.documents.insert(text, (now, document.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = DocumentCache::default();
        let document = Arc::new(Document::default());
        let name = |index: usize| Digest::of(index.to_string().as_bytes());
        for index in 0..MAX_DOCUMENTS {
            cache.put(name(index), 1, &document);
        }
        assert!(cache.get(&name(0)).is_some());
        cache.put(name(MAX_DOCUMENTS), 1, &document);
        assert!(cache.get(&name(0)).is_some());
        assert!(cache.get(&name(1)).is_none());
    }

    #[test]
    fn long_and_sensitive_documents_are_not_kept() {
        let cache = DocumentCache::default();
        cache.put(Digest::of(b"long"), MAX_TEXT + 1, &Arc::new(Document::default()));
        assert!(cache.get(&Digest::of(b"long")).is_none());
        let sensitive = Document { sensitive: true, ..Document::default() };
        cache.put(Digest::of(b"sensitive"), 1, &Arc::new(sensitive));
        assert!(cache.get(&Digest::of(b"sensitive")).is_none());
    }
}
