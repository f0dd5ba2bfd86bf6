//! Shows the dashboard over made-up snapshots: `cargo run -p tui --example demo [HOST]`.
//!
//! HOST is `two` (the default), `one`, `sixteen`, `many`, `nothing`, `empty`, `waiting`, `starts` (memory is looked at), `ends`,
//! `panics` (the sampler does) or `crashes` (the dashboard's own task does). No privileges are needed, because nothing is measured.

mod made_up;

use model::snapshot::Snapshot;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let host = std::env::args().nth(1).unwrap_or_else(|| "two".to_owned());
    let crashes = host == "crashes";
    let (sender, snapshots) = watch::channel(None);
    let options = tui::Options {
        label: Some("DEMO, made-up data".to_owned()),
        ..tui::Options::default()
    };
    // The tick is on another thread, as the agent's sampler is.
    tokio::spawn(async move {
        let mut tick = 0;
        loop {
            if let Some(snapshot) = made(&host, tick) {
                sender.send_replace(Some(Arc::new(snapshot)));
            }
            tick += 1;
            match (host.as_str(), tick) {
                ("ends", 4) => return,
                ("panics", 4) => panic!("made-up panic of the sampler"),
                _ => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        }
    });
    let crash = async {
        tokio::time::sleep(Duration::from_secs(if crashes { 4 } else { u64::MAX })).await;
        panic!("made-up panic of the dashboard");
    };
    let ended = tokio::select! {
        ended = tui::run(snapshots, options) => ended?,
        () = crash => return Ok(()),
    };
    // After SIGHUP there is nobody to tell.
    let _ = writeln!(std::io::stdout(), "{ended:?}");
    Ok(())
}

fn made(host: &str, tick: u64) -> Option<Snapshot> {
    let mut snapshot = match host {
        "one" => made_up::one_node(tick),
        "sixteen" => made_up::sixteen_nodes(tick),
        "many" => made_up::many_processes(300),
        "nothing" => made_up::nothing_known(),
        "waiting" => return None,
        _ => made_up::two_nodes(tick),
    };
    if host == "starts" {
        for process in &mut snapshot.processes {
            process.placement.coverage = Some((tick as f64 / 20.0).min(1.0));
        }
    }
    if host == "empty" {
        snapshot.processes.clear();
    }
    Some(snapshot)
}
