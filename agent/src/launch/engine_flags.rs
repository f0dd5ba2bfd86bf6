//! What engines call the same thing: their own flags for a node, as of their sources and documents.

use super::wrappers;
use crate::engines::rules;
use model::launch::Plan;
use model::list;
use std::ffi::OsString;

/// An engine's own flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// The engine, as a snapshot names it.
    pub(crate) engine: String,
    /// What to add to its command line; `None` where none is known.
    pub(crate) flags: Option<String>,
    /// Since when, and what to know about it.
    pub(crate) remark: &'static str,
}

/// The flags of the command's engine for this many GPUs; `None` for a command that is no known engine.
pub(crate) fn of(command: &[OsString], plan: &Plan, gpus: &[u32]) -> Option<Own> {
    let (_, argv) = wrappers::behind(command)?;
    let engine = rules::detect(&argv, "")?.engine;
    let each = vec![plan.memory_node.to_string(); gpus.len().max(1)].join(" ");
    let (flags, remark) = match engine.as_str() {
        "vllm" => (
            Some(format!("--numa-bind --numa-bind-nodes {each}")),
            "vLLM since April 2026 (vllm-project/vllm#38635); one node a GPU; it starts its workers by numactl",
        ),
        "sglang" => (
            Some(format!("--numa-node {each}")),
            "SGLang since September 2025 (sgl-project/sglang#10006); one node a rank",
        ),
        "llama.cpp" => (
            Some("--numa numactl".to_owned()),
            "llama.cpp since February 2024; it takes the CPUs that it is given, so launch or numactl must give them",
        ),
        "triton" => (
            Some(triton(plan, gpus)),
            "Triton since 2021; GPUs are numbered as CUDA does",
        ),
        _ => (None, "none known"),
    };
    Some(Own {
        engine,
        flags,
        remark,
    })
}

/// A host policy for each GPU's instances, which are named so unless the model's configuration says else.
fn triton(plan: &Plan, gpus: &[u32]) -> String {
    let cores = list::format_ranges(&plan.cpus);
    let node = plan.memory_node;
    let policy = |gpu: &u32| {
        format!(
            "--host-policy=gpu_{gpu},numa-node={node} --host-policy=gpu_{gpu},cpu-cores={cores}"
        )
    };
    let gpus = if gpus.is_empty() { &[0] } else { gpus };
    gpus.iter().map(policy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(command: &str, gpus: &[u32]) -> Option<Own> {
        let plan = Plan {
            memory_node: 1,
            cpu_node: 1,
            cpus: vec![2, 3, 8],
        };
        let command: Vec<OsString> = command.split(' ').map(Into::into).collect();
        of(&command, &plan, gpus)
    }

    #[test]
    fn each_engines_own() {
        for (command, gpus, want) in [
            (
                "llama-server -m a.gguf",
                [].as_slice(),
                Some("--numa numactl"),
            ),
            ("vllm serve m", &[], Some("--numa-bind --numa-bind-nodes 1")),
            (
                "vllm serve m",
                &[4, 5],
                Some("--numa-bind --numa-bind-nodes 1 1"),
            ),
            (
                "python3 -m sglang.launch_server --model m",
                &[0, 1],
                Some("--numa-node 1 1"),
            ),
            (
                "tritonserver --model-repository=/m",
                &[4],
                Some("--host-policy=gpu_4,numa-node=1 --host-policy=gpu_4,cpu-cores=2-3,8-8"),
            ),
            ("ollama serve", &[0], None),
        ] {
            let found = flags(command, gpus).unwrap();
            assert_eq!(found.flags.as_deref(), want, "{command}");
        }
    }

    #[test]
    fn another_program_has_none() {
        assert_eq!(flags("sleep 1", &[]), None);
    }
}
