//! From a line to an instruction.

use crate::error::shortened;
use crate::lines::Line;
use crate::{
    Action, CommandLine, Copy, Error, Healthcheck, Instruction, RawMount, Run, RunNetwork, Source,
};
use crate::{heredoc, words};

type Flags = [(String, Option<String>)];

/// The names of all instructions but `FROM`.
const NAMES: &[&str] = &[
    "ADD",
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "MAINTAINER",
    "ONBUILD",
    "RUN",
    "SHELL",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
];

/// Reads one instruction that an image brought along for who begins from it (`ONBUILD`).
pub fn trigger(text: &str) -> Result<Instruction, Error> {
    let read = crate::lines::read(text)?;
    match read.lines.as_slice() {
        [line] => instruction(line, read.escape),
        _ => Err(Error::of(format!("`{}` is not one instruction", shortened(text)))),
    }
}

/// Reads a line.
pub(crate) fn instruction(line: &Line, escape: char) -> Result<Instruction, Error> {
    let action = action(line, escape).map_err(|error| error.at(line.number))?;
    Ok(Instruction { line: line.number, text: line.text.clone(), action })
}

fn action(line: &Line, escape: char) -> Result<Action, Error> {
    let (name, rest) = words::first(&line.text);
    let name = name.to_ascii_uppercase();
    let (flags, body) = words::flags(rest, escape);
    let takes_flags = matches!(name.as_str(), "ADD" | "COPY" | "HEALTHCHECK" | "RUN");
    // Whether the line is right is looked at now, not when somebody begins from the image.
    if name == "ONBUILD" {
        return on_build(line, rest, escape);
    }
    // Only some instructions have flags; to the others two dashes are text.
    let body = if takes_flags { body } else { rest };
    if body.is_empty() && NAMES.contains(&name.as_str()) && name != "CMD" && name != "ENTRYPOINT" {
        return Err(Error::of(format!("{name} requires at least one argument")));
    }
    Ok(match name.as_str() {
        "ARG" => Action::Arg(arguments(body, escape)?),
        "ENV" => Action::Env(words::pairs(body, escape)?),
        "LABEL" => Action::Label(words::pairs(body, escape)?),
        "WORKDIR" => Action::Workdir(body.to_owned()),
        "USER" => Action::User(one(&name, body)?),
        "STOPSIGNAL" => Action::StopSignal(one(&name, body)?),
        "MAINTAINER" => Action::Maintainer(body.to_owned()),
        "COPY" => Action::Copy(copy(&name, &flags, body, line)?),
        "ADD" => Action::Add(copy(&name, &flags, body, line)?),
        "RUN" => Action::Run(run(&flags, body, line)?),
        "CMD" => Action::Cmd(command(body)),
        "ENTRYPOINT" => Action::Entrypoint(command(body)),
        "SHELL" => match words::json(body) {
            Some(list) if !list.is_empty() => Action::Shell(list),
            _ => return Err(Error::of("SHELL requires the arguments to be in JSON form")),
        },
        "EXPOSE" => Action::Expose(body.split_whitespace().map(str::to_owned).collect()),
        "VOLUME" => Action::Volume(volumes(body)?),
        "HEALTHCHECK" => Action::Healthcheck(Healthcheck::parse(&flags, body)?),
        "FROM" => return Err(Error::of("FROM isn't allowed here")),
        _ => return Err(unknown(&name)),
    })
}

fn unknown(name: &str) -> Error {
    let error = Error::of(format!("unknown instruction: {}", shortened(name)));
    let near = NAMES.iter().find(|known| {
        let same = known.chars().zip(name.chars()).filter(|(one, other)| one == other).count();
        known.len().abs_diff(name.len()) <= 1 && same + 2 > known.len()
    });
    match near {
        Some(near) => error.with_hint(format!("did you mean {near}?")),
        None => error,
    }
}

fn arguments(body: &str, escape: char) -> Result<Vec<(String, Option<String>)>, Error> {
    let argument = |word: &String| match word.split_once('=') {
        Some(("", _)) => Err(Error::of("ARG names can not be blank")),
        Some((name, value)) => Ok((name.to_owned(), Some(value.to_owned()))),
        None => Ok((word.clone(), None)),
    };
    words::split(body, escape)?.iter().map(argument).collect()
}

