//! Fields of `File` that look at it.

use super::File;
use crate::services::Services;
use graph::{Args, Builder, Context, Op, OwnId};
use protocol::Error;
use std::io::Read;

/// Longest file that can be read as text in one answer.
const MAX_CONTENTS_BYTES: u64 = 128 << 20;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<Contents>().install::<Size>().install::<Name>().install::<Sync>();
}

/// What is in the file, as text.
#[derive(Args)]
struct Contents {
    /// Lines to leave out at the start.
    offset_lines: Option<i64>,
    /// Most lines to give.
    limit_lines: Option<i64>,
}

impl Op for Contents {
    type Parent = File;
    type Output = String;
    const NAME: &'static str = "contents";

    async fn run(&self, file: &File, cx: &Context) -> Result<String, Error> {
        let offset = lines("offsetLines", self.offset_lines)?.unwrap_or(0);
        let limit = lines("limitLines", self.limit_lines)?;
        let text = text(file, cx.get::<Services>()?).await?;
        Ok(window(text, offset, limit))
    }
}

/// All of a file as text, if it is short enough.
pub(super) async fn text(file: &File, services: &Services) -> Result<String, Error> {
    let size = file.metadata(services).await?.size;
    if size > MAX_CONTENTS_BYTES {
        let message = format!(
            "file {} is {size} bytes long, more than the {MAX_CONTENTS_BYTES} that fit in an answer",
            file.name()
        );
        return Err(Error::user(message).with_hint("export it instead"));
    }
    let snapshot = file.snapshot(services).await?;
    let (store, path) = (services.store.clone(), file.path.clone());
    services
        .blocking(move || {
            let mut bytes = Vec::new();
            let file = store.view(&snapshot).read(&path).map_err(store::Error::from)?;
            // One more than was promised to fit, so that the end is met and all is verified.
            let read = file.take(MAX_CONTENTS_BYTES + 1).read_to_end(&mut bytes);
            read.map_err(store::Error::from_read(&path))?;
            Ok::<_, Error>(
                String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            )
        })
        .await
}

/// Size in bytes.
#[derive(Args)]
struct Size {}

impl Op for Size {
    type Parent = File;
    type Output = i64;
    const NAME: &'static str = "size";

    async fn run(&self, file: &File, cx: &Context) -> Result<i64, Error> {
        let metadata = file.metadata(cx.get::<Services>()?).await?;
        i64::try_from(metadata.size).map_err(|_| Error::internal("a file size passes 63 bits"))
    }
}

/// The file's name without folders.
#[derive(Args)]
struct Name {}

impl Op for Name {
    type Parent = File;
    type Output = String;
    const NAME: &'static str = "name";

    async fn run(&self, file: &File, _: &Context) -> Result<String, Error> {
        Ok(file.name().to_owned())
    }
}

/// Makes everything behind the file, and gives its id.
#[derive(Args)]
struct Sync {}

impl Op for Sync {
    type Parent = File;
    type Output = OwnId;
    const NAME: &'static str = "sync";

    async fn run(&self, file: &File, cx: &Context) -> Result<OwnId, Error> {
        file.metadata(cx.get::<Services>()?).await?;
        Ok(OwnId)
    }
}

fn lines(name: &str, count: Option<i64>) -> Result<Option<usize>, Error> {
    let Some(count) = count else { return Ok(None) };
    let negative = |_| Error::user(format!("`{name}` is {count}: give 0 or more"));
    usize::try_from(count).map(Some).map_err(negative)
}

/// The lines from `offset` on, at most `limit` of them.
fn window(text: String, offset: usize, limit: Option<usize>) -> String {
    if offset == 0 && limit.is_none() {
        return text;
    }
    text.split_inclusive('\n').skip(offset).take(limit.unwrap_or(usize::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_lines() {
        let text = || "a\nb\nc".to_owned();
        assert_eq!(window(text(), 0, None), "a\nb\nc");
        assert_eq!(window(text(), 1, None), "b\nc");
        assert_eq!(window(text(), 0, Some(2)), "a\nb\n");
        assert_eq!(window(text(), 5, Some(2)), "");
    }

    #[test]
    fn negative_counts_are_named() {
        assert!(lines("limitLines", Some(-1)).unwrap_err().message.contains("limitLines"));
    }
}
