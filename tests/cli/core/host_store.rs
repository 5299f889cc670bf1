//! Images of the container program on the caller's machine.

use serde_json::json;
use std::path::Path;
use testkit::State;

/// A folder of programs with `podman`, which keeps its images below the state's home.
fn programs(state: &State) -> String {
    let folder = state.home().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let home = state.home();
    let store = home.display();
    let script = format!(
        "#!/bin/sh\nexec /usr/bin/podman --root {store}/images --runroot {store}/run --storage-driver=vfs \"$@\"\n"
    );
    let program = folder.join("podman");
    testkit::write_program(&program, script);
    format!("{}:/usr/bin:/bin", folder.display())
}

#[test]
fn an_image_goes_to_podman_and_comes_back() {
    let state = State::new();
    let path = programs(&state);
    let rootfs = format!("--directory={}", testkit::busybox().display());
    let line = [
        "core",
        "container",
        "with-rootfs",
        &rootfs,
        "with-new-file",
        "--path=/mine",
        "--contents=hello",
        "with-env-variable",
        "--name=A",
        "--value=b",
        "export-image",
        "--name=localhost/mine:1",
    ];
    state.cli(line).env("PATH", &path).run().ok();
    let podman = state.home().join("bin/podman");
    let args = ["image", "inspect", "--format={{json .Config.Env}}", "localhost/mine:1"];
    let env = state.program(&podman).args(args).env("PATH", &path).run();
    assert!(env.ok().contains("A=b"), "{env:#?}");

    let line = ["core", "host", "container-image", "--name=localhost/mine:1"];
    let file = line.iter().chain(&["file", "--path=/mine", "contents"]);
    assert_eq!(state.cli(file).env("PATH", &path).run().ok().trim_end(), "hello");
    let env = line.iter().chain(&["env-variable", "--name=A"]);
    assert_eq!(state.cli(env).env("PATH", &path).run().ok().trim_end(), "b");

    let none = ["core", "host", "container-image", "--name=localhost/none:1", "sync"];
    let said = state.cli(none).env("PATH", &path).run();
    assert!(said.fails(1).contains("localhost/none"), "{said:#?}");
    // Podman locks its folders in ways that outlive it.
    let reset = ["system", "reset", "--force"];
    let _ = state.program(Path::new(&podman)).args(reset).env("PATH", &path).run();
}

#[test]
fn a_machine_without_a_container_program_says_so() {
    let state = State::new();
    let nothing = json!(state.home().join("nothing").display().to_string());
    let nothing = nothing.as_str().unwrap();
    for line in [
        &["core", "container", "export-image", "--name=x:1"][..],
        &["core", "host", "container-image", "--name=x:1", "sync"],
    ] {
        let output = state.cli(line).env("PATH", nothing).run();
        let said = output.fails(1);
        assert!(said.contains("no container program that keeps images"), "{said}");
        assert!(said.contains("install docker or podman"), "{said}");
    }
    let output = state.cli(["core", "container", "export-image", "--name=-v"]).run();
    assert!(output.fails(1).contains("`-v` is no name of an image"), "{output:#?}");
}
