//! Children that come and go while their parent is watched, on the machine that runs the tests.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

use model::snapshot::Snapshot;
use std::process::Command;
use tests::built::numawatch;
use tests::process::Running;

/// Children of children, most of them gone before anybody can ask what they are called.
const SHORT_LIVED: &str = r#"
    read -r go
    for i in 1 2 3 4 5 6 7 8 9 10; do sh -c 'sh -c "/bin/true; /bin/true"; /bin/true'; done
    echo '"done"'
    read -r go"#;

#[test]
fn who_ended_unread_has_its_parents_name_and_a_reason_for_the_rest() {
    let mut shell =
        Running::start(Command::new("sh").args(["-c", SHORT_LIVED])).expect("sh starts");
    let mut watching = Command::new(numawatch());
    let pid = shell.pid().to_string();
    watching.args(["snapshot", "--json", "--for", "600s", "--pid", &pid]);
    let mut watching = Running::start(&mut watching).expect("numawatch starts");
    watching
        .stderr_line(|line| line.starts_with("numawatch: watching "))
        .expect("its word");
    shell.say_go().expect("it waits");
    assert_eq!(shell.json_line::<String>().expect("its word"), "done");
    // What was told is read at the end, too.
    watching.interrupt();
    let (_, document) = watching.wait().expect("it ends");
    let snapshot: Snapshot = serde_json::from_str(&document).expect("a snapshot");
    // Ten times two shells and three programs, of which a shell may become the last, and the shell itself.
    assert!(snapshot.processes.len() > 30, "{document:.400}");
    let nameless = snapshot.processes.iter().filter(|p| p.name.is_empty());
    assert_eq!(nameless.count(), 0);
    let unknown = snapshot.processes.iter().map(|p| &p.placing);
    let mut unknown = unknown.filter(|placing| placing.policy.is_none());
    assert!(unknown.all(|placing| placing.reason.is_some()));
}
