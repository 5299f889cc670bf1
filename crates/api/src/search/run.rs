//! Searching files: one worker a thread, what it finds into one place.

use super::Search;
use super::found::Kept;
use super::result::{Line, SearchResult, Submatch};
use crate::services::Services;
use crate::stop::Stop;
use graph::{Context, Span};
use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkMatch};
use protocol::{Error, Unit};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use store::{FileVisitor, Snapshot, View, Visit, VisitedFile};

/// Bytes that all results together may have, with what each of them takes beside its text.
const MOST_BYTES: u64 = 128 << 20;
const BYTES_A_LINE: u64 = 128;
const BYTES_A_MATCH: u64 = 64;
/// Files between two reports of how far it is.
const FILES_A_REPORT: u64 = 1_000;

/// Searches the files of a tree.
pub(crate) async fn in_directory(
    snapshot: Snapshot,
    visit: Visit,
    search: Search,
    cx: &Context,
) -> Result<Vec<SearchResult>, Error> {
    let each = move |view: &View, running: &Running| view.visit_files(&visit, running);
    in_tree(snapshot, search, cx, each).await
}

/// Searches one file of a tree; results call it `name`.
pub(crate) async fn in_file(
    (snapshot, path): (Snapshot, String),
    name: String,
    search: Search,
    cx: &Context,
) -> Result<Vec<SearchResult>, Error> {
    let one = move |view: &View, running: &Running| {
        let file = view.open(&path)?;
        running.look(&mut [Ok((name.into_bytes(), file))].into_iter())
    };
    in_tree(snapshot, search, cx, one).await
}

/// Searches what of a tree is handed over.
async fn in_tree(
    snapshot: Snapshot,
    search: Search,
    cx: &Context,
    hand_over: impl FnOnce(&View, &Running) -> Result<(), store::Error> + Send + 'static,
) -> Result<Vec<SearchResult>, Error> {
    let (stop, _guard) = Stop::new();
    let running = Running::new(search, stop, cx.span().clone())?;
    let look = move |view: &View| {
        let searched = hand_over(view, &running);
        running.finish(searched)
    };
    cx.get::<Services>()?.look(snapshot, look).await
}

/// A search that runs.
struct Running {
    search: Search,
    matcher: RegexMatcher,
    limit: Option<usize>,
    kept: Kept,
    stop: Stop,
    span: Span,
    /// What threads that have nothing to do have left: making one takes long.
    idle: Mutex<Vec<Worker>>,
    files: AtomicU64,
    bytes: AtomicU64,
    /// Why it ended early.
    failure: Mutex<Option<Error>>,
}

/// What one thread searches with.
struct Worker {
    matcher: RegexMatcher,
    searcher: Searcher,
}

impl Running {
    fn new(search: Search, stop: Stop, span: Span) -> Result<Self, Error> {
        let (matcher, limit) = (search.pattern.matcher()?, search.most()?);
        Ok(Self {
            search,
            matcher,
            limit,
            kept: Kept::new(limit),
            stop,
            span,
            idle: Mutex::default(),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            failure: Mutex::default(),
        })
    }

    fn finish(self, searched: Result<(), store::Error>) -> Result<Vec<SearchResult>, Error> {
        if let Some(error) = self.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        searched?;
        let files = self.kept.finish();
        Ok(files
            .into_iter()
            .flat_map(|(path, lines)| SearchResult::of_file(&path, lines))
            .collect())
    }

    fn fail(&self, error: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.give();
    }

    fn worker(&self) -> Worker {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| Worker {
            matcher: self.matcher.clone(),
            searcher: self.search.pattern.searcher(),
        })
    }

    /// Searches one file.
    fn search(&self, worker: &mut Worker, path: &[u8], file: File) {
        let mut lines = Lines { running: self, matcher: &worker.matcher, found: vec![] };
        let read = self.stop.reading(file);
        let searched = worker.searcher.search_reader(&worker.matcher, read, &mut lines);
        let found = lines.found;
        match searched {
            Ok(()) if found.is_empty() => {}
            Ok(()) => self.kept.add(path, found),
            Err(_) if self.stop.is_given() => {}
            Err(error) => {
                let path = String::from_utf8_lossy(path);
                let message = format!("cannot search `{}`: {error}", crate::looks::shown(&path));
                self.fail(Error::user(message).with_hint("leave it out with `globs`, as `!name`"));
            }
        }
        let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
        if files.is_multiple_of(FILES_A_REPORT) {
            self.span.progress(files, None, Unit::Items);
        }
    }

    /// Counts what a line takes, and says whether it still fits.
    fn fits(&self, line: &Line) -> bool {
        let matches: u64 =
            line.matches.iter().map(|found| found.text.len() as u64 + BYTES_A_MATCH).sum();
        let bytes = line.text.len() as u64 + BYTES_A_LINE + matches;
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= MOST_BYTES
    }
}

impl FileVisitor for Running {
    fn wants(&self, path: &[u8]) -> bool {
        !self.stop.is_given() && self.kept.wants(path)
    }

    fn look(&self, files: &mut dyn Iterator<Item = VisitedFile>) -> Result<(), store::Error> {
        let mut worker = self.worker();
        for file in files {
            let (path, file) = file?;
            self.search(&mut worker, &path, file);
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        Ok(())
    }
}

/// Lines of one file that match.
struct Lines<'a> {
    running: &'a Running,
    matcher: &'a RegexMatcher,
    found: Vec<Line>,
}

impl Sink for &mut Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.running.search.files_only {
            self.found.push(Line::default());
            return Ok(false);
        }
        let line = Line {
            number: found.line_number().unwrap_or_default(),
            offset: found.absolute_byte_offset(),
            text: String::from_utf8_lossy(found.bytes()).into_owned(),
            matches: self.submatches(searcher, found)?,
        };
        if !self.running.fits(&line) {
            let message = "the search finds more than fits in an answer";
            self.running.fail(Error::user(message).with_hint("set `limit`, or ask for less"));
            return Ok(false);
        }
        self.found.push(line);
        Ok(self.running.limit.is_none_or(|limit| self.found.len() < limit))
    }
}

impl Lines<'_> {
    /// What in the lines matches.
    fn submatches(&self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<Vec<Submatch>> {
        let range = found.bytes_range_in_buffer();
        // A match may look at what is around it; the end of a line is no part of the line, though.
        let mut around = found.buffer();
        if !self.running.search.pattern.multiline {
            let line = found.bytes();
            let end = line.strip_suffix(searcher.line_terminator().as_bytes()).unwrap_or(line);
            around = &around[..range.start + end.len()];
        }
        let mut matches = vec![];
        let searched = self.matcher.find_iter_at(around, range.start, |one| {
            if one.start() >= range.end {
                return false;
            }
            let end = one.end().min(range.end);
            let text = String::from_utf8_lossy(&around[one.start()..end]).into_owned();
            let (start, end) = (one.start() - range.start, end - range.start);
            matches.push(Submatch { text, start, end });
            true
        });
        searched.map_err(io::Error::other)?;
        Ok(matches)
    }
}
