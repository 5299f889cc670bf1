//! Each piece that a machine lacks is one error, with the command that mends it.

use super::{ALONE, core, rootfs};
use std::path::Path;
use testkit::{Output, State, User};

#[track_caller]
fn says(output: &Output, message: &str, hint: &str) {
    let said = output.fails(1);
    assert!(said.contains(message), "no `{message}` in {said}");
    assert!(said.contains(&format!("hint: {hint}")), "no `{hint}` in {said}");
    assert_eq!(said.matches("Error:").count(), 1, "{said}");
    assert_eq!(said.matches("hint: sudo").count(), 1, "{said}");
}

#[test]
fn no_program_that_maps_ids() {
    let state = State::of_user(User::with_ids(), ALONE);
    let output = state.cli(["core", "version"]).env("PATH", "/nonexistent").run();
    says(&output, "`newuidmap` is not installed", "sudo apt install uidmap");
    state.cli(["core", "version"]).run().ok();
}

#[test]
fn no_range_of_ids() {
    let user = User::new();
    let name = user.name().to_owned();
    let state = State::of_user(user, ALONE);
    let output = state.cli(["core", "version"]).run();
    let message = format!("`/etc/subuid` gives user `{name}` no ids");
    says(&output, &message, "sudo usermod --add-subuids ");
    let command = output.stderr.lines().find(|line| line.contains("hint: sudo")).unwrap();
    assert!(command.contains("--add-subgids ") && command.ends_with(&name), "{command}");
    // The command does what it says.
    let words: Vec<&str> =
        command.split_whitespace().skip_while(|word| *word != "usermod").collect();
    let status = std::process::Command::new(words[0]).args(&words[1..]).status();
    assert!(status.is_ok_and(|status| status.success()), "{command}");
    let root = rootfs();
    let output = state.cli(core(&root, &["with-exec", "--args=id,-u", "stdout"])).run();
    assert_eq!(output.ok(), "0\n");
}

/// How a shell of root's goes on as the user, with the command that it was given.
fn as_user(state: &State) -> String {
    let user = state.user().unwrap();
    format!("exec setpriv --reuid={} --regid={} --clear-groups \"$@\"", user.uid, user.gid)
}

/// Runs a command of the user by a script of root's, which has a folder in `$0` and the command in `$@`. What
/// the script mounts is for this command and the engine it starts alone.
fn by_script(state: &State, script: &str) -> Output {
    let (root, program, folder) = (rootfs(), state.binary(), state.workdir());
    let start = ["--mount", "--propagation", "private", "--", "sh", "-ec", script];
    state
        .program(Path::new("/usr/bin/unshare"))
        .as_root()
        .args(start.into_iter().chain([folder.to_str().unwrap(), program.to_str().unwrap()]))
        .args(core(&root, &["with-exec", "--args=echo,hello", "stdout"]))
        .run()
}

/// A machine without one way to the network: that is named with bridges, and no hindrance without.
#[track_caller]
fn needed_for_bridges_alone(change: &str, message: &str, hint: &str) {
    let state = State::of_user(User::with_ids(), ALONE);
    let script = format!("{change}\n{}", as_user(&state));
    assert_eq!(by_script(&state, &script).ok(), "hello\n");
    state.stop();
    state.configure("network = \"bridge\"\n");
    let output = by_script(&state, &script);
    let said = output.fails(1);
    assert!(said.contains(message), "no `{message}` in {said}");
    assert!(said.contains(hint), "no `{hint}` in {said}");
    assert_eq!(said.matches("Error:").count(), 1, "{said}");
}

#[test]
fn no_program_for_the_network() {
    // A layer over the folder of programs, in which these are removed.
    let change = "mount -t tmpfs none \"$0\"; cd \"$0\"; mkdir upper work
        mknod upper/pasta c 0 0; mknod upper/passt c 0 0
        mount -t overlay overlay -o lowerdir=/usr/bin,upperdir=upper,workdir=work /usr/bin; cd /";
    needed_for_bridges_alone(change, "`pasta`", "apt install passt");
}

#[test]
fn no_node_for_tunnels() {
    let change = "mount -t tmpfs none \"$0\"; mknod -m 600 \"$0/tun\" c 10 200
        mount --bind \"$0/tun\" /dev/net/tun";
    needed_for_bridges_alone(change, "`/dev/net/tun`", "chmod");
}

#[test]
fn user_namespaces_that_are_switched_off() {
    let state = State::of_user(User::with_ids(), ALONE);
    // The switch is one of a user namespace, so that of the machine need not be touched. A process has
    // the rights of root there once it executes something after root has a name there.
    let switch_off = "echo 0 > /proc/sys/user/max_user_namespaces";
    state.file("inside", format!("{switch_off}; {}", as_user(&state)));
    let script = "mkfifo \"$0/ready\" \"$0/go\"
        wait='echo > \"$0/ready\"; read x < \"$0/go\"; exec sh -e \"$0/inside\" \"$@\"'
        unshare --user -- sh -ec \"$wait\" \"$0\" \"$@\" & read x < \"$0/ready\"
        for map in uid_map gid_map; do echo 0 0 4294967295 > /proc/$!/$map; done
        echo > \"$0/go\"; wait $!";
    let output = by_script(&state, script);
    says(
        &output,
        "`user.max_user_namespaces` is 0",
        "sudo sysctl -w user.max_user_namespaces=15000",
    );
}
