//! Sandboxes with different settings, a small root of busybox, and short ways to run something in them.

use sandbox::network::{Bridge, Guard};
use sandbox::{
    Errands, Error, Exit, Limits, MountPoint, Network, Output, Root, Runtime, Sandbox, Settings,
    Source, Spec, Stream, Zygote,
};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::Mount;

const BUSYBOX: &str = "/bin/busybox";
const CRUN: &str = "/usr/bin/crun";
/// Programs that make containers, which must do as we do.
const PROGRAMS: [(&str, &str); 2] = [("crun", CRUN), ("runc", "/usr/sbin/runc")];
/// Memory of a run in the limited sandbox.
pub(crate) const MEMORY: u64 = 64 << 20;
/// Processes of a run in the limited sandbox.
pub(crate) const PIDS: u64 = 40;
/// What a cancelled command gets in the plain sandbox.
pub(crate) const SHORT_GRACE: Duration = Duration::from_millis(400);
/// What a cancelled command gets in the host's network; no case should have to wait for it.
pub(crate) const LONG_GRACE: Duration = Duration::from_secs(100);

/// One zygote for each kind of settings.
pub(crate) struct Zygotes {
    plain: Zygote,
    host: Zygote,
    limited: Zygote,
    bridged: Zygote,
    crun: Zygote,
    /// One for each of [`PROGRAMS`].
    programs: Vec<Zygote>,
    guard: Guard,
    errands: Errands,
}

impl Zygotes {
    /// To be called while there is only one thread.
    pub(crate) fn start() -> Zygotes {
        let start = || Zygote::start(&std::env::current_exe().unwrap(), &["zygote"]).unwrap();
        let guard = Guard::start(&std::env::current_exe().unwrap(), &["guard"]).unwrap();
        let errands = Errands::start(&std::env::current_exe().unwrap(), &["errands"]).unwrap();
        let (plain, host, limited) = (start(), start(), start());
        let (bridged, crun) = (start(), start());
        let programs = PROGRAMS.iter().map(|_| start()).collect();
        Zygotes { plain, host, limited, bridged, crun, programs, guard, errands }
    }
}

/// What every case gets.
#[derive(Clone)]
pub(crate) struct Fixture {
    /// No network, a short grace, no limits.
    pub(crate) plain: Sandbox,
    /// The host's network, a long grace.
    pub(crate) host: Sandbox,
    /// No network, memory and pids limited.
    pub(crate) limited: Sandbox,
    /// The engine's network.
    pub(crate) bridged: Sandbox,
    /// Containers made by `crun`; no network, memory and pids limited.
    pub(crate) crun: Sandbox,
    /// The plain one, with containers made by each of [`PROGRAMS`].
    pub(crate) programs: Vec<(&'static str, Sandbox)>,
    /// Runs programs of the host.
    pub(crate) errands: Arc<Errands>,
    pub(crate) root: PathBuf,
    pub(crate) cgroup_name: String,
    pub(crate) directory: Arc<tempfile::TempDir>,
}

impl Fixture {
    pub(crate) fn new(zygotes: Zygotes) -> Fixture {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let root = directory.path().join("root");
        make_root(&root);
        let cgroup_name = format!("sandbox-test-{}", std::process::id());
        let settings = |name: &str| Settings {
            grace: SHORT_GRACE,
            cgroup_name: cgroup_name.clone(),
            limits: Limits::default(),
            network: Network::None,
            hosts_files: directory.path().join(name),
            runtime: None,
        };
        let limits = Limits { memory: Some(MEMORY), pids: Some(PIDS), cpus: Some(2.0) };
        let host = Settings { network: Network::Host, grace: LONG_GRACE, ..settings("host") };
        let bridge = Bridge::open(None, zygotes.guard).unwrap();
        let bridged = Settings { network: Network::Bridge, ..settings("bridged") };
        let runtime = Runtime { program: CRUN.into(), place: directory.path().join("bundles") };
        let made = Settings { runtime: Some(runtime), limits, ..settings("crun") };
        let program = |((name, path), zygote): (&(&'static str, &str), Zygote)| {
            let place = directory.path().join(format!("bundles-{name}"));
            let runtime = Some(Runtime { program: path.into(), place });
            let settings = Settings { runtime, ..settings(&format!("program-{name}")) };
            (*name, Sandbox::new(zygote, settings, None).unwrap())
        };
        Fixture {
            programs: PROGRAMS.iter().zip(zygotes.programs).map(program).collect(),
            errands: Arc::new(zygotes.errands),
            crun: Sandbox::new(zygotes.crun, made, None).unwrap(),
            bridged: Sandbox::new(zygotes.bridged, bridged, Some(bridge)).unwrap(),
            plain: Sandbox::new(zygotes.plain, settings("plain"), None).unwrap(),
            host: Sandbox::new(zygotes.host, host, None).unwrap(),
            limited: Sandbox::new(
                zygotes.limited,
                Settings { limits, ..settings("limited") },
                None,
            )
            .unwrap(),
            root,
            cgroup_name,
            directory,
        }
    }

    /// The same with a root of its own, and another sandbox in the place of the plain one and of that of the
    /// engine's network.
    pub(crate) fn through(&self, sandbox: &Sandbox) -> Fixture {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let root = directory.path().join("root");
        make_root(&root);
        let (plain, bridged) = (sandbox.clone(), sandbox.clone());
        Fixture { plain, bridged, root, directory, ..self.clone() }
    }

    /// Runs in the plain sandbox, which must not fail to.
    pub(crate) async fn run(&self, args: &[&str]) -> Outcome {
        run(&self.plain, self.spec(args)).await.unwrap()
    }

    /// Runs a line of shell in the plain sandbox.
    pub(crate) async fn shell(&self, line: &str) -> Outcome {
        self.run(&["sh", "-c", line]).await
    }

    /// A command in the shared root as root, with nothing special about it.
    pub(crate) fn spec(&self, args: &[&str]) -> Spec {
        spec_in(&self.root, args)
    }

    /// A new directory outside of the root.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }
}

/// A command in a root of one's own.
pub(crate) fn spec_in(root: &Path, args: &[&str]) -> Spec {
    let args = args.iter().map(|argument| (*argument).to_owned()).collect();
    let env = vec![("PATH".to_owned(), "/bin".to_owned())];
    Spec { env, ..Spec::new(Root::Mount(Mount::bind(root).unwrap()), args) }
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) exit: Exit,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// The standard output of a command that must have succeeded.
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        assert_eq!(self.exit.code, 0, "{self:?}");
        self.stdout.trim_end()
    }
}

