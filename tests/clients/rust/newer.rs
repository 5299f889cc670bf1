//! Cases about what only newer versions of the library have.

use crate::outside::repository;
use crate::{Folder, Outcome, debian, equal, exposing, failure, shell, web_server};
use dagger_sdk::errors::DaggerError;
use dagger_sdk::{
    Changeset, ChangesetMergeConflict, ChangesetWithChangesetOptsBuilder,
    ContainerWithDirectoryOptsBuilder, ContainerWithDockerHealthcheckOptsBuilder, DaggerConn,
    Directory, DirectoryFilterOptsBuilder, FileSearchOptsBuilder, FileType,
    FileWithReplacedOptsBuilder, Json, NetworkProtocol, QueryHttpOptsBuilder,
};

const BEFORE: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

fn numbers(dag: &DaggerConn, text: &str) -> Directory {
    dag.directory().with_new_file("numbers", text)
}

/// The changes that one word for another makes.
fn replaced(dag: &DaggerConn, from: &str, to: &str) -> Changeset {
    numbers(dag, &BEFORE.replace(from, to)).changes(numbers(dag, BEFORE))
}

pub async fn failing_command_is_an_exec_error(dag: DaggerConn) -> Outcome {
    use dagger_sdk::core::gql_client::GraphQlExtension;
    use dagger_sdk::core::graphql_client::GraphQLError;
    let script = "echo some $1output; echo some talk >&2; exit 42";
    let Err(DaggerError::Query(GraphQLError::DomainError { fields, .. })) =
        shell(&dag, script).stdout().await
    else {
        eyre::bail!("not an error of the engine");
    };
    let Some(GraphQlExtension::ExecError { cmd, exit_code, stdout, stderr }) =
        fields.into_iter().next().and_then(|error| error.extensions)
    else {
        eyre::bail!("not an exec error");
    };
    equal(cmd, ["sh", "-c", script])?;
    equal(exit_code, 42)?;
    equal(stdout, "some output")?;
    equal(stderr, "some talk")
}

