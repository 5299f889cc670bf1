//! Picks the role of the one binary from its first words, and reads the environment for it.
//!
//! This is the only place that reads environment variables; everything below gets plain values. The
//! roles of the engine come first and start no thread before they decide to.

use cli::{Build, Environment};
use engine::Settings;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// The commit and its cleanliness, told by whoever builds a release. A build that is not told knows
/// nothing: asking a version control system would rebuild the program with every commit.
const BUILD: Build = Build {
    commit: option_env!("CITOOL_BUILD_COMMIT"),
    dirty: option_env!("CITOOL_BUILD_DIRTY").is_some(),
};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let role: Vec<&str> = words.iter().take(2).filter_map(|word| word.to_str()).collect();
    match role[..] {
        ["engine", "zygote"] => exit_code(engine::zygote_main()),
        ["engine", "guard"] => exit_code(engine::guard_main()),
        ["engine", "errands"] => exit_code(engine::errands_main()),
        ["engine", "serve"] => match settings(&words[2..]) {
            Ok(settings) => exit_code(engine::serve(settings)),
            Err(message) => ExitCode::from(cli::fail(&message)),
        },
        _ => ExitCode::from(cli::main(words, environment())),
    }
}

/// What an engine is started with: flags from the client that starts it, else the environment.
fn settings(words: &[OsString]) -> Result<Settings, String> {
    let client = environment().client;
    let (mut state_dir, mut config, mut log) = (None, None, None);
    for pair in words.chunks(2) {
        let [flag, value] = pair else {
            return Err(format!("flag needs an argument: {}", pair[0].display()));
        };
        match flag.to_str() {
            Some("--state-dir") => state_dir = Some(PathBuf::from(value)),
            Some("--config") => config = Some(PathBuf::from(value)),
            Some("--log") => log = Some(value.to_string_lossy().into_owned()),
            _ => return Err(format!("unknown flag: {}", flag.display())),
        }
    }
    if config.is_none() {
        let file = client.variables.engine_config(&client.workdir);
        config = file.ok().filter(|file| file.required || file.path.exists()).map(|file| file.path);
    }
    let state_dir = match state_dir {
        Some(state_dir) => state_dir,
        None => client.variables.state_dir(&client.workdir).map_err(|error| error.to_string())?,
    };
    let log = log.or(Some(client.log)).filter(|filter| !filter.is_empty());
    let leave_others = client.leave_old_engine;
    let program = client.program;
    Ok(Settings { state_dir, config, log, leave_others, program, proxies: proxies() })
}

/// The machine's proxies. What is not text is no address of one.
fn proxies() -> Vec<(String, String)> {
    let value = |name: &&str| Some(((*name).to_owned(), lookup(name)?.into_string().ok()?));
    protocol::env::PROXIES.iter().filter_map(value).filter(|(_, value)| !value.is_empty()).collect()
}

fn environment() -> Environment {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("ci-tool"));
    let current_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let mut environment = Environment::from_lookup(&lookup, program, current_dir, BUILD);
    environment.client.secrets = std::env::vars_os().collect();
    environment
}

#[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
fn lookup(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
