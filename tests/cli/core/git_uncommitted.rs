//! `GitRepository.uncommitted`: what was changed in a work tree since its last commit, as git itself would say it.

use super::git_local::as_git;
use serde_json::json;
use testkit::git::work;
use testkit::{Session, State};

/// A repository with files of each kind, all of them committed.
const COMMITTED: &str = "git init -q r; cd r; mkdir -p d/e x; echo one > f; echo s > staged; echo b > both; echo g > gone; \
     echo r > removed; echo deep > d/e/deep; echo d > x/y; ln -s f link; echo run > run; echo k > known.log; echo o > out.log; \
     echo swap > swap; echo '[a]*' > '[a]*'; printf '*.log\\n!keep.log\\n' > .gitignore; git add -A; git add -f known.log out.log; \
     git commit -qm one";

/// Changes of each kind.
const CHANGED: &str = "echo two > f; echo S > staged; git add staged; echo B > both; git add both; echo C > both; rm gone; \
     git rm -q removed; rm -r d; rm -r x; echo file > x; ln -sfn staged link; chmod +x run; echo K > known.log; \
     git rm -q --cached out.log; rm swap; mkdir swap; echo in > swap/in; echo new > new; mkdir -p n/m; echo nn > n/m/o; \
     echo a > added; git add added; echo i > ignored.log; echo k > keep.log; echo secret > local; \
     echo local > .git/info/exclude; printf x > '[a]*'; printf x > \"$(printf 'two\\nlines')\"; mkdir empty; \
     echo gone > there; git add there; rm there";

#[test]
fn every_kind_of_change_is_told_and_nothing_else() {
    let state = State::new();
    let folder = state.workdir();
    work(&folder, COMMITTED);
    work(&folder.join("r"), CHANGED);
    let session = Session::start(&state);
    let found = as_git(&session, &folder.join("r"), "uncommitted { addedPaths }");
    assert_eq!(
        found,
        json!([
            "added",
            "keep.log",
            "n/",
            "n/m/",
            "n/m/o",
            "new",
            "swap/",
            "swap/in",
            "two\nlines",
            "x"
        ])
    );
    let found = as_git(&session, &folder.join("r"), "uncommitted { modifiedPaths }");
    assert_eq!(found, json!(["[a]*", "both", "f", "known.log", "link", "run", "staged"]));
    let found = as_git(&session, &folder.join("r"), "uncommitted { removedPaths }");
    assert_eq!(found, json!(["d/", "gone", "out.log", "removed", "swap", "x/"]));
    let both = r#"uncommitted { after { file(path: "both") { contents } } }"#;
    assert_eq!(as_git(&session, &folder.join("r"), both), json!("C\n"));
    // The patch does the same to a clone.
    let patch = json!(folder.join("patch").display().to_string());
    as_git(
        &session,
        &folder.join("r"),
        &format!("uncommitted {{ asPatch {{ export(path: {patch}) }} }}"),
    );
    work(&folder, "git clone -q r clone; cd clone; git apply ../patch");
    let differing = work(
        &folder,
        "rm -rf r/.git r/ignored.log r/local r/empty r/out.log clone/.git; diff -r --no-dereference r clone; true",
    );
    assert_eq!(differing, "");
}