pub async fn list_of_objects(dag: DaggerConn) -> Outcome {
    let container = dag.container().with_env_variable("A", "1").with_env_variable("B", "2");
    let mut found = vec![];
    for variable in container.env_variables().await? {
        found.push((variable.name().await?, variable.value().await?));
    }
    let expected =
        [("A", "1"), ("B", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    equal(found, expected)
}

pub async fn ports_and_enums(dag: DaggerConn) -> Outcome {
    let ports = exposing(&dag)?.exposed_ports().await?;
    equal(ports.len(), 2)?;
    equal(ports[0].port().await?, 80)?;
    equal(ports[0].description().await?, "web")?;
    equal(ports[1].protocol().await?, NetworkProtocol::Udp)
}

pub async fn what_is_in_a_directory(dag: DaggerConn) -> Outcome {
    let directory = dag.directory().with_new_file("sub/file", "text");
    eyre::ensure!(directory.exists("sub/file").await?, "it is there");
    eyre::ensure!(!directory.exists("nothing").await?, "it is not there");
    equal(directory.stat("sub/file").size().await?, 4)?;
    equal(directory.stat("sub").file_type().await?, FileType::Directory)?;
    equal(directory.find_up("file", "sub").await?, "sub/file")
}

pub async fn both_streams_together(dag: DaggerConn) -> Outcome {
    let both = shell(&dag, "echo out; echo err >&2").combined_output().await?;
    eyre::ensure!(both.contains("out\n") && both.contains("err\n"), both);
    Ok(())
}

pub async fn search_in_files(dag: DaggerConn) -> Outcome {
    let directory = dag.directory().with_new_file("a", "one\ntwo\n").with_new_file("b", "three\n");
    let found = directory.search("^t").await?;
    equal(found.len(), 2)?;
    equal(found[0].file_path().await?, "a")?;
    equal(found[0].line_number().await?, 2)?;
    let insensitive = FileSearchOptsBuilder::default().insensitive(true).build()?;
    equal(directory.file("a").search_opts("TWO", insensitive).await?.len(), 1)
}

pub async fn variables_of_a_file(dag: DaggerConn) -> Outcome {
    let variables = dag.env_file().with_variable("A", "1").with_variable("B", "$A-2");
    equal(variables.get("B").await?, "1-2")?;
    let container = debian(&dag).with_env_file_variables(variables);
    equal(container.with_exec(vec!["sh", "-c", "echo $B"]).stdout().await?, "1-2\n")?;
    let text = "APP_NAME='x y'\nexport OTHER=z\n";
    let read = dag.directory().with_new_file(".env", text).file(".env").as_env_file();
    let mut found = vec![];
    for variable in read.variables().await? {
        found.push(format!("{}={}", variable.name().await?, variable.value().await?));
    }
    equal(found, ["APP_NAME=x y", "OTHER=z"])?;
    equal(read.namespace("app").get("NAME").await?, "x y")
}

pub async fn json_values(dag: DaggerConn) -> Outcome {
    let value = dag.json().with_contents(Json(r#"{"a":{"b":[1]}}"#.to_owned()));
    equal(value.field(vec!["a", "b"]).contents().await?.0, "[1]")?;
    let more = value.with_field(vec!["a", "c"], dag.json().new_string("text"));
    equal(more.field(vec!["a", "c"]).as_string().await?, "text")?;
    equal(more.field(vec!["a"]).fields().await?, ["b", "c"])?;
    let read = dag.directory().with_new_file("j", r#"{"n": 7}"#).file("j").as_json();
    equal(read.field(vec!["n"]).as_integer().await?, 7)
}

pub async fn changes_between_directories(dag: DaggerConn) -> Outcome {
    let before = dag.directory().with_new_file("edited", "one\ntwo\n").with_new_file("gone", "g\n");
    let after = before.with_new_file("edited", "one\n2\n").without_file("gone");
    let changes = after.with_new_file("new", "n\n").changes(before.clone());
    equal(changes.added_paths().await?, ["new"])?;
    equal(changes.modified_paths().await?, ["edited"])?;
    equal(changes.removed_paths().await?, ["gone"])?;
    equal(changes.layer().entries().await?, ["edited", "new"])?;
    let mut paths = vec![];
    for stat in changes.diff_stats().await? {
        paths.push(stat.path().await?);
    }
    equal(paths, ["edited", "gone", "new"])?;
    eyre::ensure!(!changes.is_empty().await?, "it is not empty");
    eyre::ensure!(before.changes(before.clone()).is_empty().await?, "it is empty");
    equal(before.with_changes(changes).entries().await?, ["edited", "new"])
}

pub async fn patches(dag: DaggerConn) -> Outcome {
    let (before, expected) = (numbers(&dag, BEFORE), BEFORE.replace("two", "2"));
    let patch = replaced(&dag, "two", "2").as_patch();
    let text = patch.contents().await?;
    eyre::ensure!(text.contains("-two\n+2\n"), text);
    let patched = before.with_patch(text.as_str()).file("numbers");
    equal(patched.contents().await?, expected.as_str())?;
    equal(before.with_patch_file(patch).file("numbers").contents().await?, expected)?;
    failure(numbers(&dag, "other\n").with_patch(text).sync().await)?;
    Ok(())
}

pub async fn merged_changes(dag: DaggerConn) -> Outcome {
    let (ours, against) = (replaced(&dag, "two", "2"), replaced(&dag, "two", "II"));
    let merged = ours.with_changeset(replaced(&dag, "seven", "7")).after().file("numbers");
    equal(merged.contents().await?, BEFORE.replace("two", "2").replace("seven", "7"))?;
    failure(ours.with_changeset(against.clone()).sync().await)?;
    let mut theirs = ChangesetWithChangesetOptsBuilder::default();
    let theirs = theirs.on_conflict(ChangesetMergeConflict::PreferTheirs).build()?;
    let settled = ours.with_changeset_opts(against, theirs).after().file("numbers");
    equal(settled.contents().await?, BEFORE.replace("two", "II"))
}

pub async fn changes_written_to_the_host(dag: DaggerConn) -> Outcome {
    let folder = Folder::new()?;
    std::fs::write(folder.path("gone"), "g")?;
    std::fs::write(folder.path("kept"), "k")?;
    let before = dag.host().directory(folder.path(""));
    let after = before.without_file("gone").with_new_file("new", "n");
    after.changes(before).export(folder.path("")).await?;
    let entries = std::fs::read_dir(folder.path(""))?.collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<_> = entries.iter().map(|entry| entry.file_name()).collect();
    names.sort();
    equal(names, ["kept", "new"])
}

pub async fn history_of_a_repository(dag: DaggerConn) -> Outcome {
    let folder = Folder::new()?;
    repository(&folder)?;
    let remote = dag.git(format!("file://{}", folder.path("")));
    let mut branches = remote.branches().await?;
    branches.sort();
    let branches = branches.iter().map(|name| name.trim_start_matches("refs/heads/"));
    equal(branches.collect::<Vec<_>>(), ["main", "side"])?;
    equal(remote.latest_version().r#ref().await?, "refs/tags/v1.2.0")?;
    let base = remote.branch("side").common_ancestor(remote.branch("main"));
    equal(base.commit().await?, remote.tag("v1.2.0").commit().await?)
}

pub async fn what_is_not_committed(dag: DaggerConn) -> Outcome {
    let folder = Folder::new()?;
    repository(&folder)?;
    std::fs::write(folder.path("a.txt"), "changed\n")?;
    std::fs::write(folder.path("new.txt"), "new\n")?;
    let changes = dag.host().directory(folder.path("")).as_git().uncommitted();
    equal(changes.modified_paths().await?, ["a.txt"])?;
    equal(changes.added_paths().await?, ["new.txt"])?;
    equal(changes.after().file("a.txt").contents().await?, "changed\n")?;
    let patch = changes.as_patch().contents().await?;
    eyre::ensure!(patch.contains("-one\n+changed\n"), patch);
    Ok(())
}

pub async fn addresses(dag: DaggerConn) -> Outcome {
    let folder = Folder::new()?;
    let path = folder.path("file");
    std::fs::write(&path, "at an address")?;
    equal(dag.address(folder.path("")).directory().entries().await?, ["file"])?;
    equal(dag.address(path.as_str()).file().contents().await?, "at an address")?;
    let secret = dag.address(format!("file://{path}")).secret();
    equal(secret.plaintext().await?, "at an address")?;
    let container = dag.address("deb://bookworm").container();
    equal(container.with_exec(vec!["echo", "x"]).stdout().await?, "x\n")
}

pub async fn errors_as_values(dag: DaggerConn) -> Outcome {
    let error = dag.error("it is said").with_value("code", Json("7".to_owned()));
    equal(error.message().await?, "it is said")?;
    let values = error.values().await?;
    equal(values.len(), 1)?;
    equal(values[0].name().await?, "code")?;
    equal(values[0].value().await?.0, "7")?;
    let message = failure(dag.container().with_error("not this way").sync().await)?;
    eyre::ensure!(message.contains("not this way"), message);
    Ok(())
}

pub async fn health_check(dag: DaggerConn) -> Outcome {
    let mut options = ContainerWithDockerHealthcheckOptsBuilder::default();
    let options = options.interval("1m").retries(3isize).build()?;
    let container = dag.container().with_docker_healthcheck_opts(vec!["probe", "it"], options);
    let check = container.docker_healthcheck();
    equal(check.args().await?, ["probe", "it"])?;
    equal(check.interval().await?, "1m0s")?;
    equal(check.retries().await?, 3)
}

pub async fn edited_files(dag: DaggerConn) -> Outcome {
    let directory = dag.directory().with_new_file("a.txt", "one two one");
    let directory = directory.with_new_file("b.log", "");
    let all = FileWithReplacedOptsBuilder::default().all(true).build()?;
    let file = directory.file("a.txt").with_replaced_opts("one", "1", all);
    equal(file.contents().await?, "1 two 1")?;
    let no_logs = DirectoryFilterOptsBuilder::default().exclude(vec!["*.log"]).build()?;
    equal(directory.filter_opts(no_logs).entries().await?, ["a.txt"])?;
    let linked = directory.with_symlink("a.txt", "link").file("link");
    equal(linked.contents().await?, "one two one")?;
    let owner = ContainerWithDirectoryOptsBuilder::default().owner("1").build()?;
    let owned = directory.chown("a.txt", "7:8");
    let owned = debian(&dag).with_directory_opts("/d", owned, owner);
    equal(owned.with_exec(vec!["stat", "-c", "%u", "/d/b.log"]).stdout().await?, "1\n")
}

pub async fn checked_file_of_a_web_server(dag: DaggerConn) -> Outcome {
    let page = format!("{}/page.txt", web_server()?);
    // Of the text that the page has.
    let checksum = "sha256:b8c91be16dfcb6a97b29c5aff9bfde091254154b58f8aaea3d0eb253bed8038b";
    let mut options = QueryHttpOptsBuilder::default();
    let options = options.name("other").permissions(0o644isize).checksum(checksum).build()?;
    let file = dag.http_opts(page.as_str(), options);
    equal(file.name().await?, "other")?;
    equal(file.contents().await?, "from the web")?;
    let wrong = format!("sha256:{}", "0".repeat(64));
    let wrong = QueryHttpOptsBuilder::default().checksum(wrong.as_str()).build()?;
    let message = failure(dag.http_opts(page.as_str(), wrong).contents().await)?;
    eyre::ensure!(message.contains("http checksum mismatch"), message);
    Ok(())
}
