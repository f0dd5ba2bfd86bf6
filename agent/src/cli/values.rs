//! The command line's values: what people write for pids, nodes, sizes, spans, signals and thresholds.

use crate::probes::forced;
use model::signal::{Mechanism, SignalName};
use std::time::Duration;

pub(super) fn pid(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|pid| *pid > 0);
    number.ok_or_else(|| "no pid; write a process's number, such as 4242".to_owned())
}

pub(super) fn node(text: &str) -> Result<u32, String> {
    let node = text.parse().ok().filter(|node| *node < 1024);
    node.ok_or_else(|| "no node; write its number, such as 1: Linux has at most 1024".to_owned())
}

pub(super) fn size(text: &str) -> Result<u64, String> {
    if text.trim().parse::<f64>().is_ok_and(|bare| bare > 0.0) {
        return Err("no unit; write 60G, 512MiB or 0".to_owned());
    }
    model::size::parse(text).ok_or_else(|| "no size; write 60G, 512MiB or 0".to_owned())
}

pub(super) fn span(text: &str) -> Result<Duration, String> {
    let bare = text
        .parse::<f64>()
        .ok()
        .filter(|s| s.is_finite() && *s >= 0.0 && *s < 1e9);
    match bare {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => humantime::parse_duration(text)
            .map_err(|_| "no duration; write 500ms, 3s or 2m".to_owned()),
    }
}

pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let interval = span(text)?;
    if interval < Duration::from_millis(100) {
        return Err("the shortest interval is 100ms".to_owned());
    }
    Ok(interval)
}

pub(super) fn signal(text: &str) -> Result<SignalName, String> {
    SignalName::ALL
        .into_iter()
        .find(|name| name.as_str() == text)
        .ok_or_else(|| {
            format!(
                "no signal `{text}`; there are {}",
                list(SignalName::ALL.map(SignalName::as_str))
            )
        })
}

pub(super) fn map_entries(text: &str) -> Result<(String, u32), String> {
    let wrong = || "write MAP=ENTRIES, e.g. TOUCH=4".to_owned();
    let (map, entries) = text.split_once('=').ok_or_else(wrong)?;
    let entries = entries.parse().ok().filter(|n| *n > 0);
    Ok((map.to_owned(), entries.ok_or_else(wrong)?))
}

/// `NAME=VALUE` of a threshold.
pub(super) fn threshold(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is expected")?;
    let value: f64 = value
        .parse()
        .map_err(|_| format!("`{value}` is no number"))?;
    if !value.is_finite() || value < 0.0 {
        return Err(format!("`{value}` is no threshold"));
    }
    Ok((name.to_owned(), value))
}

pub(super) fn mechanism(text: &str) -> Result<(SignalName, Option<Mechanism>), String> {
    let (signal, rung) = text
        .split_once('=')
        .ok_or("write SIGNAL=RUNG, e.g. first_touch=tp_btf")?;
    let signal = self::signal(signal)?;
    if rung == forced::OFF {
        return Ok((signal, None));
    }
    let known = forced::mechanisms(signal);
    let wanted = rung;
    let rung = known.iter().find(|mechanism| mechanism.as_str() == wanted);
    let rung = rung.copied().ok_or_else(|| {
        let known: Vec<_> = known.iter().map(|known| known.as_str()).collect();
        format!(
            "{} has no rung `{wanted}`; it has {}, and can be {}",
            signal.as_str(),
            known.join(", "),
            forced::OFF
        )
    })?;
    Ok((signal, Some(rung)))
}

fn list<const N: usize>(words: [&str; N]) -> String {
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, want) in [
            ("3s", Some(3_000)),
            ("500ms", Some(500)),
            ("2m", Some(120_000)),
            ("2", Some(2_000)),
            ("0.5", Some(500)),
            ("-1", None),
            ("soon", None),
            ("1e99", None),
            ("NaN", None),
            ("", None),
        ] {
            assert_eq!(span(text).ok().map(|d| d.as_millis()), want, "{text:?}");
        }
    }

    #[test]
    fn a_signal_can_be_forced_to_a_rung() {
        assert_eq!(
            mechanism("first_touch=tp_btf"),
            Ok((SignalName::FirstTouch, Some(Mechanism::TpBtf)))
        );
        assert_eq!(mechanism("hint=off"), Ok((SignalName::Hint, None)));
        for wrong in ["first_touch", "nonsense=tp_btf", "map=magic", ""] {
            assert!(mechanism(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(
            mechanism("hint=tp_btf"),
            Err("hint has no rung `tp_btf`; it has fentry, kprobe, and can be off".to_owned())
        );
    }
}
