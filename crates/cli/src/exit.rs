//! Which exit code an outcome has. Nothing else in the program decides one.

use crate::error::{Error, Kind};
use protocol::ErrorKind;

/// The exit code of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) u8);

impl Exit {
    /// Everything went well.
    pub(crate) const SUCCESS: Self = Self(0);
    /// Anything that is not one of the others.
    pub(crate) const FAILURE: Self = Self(1);
    /// Somebody pressed Ctrl-C.
    pub(crate) const INTERRUPTED: Self = Self(2);

    /// The code of a failed command in a container. Codes are 8 bits wide to whoever waits for us,
    /// and a failure must not look like success.
    pub(crate) fn of_exec(code: i32) -> Self {
        match u8::try_from(code & 0xff) {
            Ok(0) | Err(_) => Self::FAILURE,
            Ok(code) => Self(code),
        }
    }

    /// The code of a child process, with the signal that ended it if one did.
    pub(crate) fn of_child(code: Option<i32>, signal: Option<i32>) -> Self {
        let code = code.or_else(|| signal.map(|signal| 128 + signal));
        code.and_then(|code| u8::try_from(code & 0xff).ok()).map_or(Self::FAILURE, Self)
    }

    /// The code of an error.
    pub(crate) fn of_error(error: &Error) -> Self {
        match &error.kind {
            Kind::Interrupted => Self::INTERRUPTED,
            // Whoever reads our output has had enough of it: that is no failure of ours.
            Kind::BrokenPipe => Self::SUCCESS,
            Kind::Usage { .. } => Self::FAILURE,
            Kind::Failed(ErrorKind::Exec) => match &error.exec {
                Some(exec) => Self::of_exec(exec.exit_code),
                None => Self::FAILURE,
            },
            Kind::Failed(_) => Self::FAILURE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::ExecFailure;

    fn exec(exit_code: i32) -> Error {
        let failure = ExecFailure {
            cmd: vec!["x".into()],
            exit_code,
            stdout: String::new(),
            stderr: String::new(),
        };
        protocol::Error::user("it failed").with_exec(failure).into()
    }

    #[test]
    fn table() {
        let code = |error: Error| Exit::of_error(&error).0;
        assert_eq!(code(Error::usage("unknown flag: --x", "ci-tool")), 1);
        for kind in [
            ErrorKind::User,
            ErrorKind::Environment,
            ErrorKind::NotImplemented,
            ErrorKind::Internal,
        ] {
            assert_eq!(code(protocol::Error::new(kind, "no").into()), 1, "{kind:?}");
        }
        assert_eq!(code(Error::interrupted()), 2);
        assert_eq!(code(protocol::Error::new(ErrorKind::Cancelled, "gone").into()), 2);
        assert_eq!(code(Error::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe))), 0);
    }

    #[test]
    fn exec_codes_are_passed_on_and_never_zero() {
        for (given, expected) in [(1, 1), (42, 42), (0, 1), (137, 137), (256, 1), (255, 255)] {
            assert_eq!(Exit::of_error(&exec(given)).0, expected, "{given}");
        }
    }

    #[test]
    fn a_query_fails_with_one_whatever_the_exec_said() {
        assert_eq!(Exit::of_error(&exec(42).with_plain_exit()).0, 1);
    }

    #[test]
    fn child_codes() {
        for (code, signal, expected) in
            [(Some(0), None, 0), (Some(3), None, 3), (None, Some(9), 137), (None, None, 1)]
        {
            assert_eq!(Exit::of_child(code, signal).0, expected);
        }
    }
}
