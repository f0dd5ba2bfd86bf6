//! Options and variables of a command that undo what launch does, as far as they are known: an engine that spreads its
//! threads, or binds itself to another node.

use super::wrappers;
use crate::engines::rules;
use model::launch::Plan;
use model::list;
use std::ffi::OsString;

/// numactl's options that bind.
const BINDS: [&str; 17] = [
    "-m",
    "--membind",
    "-i",
    "--interleave",
    "-w",
    "--weighted-interleave",
    "-p",
    "-P",
    "--preferred",
    "-l",
    "--localalloc",
    "-N",
    "--cpunodebind",
    "-C",
    "--physcpubind",
    "-c",
    "--cpubind",
];

/// What llama.cpp takes for `--numa` where that is not given.
const LLAMA_NUMA: &str = "LLAMA_ARG_NUMA";

/// The first such option of a command, in one line; `None` where none is known. `inherited` gives a variable of the
/// environment that the command gets.
pub(crate) fn of(
    command: &[OsString],
    inherited: impl Fn(&str) -> Option<String>,
    plan: &Plan,
) -> Option<String> {
    let (wrappers, argv) = wrappers::behind(command)?;
    if let Some(anew) = bound_anew(&wrappers).or_else(|| run_elsewhere(&wrappers, plan)) {
        return Some(anew);
    }
    match rules::detect(&argv, "")?.engine.as_str() {
        "llama.cpp" => spread(&argv, || variable(&wrappers, LLAMA_NUMA, &inherited)),
        "vllm" => other_node(&argv, "--numa-bind-nodes", plan),
        "sglang" => other_node(&argv, "--numa-node", plan),
        "triton" => policies(&argv, plan),
        _ => None,
    }
}

/// By a numactl among the wrappers.
fn bound_anew(wrappers: &[String]) -> Option<String> {
    let at = wrappers
        .iter()
        .position(|word| is_named(word, &["numactl"]))?;
    let own = wrappers.iter().skip(at + 1);
    let own = own.take_while(|word| word.starts_with('-'));
    let mut binds = own.filter(|word| BINDS.iter().any(|option| word.starts_with(option)));
    let word = binds.next()?;
    Some(format!(
        "numactl {word} binds the command anew: leave one of them out"
    ))
}

/// By a taskset among the wrappers, with CPUs that are not the plan's, or not written as a list.
fn run_elsewhere(wrappers: &[String], plan: &Plan) -> Option<String> {
    let at = wrappers
        .iter()
        .position(|word| is_named(word, &["taskset"]))?;
    let cpus = wrappers
        .get(at + 1..)?
        .iter()
        .find(|word| !word.starts_with('-'))?;
    let as_list = wrappers
        .iter()
        .skip(at + 1)
        .take_while(|word| *word != cpus)
        .any(|word| word == "--cpu-list" || !word.starts_with("--") && word.contains('c'));
    let cpus_of = list::parse(cpus).filter(|_| as_list);
    let within = cpus_of.is_some_and(|cpus| cpus.iter().all(|cpu| plan.cpus.contains(cpu)));
    (!within).then(|| {
        format!("taskset {cpus} gives the command other CPUs than launch: leave one of them out")
    })
}

fn is_named(word: &str, programs: &[&str]) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    programs.contains(&name)
}

/// llama.cpp's `distribute` gives each thread a node in turn, whatever CPUs it was given.
fn spread(argv: &[String], variable: impl Fn() -> Option<String>) -> Option<String> {
    let all = values(argv, "--numa");
    let spreads = |given: &str, other: &str| {
        format!(
            "{given} spreads its threads over all nodes, which undoes the binding: write {other}"
        )
    };
    if all.contains(&"distribute") {
        return Some(spreads("--numa distribute", "--numa numactl"));
    }
    let by_variable = all.is_empty() && variable().as_deref() == Some("distribute");
    by_variable.then(|| {
        let [given, other] = ["distribute", "numactl"].map(|how| format!("{LLAMA_NUMA}={how}"));
        spreads(&given, &other)
    })
}