#[test]
fn a_clean_work_tree_has_nothing() {
    let state = State::new();
    let folder = state.workdir();
    work(
        &folder,
        &format!(
            "{COMMITTED}; git rm -q --cached out.log; git commit -qm two; chmod g+w f; touch *; cd ..; cp -r r copy; \
             git clone -q --bare r bare; mkdir both; git clone -q r both/r; git -C both/r worktree add -q ../w -b side; \
             sed -i 's,gitdir: .*/both/,gitdir: ../,' both/w/.git"
        ),
    );
    let session = Session::start(&state);
    let none = json!(true);
    for name in ["r", "copy", "bare"] {
        let found = as_git(&session, &folder.join(name), "uncommitted { isEmpty }");
        assert_eq!(found, none, "{name}");
    }
    let both = json!(session.host_directory(&folder.join("both")));
    let linked = |chain: &str| {
        let chain = format!(r#"directory(path: "w") {{ asGit {{ uncommitted {{ {chain} }} }} }}"#);
        session.leaf(&format!("{{ node(id: {both}) {{ ... on Directory {{ {chain} }} }} }}"))
    };
    assert_eq!(linked("isEmpty"), none);
}

#[test]
fn before_the_first_commit_everything_is_new() {
    let state = State::new();
    let folder = state.workdir();
    work(
        &folder,
        "git init -q r; cd r; echo a > a; git add a; echo b > b; echo c > c; echo c > .gitignore",
    );
    let session = Session::start(&state);
    let found = as_git(&session, &folder.join("r"), "uncommitted { addedPaths }");
    assert_eq!(found, json!([".gitignore", "a", "b"]));
}

#[test]
fn a_url_of_the_callers_machine_has_its_work_tree() {
    let state = State::new();
    let folder = state.workdir();
    work(&folder, &format!("{COMMITTED}; echo two > f"));
    let session = Session::start(&state);
    let url = json!(format!("file://{}", folder.join("r").display()));
    let found =
        session.leaf(&format!("{{ git(url: {url}) {{ uncommitted {{ modifiedPaths }} }} }}"));
    assert_eq!(found, json!(["f"]));
}

#[test]
fn conflicts_sparse_trees_and_submodules_are_seen_as_git_sees_them() {
    let state = State::new();
    let folder = state.workdir();
    work(
        &folder,
        "git init -q lib; cd lib; echo l > l; git add l; git commit -qm l; cd ..; \
         git init -q r; cd r; mkdir a b; echo 1 > a/f; echo 1 > b/f; git add .; \
         git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm one; cd ..; \
         cp -r r sparse; git -C sparse sparse-checkout set a; \
         cp -r r split; git -C split update-index --split-index; echo 2 > split/b/f; \
         cp -r r without; rm -r without/lib; \
         cd r; git checkout -q -b side; echo 2 > a/f; git commit -qam two; git checkout -q main; echo 3 > a/f; git commit -qam three; \
         git merge -q side || true",
    );
    let session = Session::start(&state);
    let modified =
        |name: &str| as_git(&session, &folder.join(name), "uncommitted { modifiedPaths }");
    let removed = |name: &str| as_git(&session, &folder.join(name), "uncommitted { removedPaths }");
    assert_eq!(modified("r"), json!(["a/f"]));
    assert_eq!(removed("r"), json!([]));
    assert_eq!((modified("sparse"), removed("sparse")), (json!([]), json!([])));
    assert_eq!((modified("split"), removed("split")), (json!(["b/f"]), json!([])));
    assert_eq!((modified("without"), removed("without")), (json!([]), json!(["lib/"])));
}

#[test]
fn names_that_are_no_text_stay_as_they_are() {
    let state = State::new();
    let folder = state.workdir();
    // A submodule comes as a whole: what it has is found by looking, not told by git.
    work(
        &folder,
        "n() { printf \"$1\"; }; \
         git init -q lib; cd lib; mkdir \"$(n 'd\\377')\"; echo l > \"$(n 'd\\377/l\\376')\"; git add .; git commit -qm l; cd ..; \
         git init -q r; cd r; mkdir \"$(n 'd\\377')\"; echo 1 > \"$(n 'caf\\351')\"; echo 1 > \"$(n 'd\\377/gone\\376')\"; echo 1 > kept; \
         git submodule --quiet add ../lib lib; git add .; git commit -qm one; \
         echo 2 > \"$(n 'caf\\351')\"; rm -r \"$(n 'd\\377')\" lib; mkdir \"$(n 'n\\377')\"; echo n > \"$(n 'n\\377/new\\376')\"",
    );
    let session = Session::start(&state);
    let changed =
        |chain: &str| as_git(&session, &folder.join("r"), &format!("uncommitted {{ {chain} }}"));
    assert_eq!(changed("removedPaths"), json!(["d\u{fffd}/", "lib/"]));
    let out = json!(folder.join("out").display().to_string());
    changed(&format!("after {{ export(path: {out}) }}"));
    let patch = json!(folder.join("patch").display().to_string());
    changed(&format!("asPatch {{ export(path: {patch}) }}"));
    let differing = work(
        &folder,
        "git clone -q r clone; rm -r clone/lib; git -C clone apply --exclude='lib/*' ../patch; rm -rf r/.git clone/.git; \
         diff -r r out; diff -r r clone; true",
    );
    assert_eq!(differing, "");
}

#[test]
fn files_of_git_lfs_are_changed_when_they_are_not_what_the_commit_points_to() {
    let state = State::new();
    let folder = state.workdir();
    work(
        &folder,
        "git init -q r; cd r; git lfs install --local >/dev/null; git lfs track '*.bin' >/dev/null; \
         for name in same other mode pointer gone; do echo $name > $name.bin; done; echo text > text; \
         git add -A; git commit -qm one",
    );
    let repository = folder.join("r");
    assert!(
        work(&repository, "git cat-file -p HEAD:same.bin").starts_with("version https://git-lfs")
    );
    // So that git looks at all of them again.
    work(&repository, "touch -d 2001-01-01 *.bin");
    let changed = |session: &Session| as_git(session, &repository, "uncommitted { modifiedPaths }");
    assert_eq!(changed(&Session::start(&state)), json!([]));
    work(
        &repository,
        "echo OTHER > other.bin; chmod +x mode.bin; rm gone.bin; \
         echo TEXT > text; echo new > new.bin",
    );
    let told = work(&repository, "git status --porcelain | sort");
    assert_eq!(told, "D gone.bin\n M mode.bin\n M other.bin\n M text\n?? new.bin");
    // As a clone without git-lfs has it.
    work(&repository, "git cat-file -p HEAD:pointer.bin > pointer.bin");
    let session = Session::start(&state);
    assert_eq!(changed(&session), json!(["mode.bin", "other.bin", "text"]));
    assert_eq!(as_git(&session, &repository, "uncommitted { removedPaths }"), json!(["gone.bin"]));
    assert_eq!(as_git(&session, &repository, "uncommitted { addedPaths }"), json!(["new.bin"]));
}
