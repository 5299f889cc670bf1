//! How long a container takes from the request to the end of `true`, overlay mount included.
//!
//! `cargo run --release -p sandbox --example start -- [runs]`, as root, with Debian's `busybox-static`. The overlay's
//! directories lie in memory, so that no disk is measured.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made is told by its panic")]

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};
use sandbox::{Limits, Network, Root, Sandbox, Settings, Spec, Zygote};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use store::Mount;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "zygote") {
        let code = sandbox::zygote_main();
        assert_eq!(code, 0, "the zygote failed");
        return;
    }
    let runs = words.first().map_or(300, |word| word.parse().unwrap());
    let start = || Zygote::start(&std::env::current_exe().unwrap(), &["zygote"]).unwrap();
    let zygotes = [start(), start(), start()];
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(measure(zygotes, runs));
}

async fn measure([isolated, shared, limited]: [Zygote; 3], runs: usize) {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let root = directory.path().join("root");
    for name in ["bin", "proc", "dev", "sys", "etc"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    for name in ["etc/hosts", "etc/hostname", "etc/resolv.conf"] {
        fs::write(root.join(name), "").unwrap();
    }
    fs::copy("/bin/busybox", root.join("bin/true")).unwrap();
    let settings = |network, limits| Settings {
        grace: Duration::from_secs(1),
        cgroup_name: format!("start-{}", std::process::id()),
        limits,
        network,
        runtime: None,
        hosts_files: directory.path().join("hosts"),
    };
    let none = Limits::default();
    let some = Limits { memory: Some(1 << 30), pids: Some(1000), cpus: None };
    let kinds = [
        ("network namespace", isolated, settings(Network::None, none)),
        ("the host's network", shared, settings(Network::Host, none)),
        ("network namespace, memory and pids limits", limited, settings(Network::None, some)),
    ];
    for (name, zygote, settings) in kinds {
        let sandbox = Sandbox::new(zygote, settings, None).unwrap();
        let mut times = Vec::new();
        for run in 0..runs + 10 {
            let begin = Instant::now();
            let upper = directory.path().join(format!("upper-{run}"));
            let spec = spec(overlay(&root, &upper));
            let exit = sandbox.run(spec, Box::new(|_, _| {})).await.unwrap();
            times.push(begin.elapsed());
            assert_eq!(exit.code, 0);
            fs::remove_dir_all(upper).unwrap();
        }
        report(name, times.split_off(10));
        sandbox.shutdown().await;
    }
}

fn overlay(lower: &Path, upper: &Path) -> Mount {
    fs::create_dir_all(upper.join("upper")).unwrap();
    fs::create_dir_all(upper.join("work")).unwrap();
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).unwrap();
    fsconfig_set_string(&context, "lowerdir+", lower).unwrap();
    fsconfig_set_string(&context, "upperdir", upper.join("upper")).unwrap();
    fsconfig_set_string(&context, "workdir", upper.join("work")).unwrap();
    fsconfig_set_flag(&context, "volatile").unwrap();
    fsconfig_create(&context).unwrap();
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty());
    Mount::from_fd(mount.unwrap())
}

fn spec(root: Mount) -> Spec {
    let env = vec![("PATH".to_owned(), "/bin".to_owned())];
    Spec { env, ..Spec::new(Root::Mount(root), vec!["true".to_owned()]) }
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e3;
    let line = format!(
        "{name}: median {:.2} ms, p10 {:.2}, p90 {:.2} ({} runs)\n",
        at(50),
        at(10),
        at(90),
        times.len()
    );
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}
