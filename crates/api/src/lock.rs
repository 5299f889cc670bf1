//! Look-ups that a file of the user's project records: which image a tag was, which commit a branch.
//!
//! Whoever looks something up that may be another tomorrow asks [`settled`]. What is recorded, and what that
//! means, depends on the session's [`LockMode`]; the file itself is the client's.

use crate::host::Host;
use graph::Context;
use protocol::Error;
use protocol::attach::{LockPolicy, LockRecord, LockRequest};
use protocol::session::{ClientSettings, LockMode};

/// Something that may be another tomorrow.
pub(crate) struct Lookup {
    /// What asks, e.g. `container.from`.
    pub(crate) operation: &'static str,
    /// What is asked for, in the one form that it has.
    pub(crate) inputs: Vec<String>,
    /// When it is looked up again, unless what is recorded says otherwise.
    pub(crate) policy: LockPolicy,
}

/// Whether look-ups of this session are recorded at all.
pub(crate) fn is_used(cx: &Context) -> bool {
    mode(cx) != LockMode::Disabled
}

fn mode(cx: &Context) -> LockMode {
    cx.get::<ClientSettings>().map(|settings| settings.lock).unwrap_or_default()
}

/// What a look-up comes to: what is recorded where that counts, else what `resolve` finds out, which is recorded
/// then.
pub(crate) async fn settled(
    cx: &Context,
    lookup: Lookup,
    resolve: impl Future<Output = Result<String, Error>>,
) -> Result<String, Error> {
    let Lookup { operation, inputs, policy } = lookup;
    let resolve = async { Ok((resolve.await?, policy)) };
    settled_by(cx, LockRequest { operation: operation.to_owned(), inputs }, resolve).await
}

/// The same for what says only when it is found whether it is looked up again.
pub(crate) async fn settled_by(
    cx: &Context,
    request: LockRequest,
    resolve: impl Future<Output = Result<(String, LockPolicy), Error>>,
) -> Result<String, Error> {
    let mode = mode(cx);
    if mode == LockMode::Disabled {
        return Ok(resolve.await?.0);
    }
    let host = cx.get::<Host>()?;
    let known = host.files().locked(request.clone()).await?;
    let recorded = known.entry.as_ref().map(|(value, policy)| (value.as_str(), *policy));
    if let Step::Use(value) = step(mode, recorded) {
        return Ok(value.to_owned());
    }
    if mode == LockMode::Frozen {
        return Err(missing(&request, known.kept));
    }
    let (value, policy) = resolve.await?;
    let policy = recorded.map_or(policy, |(_, policy)| policy);
    if known.kept && recorded.is_none_or(|(before, _)| before != value) {
        host.files().lock(LockRecord { request, value: value.clone(), policy }).await?;
    }
    Ok(value)
}

/// What is done about a look-up.
#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    Use(&'a str),
    Resolve,
}

fn step(mode: LockMode, recorded: Option<(&str, LockPolicy)>) -> Step<'_> {
    match (mode, recorded) {
        (LockMode::Frozen, Some((value, _)))
        | (LockMode::Pinned, Some((value, LockPolicy::Pin))) => Step::Use(value),
        _ => Step::Resolve,
    }
}

fn missing(request: &LockRequest, kept: bool) -> Error {
    let LockRequest { operation, inputs } = request;
    let inputs: Vec<String> = inputs.iter().map(|input| format!("`{input}`")).collect();
    let what = format!("{operation} of {}", inputs.join(", "));
    match kept {
        true => Error::user(format!("`ci-tool.lock` has no entry for {what}"))
            .with_hint("run the command once with `--lock=pinned`, which records it"),
        false => {
            Error::user(format!("there is no project with a `ci-tool.lock` to find {what} in"))
                .with_hint(
                    "a project is what is below a `.git`; leave out `--lock=frozen` elsewhere",
                )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_counts_by_mode_and_policy() {
        use LockMode::{Frozen, Live, Pinned};
        use LockPolicy::{Float, Pin};
        for (mode, recorded, used) in [
            (Live, Some(Pin), false),
            (Live, Some(Float), false),
            (Live, None, false),
            (Pinned, Some(Pin), true),
            (Pinned, Some(Float), false),
            (Pinned, None, false),
            (Frozen, Some(Pin), true),
            (Frozen, Some(Float), true),
            (Frozen, None, false),
        ] {
            let step = step(mode, recorded.map(|policy| ("v", policy)));
            let expected = if used { Step::Use("v") } else { Step::Resolve };
            assert_eq!(step, expected, "{mode:?} {recorded:?}");
        }
    }

    #[test]
    fn a_missing_entry_is_named_with_the_way_to_record_it() {
        let inputs = vec!["docker.io/library/a:1".into(), "linux/amd64".into()];
        let request = LockRequest { operation: "container.from".into(), inputs };
        let error = missing(&request, true);
        let expected = "container.from of `docker.io/library/a:1`, `linux/amd64`";
        assert!(error.message.ends_with(expected), "{}", error.message);
        assert!(error.hints[0].contains("--lock=pinned"));
    }
}