/// A variable as the program gets it: `env NAME=VALUE` sets one, and sudo, `env -i` and `env -u` keep it from what it was.
fn variable(
    wrappers: &[String],
    name: &str,
    inherited: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let value = |word: &String| {
        let word = word.strip_prefix("--setenv=").unwrap_or(word);
        word.strip_prefix(name)?
            .strip_prefix('=')
            .map(str::to_owned)
    };
    let preserved = |word: &String| {
        let names = word.strip_prefix("--preserve-env=").unwrap_or_default();
        ["-E", "--preserve-env"].contains(&word.as_str()) || names.split(',').any(|n| n == name)
    };
    let passed_on = wrappers.iter().any(preserved);
    let keeps = |word: &String| {
        is_named(word, &["sudo", "doas"]) && !passed_on
            || ["-i", "-", "--ignore-environment"].contains(&word.as_str())
            || word.strip_prefix("--unset=").unwrap_or(word) == name
    };
    let assigned = wrappers.iter().rev().find_map(value);
    assigned.or_else(|| {
        let passes = !wrappers.iter().any(keeps);
        passes.then(|| inherited(name)).flatten()
    })
}

fn other_node(argv: &[String], option: &str, plan: &Plan) -> Option<String> {
    let nodes: Vec<u32> = values(argv, option).into_iter().flat_map(numbers).collect();
    contradicts(option, &nodes, plan)
}

/// `--host-policy=gpu_0,numa-node=1`.
fn policies(argv: &[String], plan: &Plan) -> Option<String> {
    let settings = values(argv, "--host-policy").into_iter();
    let node = |setting: &str| setting.split_once("numa-node=")?.1.parse().ok();
    let nodes: Vec<u32> = settings.filter_map(node).collect();
    contradicts("--host-policy", &nodes, plan)
}

fn contradicts(option: &str, nodes: &[u32], plan: &Plan) -> Option<String> {
    let (memory, cpu) = (plan.memory_node, plan.cpu_node);
    let others: Vec<u32> = nodes
        .iter()
        .copied()
        .filter(|node| ![memory, cpu].contains(node))
        .collect();
    (!others.is_empty()).then(|| {
        format!(
            "{option} names node {}, and launch binds to node {memory}: leave one of them out",
            list::format(&others)
        )
    })
}

/// What follows an option, up to the next: behind a `=`, or the words after it.
fn values<'a>(argv: &'a [String], option: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut within = false;
    for word in argv {
        let rest = word.strip_prefix(option);
        if let Some(value) = rest.and_then(|rest| rest.strip_prefix('=')) {
            found.push(value);
            within = false;
        } else if rest == Some("") {
            within = true;
        } else if word.starts_with('-') {
            within = false;
        } else if within {
            found.push(word);
        }
    }
    found
}

