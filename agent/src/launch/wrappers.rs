//! Programs that become another or run it below themselves, and where their own options end.

use std::ffi::OsString;

/// How a program's own options are told from what follows them.
pub(crate) struct Options {
    program: &'static str,
    /// Short options that take the next word as a value.
    short: &'static str,
    /// Long ones that do.
    long: &'static [&'static str],
    /// How many words of its own come before the program that it becomes: a time, CPUs, a priority.
    own: usize,
}

pub(crate) const fn options(
    program: &'static str,
    short: &'static str,
    long: &'static [&'static str],
    own: usize,
) -> Options {
    Options {
        program,
        short,
        long,
        own,
    }
}

/// Programs that become another or run it below themselves.
const WRAPPERS: [Options; 18] = [
    options(
        "sudo",
        "ughpCDrRtTU",
        &[
            "user",
            "group",
            "host",
            "prompt",
            "close-from",
            "chdir",
            "role",
            "chroot",
            "type",
            "command-timeout",
            "other-user",
        ],
        0,
    ),
    options("doas", "uC", &[], 0),
    options(
        "env",
        "uCSa",
        &["unset", "chdir", "split-string", "argv0"],
        0,
    ),
    options("nice", "n", &["adjustment"], 0),
    options("ionice", "cn", &["class", "classdata"], 0),
    options("nohup", "", &[], 0),
    options("setsid", "", &[], 0),
    options("stdbuf", "ioe", &["input", "output", "error"], 0),
    options("timeout", "sk", &["signal", "kill-after"], 1),
    options("taskset", "", &[], 1),
    options(
        "chrt",
        "TPD",
        &["sched-runtime", "sched-period", "sched-deadline"],
        1,
    ),
    options("time", "fo", &["format", "output"], 0),
    options("prlimit", "po", &["pid", "output"], 0),
    options(
        "setpriv",
        "",
        &[
            "ambient-caps",
            "inh-caps",
            "bounding-set",
            "ruid",
            "euid",
            "reuid",
            "rgid",
            "egid",
            "regid",
            "groups",
            "securebits",
            "pdeathsig",
            "selinux-label",
            "apparmor-profile",
        ],
        0,
    ),
    options("unshare", "SGRw", &["setuid", "setgid", "root", "wd"], 0),
    options("runuser", "ugG", &["user", "group", "supp-group"], 0),
    options("strace", "abeEIoOpPsSuX", &[], 0),
    options(
        "numactl",
        "iwpPmNCc",
        &[
            "interleave",
            "weighted-interleave",
            "preferred",
            "preferred-many",
            "membind",
            "cpunodebind",
            "physcpubind",
            "cpubind",
        ],
        0,
    ),
];

/// With `--scope` it is a wrapper too: it becomes the command itself, in a new cgroup.
const SYSTEMD_RUN: Options = options(
    "systemd-run",
    "HMCupE",
    &[
        "host",
        "machine",
        "capsule",
        "unit",
        "property",
        "description",
        "slice",
        "uid",
        "gid",
        "nice",
        "working-directory",
        "setenv",
        "background",
        "job-mode",
        "json",
    ],
    0,
);

/// A command's wrappers with their own words, and the program behind them with its arguments; `None` where there is none.
pub(crate) fn behind(command: &[OsString]) -> Option<(Vec<String>, Vec<String>)> {
    let lossy = |word: &OsString| word.to_string_lossy().into_owned();
    let mut wrappers: Vec<String> = command.iter().map(lossy).collect();
    let words: Vec<&str> = wrappers.iter().map(String::as_str).collect();
    let own = unwrapped(&words)?.0.len();
    let program = wrappers.split_off(own);
    Some((wrappers, program))
}