fn one(name: &str, body: &str) -> Result<String, Error> {
    if body.contains(char::is_whitespace) && !body.contains(['"', '\'', '\\']) {
        return Err(Error::of(format!("{name} requires exactly one argument")));
    }
    Ok(body.to_owned())
}

fn volumes(body: &str) -> Result<Vec<String>, Error> {
    let volumes = words::list(body);
    if volumes.iter().any(|volume| volume.trim().is_empty()) {
        return Err(Error::of("VOLUME specified can not be an empty string"));
    }
    Ok(volumes)
}

fn command(body: &str) -> CommandLine {
    match words::json(body) {
        Some(list) => CommandLine::Exec(list),
        None => CommandLine::Shell(body.to_owned()),
    }
}

fn on_build(line: &Line, rest: &str, escape: char) -> Result<Action, Error> {
    let (name, _) = words::first(rest);
    match name.to_ascii_uppercase().as_str() {
        "" => return Err(Error::of("ONBUILD requires at least one argument")),
        "ONBUILD" => return Err(Error::of("Chaining ONBUILD via `ONBUILD ONBUILD` isn't allowed")),
        name @ ("FROM" | "MAINTAINER") => {
            return Err(Error::of(format!("{name} isn't allowed as an ONBUILD trigger")));
        }
        _ => {}
    }
    let inner = Line { text: rest.to_owned(), ..line.clone() };
    action(&inner, escape)?;
    let mut text = rest.to_owned();
    for heredoc in &line.heredocs {
        text.push_str(&format!("\n{}{}", heredoc.text, heredoc.name));
    }
    Ok(Action::OnBuild(text))
}

/// The value of a flag that needs one.
fn given<'a>(name: &str, value: &'a Option<String>) -> Result<&'a str, Error> {
    value.as_deref().ok_or_else(|| Error::of(format!("missing a value on flag: --{name}")))
}

fn yes(name: &str, value: &Option<String>) -> Result<bool, Error> {
    match value.as_deref() {
        None | Some("true" | "1") => Ok(true),
        Some("false" | "0") => Ok(false),
        Some(other) => Err(Error::of(format!("--{name} is either true or false, not \"{other}\""))),
    }
}

fn unknown_flag(instruction: &str, name: &str) -> Error {
    Error::of(format!("unknown flag of {instruction}: --{name}"))
}

/// Why a variable cannot name a stage.
pub(crate) fn variable_in_from() -> Error {
    Error::of("variable expansion is not supported for --from")
        .with_hint("define a stage: FROM with an ARG that stands before the first FROM")
}

fn copy(instruction: &str, flags: &Flags, body: &str, line: &Line) -> Result<Copy, Error> {
    let mut copy = Copy::default();
    let add = instruction == "ADD";
    for (name, value) in flags {
        match name.as_str() {
            "chown" => copy.chown = Some(given(name, value)?.to_owned()),
            "chmod" => copy.chmod = Some(given(name, value)?.to_owned()),
            // Layers lie beside each other here anyway.
            "link" => drop(yes(name, value)?),
            "exclude" => copy.exclude.push(given(name, value)?.to_owned()),
            "from" if !add => copy.from = Some(given(name, value)?.to_owned()),
            "parents" if !add => copy.parents = yes(name, value)?,
            "checksum" if add => copy.checksum = Some(given(name, value)?.to_owned()),
            "keep-git-dir" if add => copy.keep_git_dir = yes(name, value)?,
            "unpack" if add => copy.unpack = Some(yes(name, value)?),
            _ => return Err(unknown_flag(instruction, name)),
        }
    }
    if copy.from.as_deref().is_some_and(|from| from.contains('$')) {
        return Err(variable_in_from());
    }
    let mut words = words::list(body);
    let destination = words.pop().filter(|_| !words.is_empty());
    copy.destination = destination.ok_or_else(|| {
        Error::of(format!("{instruction} requires at least two arguments, but only one was provided: its destination could not be determined"))
    })?;
    let mut heredocs = line.heredocs.iter();
    let source = |word: String| match heredoc::announced(&word, '\\') {
        Some(_) if !line.heredocs.is_empty() => {
            heredocs.next().cloned().map_or(Source::Path(word), Source::Heredoc)
        }
        _ => Source::Path(word),
    };
    copy.sources = words.into_iter().map(source).collect();
    Ok(copy)
}