/// `1`, `0,1`, `0-1` or `[0, 1]`; none in any other word, as a model's name behind the option's last value.
fn numbers(text: &str) -> Vec<u32> {
    let known = |c: char| c.is_ascii_digit() || "[], -".contains(c);
    if !text.chars().all(known) {
        return Vec::new();
    }
    list::parse(&text.replace(['[', ']', ' '], ",")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            memory_node: 1,
            cpu_node: 1,
            cpus: vec![4, 5],
        }
    }

    #[test]
    fn a_variable_counts_where_the_option_is_not_given() {
        let plan = plan();
        for (command, inherited, undoes) in [
            ("llama-server -m a.gguf", Some("distribute"), true),
            ("llama-server -m a.gguf", Some("isolate"), false),
            ("llama-server -m a.gguf", None, false),
            (
                "llama-server -m a.gguf --numa numactl",
                Some("distribute"),
                false,
            ),
            (
                "env LLAMA_ARG_NUMA=distribute llama-server -m a.gguf",
                None,
                true,
            ),
            (
                "env LLAMA_ARG_NUMA=numactl llama-server -m a.gguf",
                Some("distribute"),
                false,
            ),
            ("vllm serve m", Some("distribute"), false),
            ("nice llama-server -m a.gguf", Some("distribute"), true),
            (
                "env -u LLAMA_ARG_NUMA llama-server -m a.gguf",
                Some("distribute"),
                false,
            ),
            ("env -i llama-server -m a.gguf", Some("distribute"), false),
            ("sudo llama-server -m a.gguf", Some("distribute"), false),
            ("sudo -E llama-server -m a.gguf", Some("distribute"), true),
            (
                "sudo --preserve-env=A,LLAMA_ARG_NUMA llama-server -m a.gguf",
                Some("distribute"),
                true,
            ),
            (
                "systemd-run --scope --setenv=LLAMA_ARG_NUMA=distribute llama-server -m a.gguf",
                None,
                true,
            ),
        ] {
            let argv: Vec<OsString> = command.split(' ').map(Into::into).collect();
            let given = |_: &str| inherited.map(str::to_owned);
            let found = of(&argv, given, &plan);
            assert_eq!(found.is_some(), undoes, "{command}: {found:?}");
            if let Some(why) = found {
                assert!(why.starts_with("LLAMA_ARG_NUMA=distribute "), "{why}");
            }
        }
    }

    #[test]
    fn options_that_undo_the_binding() {
        let plan = plan();
        for (command, want) in [
            (
                "llama-server -m a.gguf --numa distribute",
                Some("--numa distribute"),
            ),
            ("llama-server --numa numactl -m a.gguf", None),
            ("llama-server -m distribute.gguf", None),
            (
                "vllm serve m --numa-bind --numa-bind-nodes 0 1",
                Some("names node 0,"),
            ),
            ("vllm serve m --numa-bind-nodes=[0,0]", Some("names node 0")),
            ("vllm serve m --numa-bind-nodes 1 1 --port 0", None),
            ("vllm serve m --numa-bind", None),
            ("vllm serve --numa-bind-nodes 1 model-7b", None),
            ("vllm serve --numa-bind-nodes 1 -7", None),
            (
                "vllm serve m --numa-bind-nodes [1, 3]",
                Some("names node 3,"),
            ),
            (
                "vllm serve m --numa-bind-nodes 0-2",
                Some("names node 0,2,"),
            ),
            (
                "python3 -m sglang.launch_server --numa-node 0",
                Some("--numa-node names node 0"),
            ),
            ("python3 -m sglang.launch_server --numa-node 1", None),
            (
                "tritonserver --host-policy=gpu_0,numa-node=0",
                Some("--host-policy names node 0"),
            ),
            ("tritonserver --host-policy gpu_0,numa-node=1", None),
            (
                "numactl --interleave=all llama-server -m a.gguf",
                Some("numactl --interleave=all binds"),
            ),
            (
                "numactl --membind=1 llama-server -m a.gguf",
                Some("numactl --membind=1 binds the command anew: leave one of them out"),
            ),
            ("numactl --show", None),
            ("taskset -c 4 llama-server -m a.gguf", None),
            ("taskset -ac 4,5 llama-server -m a.gguf", None),
            (
                "taskset -c 3-4 llama-server -m a.gguf",
                Some("taskset 3-4 gives"),
            ),
            (
                "taskset 30 llama-server -m a.gguf",
                Some("taskset 30 gives"),
            ),
            (
                "nice -n 5 numactl -m 0 llama-server -m a.gguf",
                Some("numactl -m binds"),
            ),
            (
                "sudo -u ai llama-server -m a.gguf --numa distribute",
                Some("--numa distribute"),
            ),
            ("sleep 0", None),
        ] {
            let argv: Vec<OsString> = command.split(' ').map(Into::into).collect();
            let found = of(&argv, |_| None, &plan);
            match want {
                Some(want) => assert!(
                    found.as_ref().is_some_and(|f| f.contains(want)),
                    "{command}: {found:?}"
                ),
                None => assert_eq!(found, None, "{command}"),
            }
        }
    }
}
