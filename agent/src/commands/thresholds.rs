//! `--threshold NAME=VALUE`: the defaults, changed.

use anyhow::{Context, Result, anyhow, ensure};
use model::thresholds::Thresholds;

/// The defaults, changed by `NAME=VALUE`s.
pub(super) fn thresholds(changes: &[(String, f64)]) -> Result<Thresholds> {
    let mut values = serde_json::to_value(Thresholds::default())?;
    for (name, value) in changes {
        // An integer's threshold is read as one.
        let whole = values.get(name).is_some_and(serde_json::Value::is_u64);
        ensure!(
            !whole || value.fract() == 0.0,
            "--threshold: {name} is a whole number, and not {value}"
        );
        values[name] = if whole {
            serde_json::from_str(&format!("{value}"))?
        } else {
            (*value).into()
        };
    }
    let thresholds: Thresholds = serde_json::from_value(values).context("--threshold")?;
    thresholds
        .check()
        .map_err(|why| anyhow!("--threshold: {why}"))?;
    Ok(thresholds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_changed_by_its_name() {
        let changed = thresholds(&[
            ("remote_from".into(), 0.4),
            ("evidence_pages".into(), 128.0),
        ])
        .unwrap();
        assert!((changed.remote_from - 0.4).abs() < f64::EPSILON);
        assert_eq!(changed.evidence_pages, 128);
    }

    #[test]
    fn an_unknown_threshold_is_refused_by_name() {
        let error = thresholds(&[("remote".into(), 0.4)]).unwrap_err();
        assert!(
            format!("{error:#}").contains("unknown field `remote`"),
            "{error:#}"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_words() {
        for (name, value, words) in [
            ("evidence_pages", 1.5, "is a whole number"),
            ("free_share", 7.0, "is a share"),
        ] {
            let error = thresholds(&[(name.into(), value)]).unwrap_err();
            assert!(format!("{error:#}").contains(words), "{error:#}");
        }
    }
}