/// Runs and collects the output.
pub(crate) async fn run(sandbox: &Sandbox, spec: Spec) -> Result<Outcome, Error> {
    let (collected, output) = collector();
    let exit = sandbox.run(spec, output).await?;
    let (stdout, stderr) = std::mem::take(&mut *collected.lock().unwrap());
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Outcome { exit, stdout: text(stdout), stderr: text(stderr) })
}

/// Standard output and standard error so far.
pub(crate) type Collected = Arc<Mutex<(Vec<u8>, Vec<u8>)>>;

/// An output that keeps everything.
pub(crate) fn collector() -> (Collected, Output) {
    let collected = Collected::default();
    let into = collected.clone();
    let output = move |stream, bytes: &[u8]| {
        let mut collected = into.lock().unwrap();
        match stream {
            Stream::Stdout => collected.0.extend_from_slice(bytes),
            Stream::Stderr => collected.1.extend_from_slice(bytes),
        }
    };
    (collected, Box::new(output))
}

/// A mount in a container.
pub(crate) fn mount(target: &str, source: Source) -> MountPoint {
    MountPoint { target: target.to_owned(), source, read_only: false }
}

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < limit, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Processes of the host whose command line contains a text.
pub(crate) fn processes_with(text: &str) -> HashSet<i32> {
    let line = |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let has = |pid: &i32| String::from_utf8_lossy(&line(pid)).contains(text);
    processes().into_iter().filter(has).collect()
}

/// Processes of the host that this process started.
pub(crate) fn children_of(parent: u32) -> HashSet<i32> {
    let is_child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        fields.split_ascii_whitespace().nth(1) == Some(parent.to_string().as_str())
    };
    processes().into_iter().filter(is_child).collect()
}

fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// A root with busybox under all its names, and what a root must have.
pub(crate) fn make_root(root: &Path) {
    for directory in ["bin", "proc", "dev", "sys", "etc", "tmp"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    for file in ["etc/hosts", "etc/hostname", "etc/resolv.conf"] {
        fs::write(root.join(file), "").unwrap();
    }
    fs::copy(BUSYBOX, root.join("bin/busybox")).expect("install busybox-static");
    let listed = std::process::Command::new(BUSYBOX).arg("--list").output().unwrap();
    for name in String::from_utf8(listed.stdout).unwrap().lines().filter(|name| *name != "busybox")
    {
        symlink("busybox", root.join("bin").join(name)).unwrap();
    }
}
