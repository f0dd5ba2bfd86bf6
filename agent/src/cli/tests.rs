//! The parser, as people type.

use super::*;

#[test]
fn the_definition_is_consistent() {
    use clap::CommandFactory as _;
    Cli::command().debug_assert();
}

/// Else the parser takes it for an option, and says to write `-- -1`, which would be the command's.
#[test]
fn a_negative_number_is_the_options_value_and_refused_as_such() {
    use clap::CommandFactory as _;
    let texts = ["FILE", "FOLDER", "URL", "REGEX", "PROTOCOL"];
    let mut asked = 0;
    for command in Cli::command().get_subcommands() {
        let values = command.get_arguments().filter_map(|argument| {
            let name = argument.get_value_names()?.first()?.as_str();
            let takes = argument.get_action().takes_values() && !texts.contains(&name);
            Some(format!("--{}", argument.get_long().filter(|_| takes)?))
        });
        for (option, value) in values.flat_map(|o| [(o.clone(), "-1"), (o, "-5s")]) {
            let mut arguments = vec!["numawatch", command.get_name(), &option, value];
            if command.get_name() == "launch" {
                arguments.extend(["--", "true"]);
            }
            let Err(error) = Cli::try_parse_from(&arguments) else {
                // Any text may name a GPU.
                assert_eq!(option, "--gpu");
                continue;
            };
            let line = one_line(&error);
            let start = format!("invalid value '{value}' for '{option} <");
            assert!(line.starts_with(&start), "{arguments:?}: {line}");
            assert!(!line.contains("tip:"), "{line}");
            asked += 1;
        }
    }
    assert!(asked > 20, "{asked}");
}

#[test]
fn every_error_is_one_line() {
    for arguments in [
        vec!["numawatch"],
        vec!["numawatch", "snapshoot"],
        vec!["numawatch", "snapshot", "--pid", "x"],
        vec!["numawatch", "snapshot", "--for", "soon"],
        vec!["numawatch", "snapshot", "--nonsense"],
        vec!["numawatch", "launch", "--node", "x", "--", "true"],
        vec!["numawatch", "launch", "--node", "1"],
        vec!["numawatch", "launch", "--needs", "much", "--", "true"],
        // Somebody forgot the G: it would be no check at all.
        vec!["numawatch", "launch", "--needs", "60", "--", "true"],
    ] {
        let error = Cli::try_parse_from(&arguments).unwrap_err();
        let line = one_line(&error);
        assert_eq!(line.lines().count(), 1, "{arguments:?}");
        // What a parser thinks to itself helps nobody.
        for leak in ["expected number", "invalid digit", "found in string"] {
            assert!(!line.contains(leak), "{line}");
        }
    }
}
