//! What was made before and is gone is made again, and nothing else.

use crate::fixture::World;
use serde_json::json;

const NAME: &str = "{ host { directory(path: \"src\") { name } } }";

/// Evaluates both directories, so that the session remembers them.
const BOTH: &str = "{ container {
    withDirectory(path: \"/\", source: \"SRC\") {
        withDirectory(path: \"/\", source: \"OTHER\") { count } } } }";

#[tokio::test]
async fn a_lost_value_is_evaluated_again_and_the_others_are_kept() {
    let world = World::new();
    let client = world.client("one");
    let mut both = BOTH.to_owned();
    for (path, word) in [("src", "SRC"), ("other", "OTHER")] {
        let query = format!("{{ host {{ directory(path: \"{path}\") {{ id }} }} }}");
        both = both.replace(word, &client.id(&query, "/host/directory/id").await);
    }
    client.data(&both).await;
    assert_eq!(client.probe.counted("directory"), 2);

    client.probe.lost.lock().unwrap().insert("src".into());
    assert_eq!(client.data(NAME).await["host"]["directory"]["name"], json!("src"));
    assert_eq!(client.probe.counted("directory"), 3, "one of the two was made again");
    assert_eq!(client.probe.counted("name"), 2, "it failed once");
    assert_eq!(client.probe.counted("host"), 1);
    let count = client.probe.counted("withDirectory");
    client.data(&both).await;
    assert_eq!(client.probe.counted("withDirectory"), 2 * count, "what came of it is lost too");
}

#[tokio::test]
async fn what_stays_lost_is_an_error_in_the_end() {
    let world = World::new();
    let client = world.client("one");
    // Never made again, because nobody made it before.
    client.probe.lost.lock().unwrap().insert("new".into());
    assert_eq!(client.error("{ directory { name } }").await, "the directory is gone");
}