/// The words before the program behind wrappers, its name, and its arguments.
pub(crate) fn unwrapped<'a>(
    words: &'a [&'a str],
) -> Option<(&'a [&'a str], &'a str, &'a [&'a str])> {
    let mut at = 0;
    loop {
        let (first, rest) = words.get(at..)?.split_first()?;
        let name = first.rsplit_once('/').map_or(*first, |(_, name)| name);
        let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.program == name);
        let length = if let Some(wrapper) = wrapper {
            own_words(rest, wrapper)
        } else if name == SYSTEMD_RUN.program && split(rest, &SYSTEMD_RUN).0.contains(&"--scope") {
            own_words(rest, &SYSTEMD_RUN)
        } else {
            return Some((&words[..at], name, rest));
        };
        at += 1 + length;
    }
}

/// How many words a wrapper has before the program: its options, assignments and own words.
fn own_words(words: &[&str], wrapper: &Options) -> usize {
    let mut at = split(words, wrapper).1;
    let mut own = wrapper.own;
    while let Some(word) = words.get(at) {
        if own > 0 && is_number(word) {
            own -= 1;
        } else if !word.contains('=') {
            break;
        }
        at += 1;
    }
    at
}

/// `5m`, `infinity`, `0-3`, `.5` or `ff`, as a time, CPUs or a mask of them: the wrappers' own words, which may be left out.
fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || word.bytes().all(|byte| byte.is_ascii_hexdigit())
        || ["inf", "infinity"].contains(&word)
}

/// A program's own options without their separate values, and how many words both are.
pub(crate) fn split<'a>(words: &[&'a str], options: &Options) -> (Vec<&'a str>, usize) {
    let mut own = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        at += 1;
        if *word == "--" {
            break;
        }
        own.push(*word);
        at += usize::from(takes_the_next(word, options));
    }
    (own, at.min(words.len()))
}

/// Whether an option's value is the next word: `--user alice`, `-u alice`, `-Eu alice`, but not `-ualice`.
fn takes_the_next(word: &str, options: &Options) -> bool {
    if let Some(name) = word.strip_prefix("--") {
        return options.long.contains(&name);
    }
    let letters = word.strip_prefix('-').unwrap_or_default();
    let takes = letters.find(|letter| options.short.contains(letter));
    takes.is_some_and(|at| at + 1 == letters.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_what_follows_the_wrappers_own_words() {
        for (command, want) in [
            ("docker run i", Some((0, "docker"))),
            ("sudo -u alice -E docker run", Some((4, "docker"))),
            ("sudo --user alice docker run", Some((3, "docker"))),
            ("sudo -Eu alice docker run", Some((3, "docker"))),
            ("sudo -ualice docker run", Some((2, "docker"))),
            ("sudo --user=alice -- docker run", Some((3, "docker"))),
            ("sudo --user docker ls", Some((3, "ls"))),
            ("env -i A=1 docker", Some((3, "docker"))),
            ("nohup nice -n 5 /usr/bin/docker", Some((4, "docker"))),
            ("timeout --signal INT 5m docker", Some((4, "docker"))),
            ("timeout -s INT 5m 7z", Some((4, "7z"))),
            ("prlimit --memlock=unlimited docker", Some((2, "docker"))),
            (
                "setpriv --reuid 1000 --clear-groups docker",
                Some((4, "docker")),
            ),
            ("unshare -m docker", Some((2, "docker"))),
            ("runuser -u root -- docker", Some((4, "docker"))),
            ("strace -f -o t docker", Some((4, "docker"))),
            ("timeout infinity docker", Some((2, "docker"))),
            ("taskset -c 0-3 docker", Some((3, "docker"))),
            ("taskset ff docker", Some((2, "docker"))),
            ("numactl --membind 1 -N 1 docker", Some((5, "docker"))),
            ("chrt -r 50 docker", Some((3, "docker"))),
            ("chrt --idle docker", Some((2, "docker"))),
            ("/usr/bin/time -v -o times docker", Some((4, "docker"))),
            ("systemd-run --unit x --scope docker", Some((4, "docker"))),
            ("systemd-run ./server --scope", Some((0, "systemd-run"))),
            ("env A=1", None),
            ("sudo -u", None),
        ] {
            let words: Vec<&str> = command.split(' ').collect();
            let found = unwrapped(&words).map(|(before, program, _)| (before.len(), program));
            assert_eq!(found, want, "{command}");
        }
    }
}