fn run(flags: &Flags, body: &str, line: &Line) -> Result<Run, Error> {
    let mut run = Run {
        command: command(body),
        heredocs: line.heredocs.clone(),
        mounts: vec![],
        network: RunNetwork::Default,
        insecure: false,
    };
    for (name, value) in flags {
        match (name.as_str(), given(name, value)?) {
            ("mount", text) => run.mounts.push(RawMount::parse(text)?),
            ("network", "default") => run.network = RunNetwork::Default,
            ("network", "none") => run.network = RunNetwork::None,
            ("network", "host") => run.network = RunNetwork::Host,
            ("network", other) => {
                return Err(Error::of(format!("network mode \"{other}\" is not valid")));
            }
            ("security", "sandbox") => run.insecure = false,
            ("security", "insecure") => run.insecure = true,
            ("security", other) => {
                return Err(Error::of(format!("security \"{other}\" is not valid")));
            }
            _ => return Err(unknown_flag("RUN", name)),
        }
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Action, Error> {
        trigger(text).map(|instruction| instruction.action)
    }

    #[test]
    fn both_forms_of_commands() {
        assert_eq!(read("CMD a b").unwrap(), Action::Cmd(CommandLine::Shell("a b".into())));
        let exec = CommandLine::Exec(vec!["a".into(), "b c".into()]);
        assert_eq!(read("entrypoint [\"a\", \"b c\"]").unwrap(), Action::Entrypoint(exec));
        // What only looks like a list is for the shell.
        let shell = CommandLine::Shell("['a']".into());
        assert_eq!(read("CMD ['a']").unwrap(), Action::Cmd(shell));
    }

    #[test]
    fn copies() {
        let Action::Copy(copy) =
            read("COPY --from=b --chown=1:2 --link --exclude=*.o --parents a \"b c\" /d/").unwrap()
        else {
            panic!("no copy");
        };
        assert_eq!((copy.from.as_deref(), copy.chown.as_deref()), (Some("b"), Some("1:2")));
        assert!(copy.parents && copy.exclude == ["*.o"]);
        assert_eq!(copy.destination, "/d/");
        let Action::Copy(copy) = read("COPY [\"a b\", \"c\"]").unwrap() else { panic!("no copy") };
        assert_eq!(copy.sources, [Source::Path("a b".into())]);
        let Action::Copy(copy) = read("COPY <<A x <<'B' /d/\n1\nA\n2\nB").unwrap() else {
            panic!("no copy");
        };
        let names: Vec<String> = copy
            .sources
            .iter()
            .map(|source| match source {
                Source::Path(path) => path.clone(),
                Source::Heredoc(heredoc) => format!("{}={}", heredoc.name, heredoc.text.trim()),
            })
            .collect();
        assert_eq!(names, ["A=1", "x", "B=2"]);
    }

    #[test]
    fn what_is_refused() {
        for (text, reason) in [
            ("FOO bar", "unknown instruction: FOO"),
            ("RUM x", "unknown instruction: RUM"),
            ("RUN", "RUN requires at least one argument"),
            ("COPY a", "COPY requires at least two arguments"),
            ("COPY --nope a b", "unknown flag of COPY: --nope"),
            ("COPY --checksum=x a b", "unknown flag of COPY"),
            ("COPY --from=$X a b", "variable expansion is not supported for --from"),
            ("ADD --from=x a b", "unknown flag of ADD"),
            ("RUN --network=far x", "network mode \"far\" is not valid"),
            ("RUN --security=x y", "security \"x\" is not valid"),
            ("RUN --mount x", "missing a value on flag: --mount"),
            ("SHELL sh -c", "SHELL requires the arguments to be in JSON form"),
            ("ENV A", "needs a value"),
            ("ONBUILD ONBUILD RUN x", "Chaining ONBUILD"),
            ("ONBUILD FROM x", "FROM isn't allowed as an ONBUILD trigger"),
            ("ONBUILD FOO", "unknown instruction: FOO"),
            ("HEALTHCHECK --interval=1x CMD y", "is no duration"),
            ("HEALTHCHECK", "HEALTHCHECK requires at least one argument"),
            ("HEALTHCHECK TRY x", "unknown type \"TRY\""),
            ("USER a b", "USER requires exactly one argument"),
            ("VOLUME [\"\"]", "can not be an empty string"),
            ("ARG =x", "can not be blank"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.message.contains(reason), "{text}: {error}");
            assert_eq!(error.line, 1, "{text}");
        }
        assert_eq!(read("RUM x").unwrap_err().hint.as_deref(), Some("did you mean RUN?"));
    }
}
