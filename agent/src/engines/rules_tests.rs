//! Real command lines, those of engines and those that only look like one.

use crate::engines::rules::{detect, detect_library, is_python};

/// Arguments divided by `|`, as they can hold spaces.
fn argv(line: &str) -> Vec<String> {
    let divider = if line.contains('|') { '|' } else { ' ' };
    line.split(divider).map(str::to_owned).collect()
}

type Row = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
);

fn check(rows: &[Row]) {
    for (line, engine, role, model) in rows {
        let found = detect(&argv(line), "python3").unwrap_or_default();
        assert_eq!(
            (
                found.engine.as_str(),
                found.role.as_str(),
                found.model.as_deref()
            ),
            (*engine, *role, *model),
            "{line}"
        );
    }
}

#[test]
fn vllm() {
    check(&[
        (
            "/opt/venv/bin/python3 /opt/venv/bin/vllm serve Qwen/Qwen3-32B --tensor-parallel-size 4",
            "vllm",
            "api-server",
            Some("Qwen/Qwen3-32B"),
        ),
        (
            "/usr/bin/python3 /usr/local/bin/vllm serve --config /etc/vllm.yaml",
            "vllm",
            "api-server",
            None,
        ),
        (
            "vllm serve --trust-remote-code /models/GLM-5/",
            "vllm",
            "api-server",
            Some("GLM-5"),
        ),
        (
            "python3 -m vllm.entrypoints.openai.api_server --model /data/models/Qwen2-7B-Instruct/ --port 8001",
            "vllm",
            "api-server",
            Some("Qwen2-7B-Instruct"),
        ),
        (
            "python -u -m vllm.entrypoints.api_server --model=facebook/opt-125m",
            "vllm",
            "api-server",
            Some("facebook/opt-125m"),
        ),
        (
            "python3 /workspace/vllm/vllm/entrypoints/openai/api_server.py --model x",
            "vllm",
            "api-server",
            Some("x"),
        ),
        (
            "python -m vllm.entrypoints.cli.main serve org/x",
            "vllm",
            "api-server",
            Some("org/x"),
        ),
        (
            "/v/bin/python /v/bin/vllm bench throughput --model org/x",
            "vllm",
            "bench",
            Some("org/x"),
        ),
        (
            "/v/bin/python /v/bin/vllm run-batch -i in -o out --model org/x",
            "vllm",
            "batch",
            Some("org/x"),
        ),
        (
            "python3 -m dynamo.vllm --model Qwen/Qwen3-0.6B",
            "vllm",
            "worker",
            Some("Qwen/Qwen3-0.6B"),
        ),
        ("VLLM::EngineCore", "vllm", "engine-core", None),
        ("VLLM::DPCoordinator", "vllm", "coordinator", None),
        ("VLLM::Worker", "vllm", "worker", None),
        (
            "ray::RayWorkerWrapper.execute_method",
            "vllm",
            "worker",
            None,
        ),
    ]);
}

#[test]
fn sglang() {
    check(&[
        (
            "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8",
            "sglang",
            "server",
            Some("deepseek-ai/DeepSeek-R1"),
        ),
        (
            "/v/bin/python /v/bin/sglang serve --model-path org/x",
            "sglang",
            "server",
            Some("org/x"),
        ),
        ("sglang::scheduler_TP3", "sglang", "worker", None),
        ("sglang::gpu_worker_TP0_PP0", "sglang", "worker", None),
        ("sglang::detokenizer", "sglang", "detokenizer", None),
        (
            "sglang::data_parallel_controller",
            "sglang",
            "coordinator",
            None,
        ),
    ]);
}

#[test]
fn llama_cpp() {
    check(&[
        (
            "/opt/llama.cpp/build/bin/llama-server -m /m/gemma-3-27b.Q4_K_M.gguf -ngl 99",
            "llama.cpp",
            "server",
            Some("gemma-3-27b.Q4_K_M.gguf"),
        ),
        (
            "./llama-server -hf unsloth/gemma-3-4b-it-GGUF:Q4_K_M",
            "llama.cpp",
            "server",
            Some("unsloth/gemma-3-4b-it-GGUF:Q4_K_M"),
        ),
        (
            "llama-cli --model=x.gguf -p hi",
            "llama.cpp",
            "cli",
            Some("x.gguf"),
        ),
        (
            "llama-bench -m a.gguf -t 32 --numa distribute",
            "llama.cpp",
            "bench",
            Some("a.gguf"),
        ),
        (
            "python3 -m llama_cpp.server --model x.gguf",
            "llama.cpp",
            "server",
            Some("x.gguf"),
        ),
        (
            "python -m xllamacpp.server --model x.gguf",
            "llama.cpp",
            "server",
            Some("x.gguf"),
        ),
    ]);
}

#[test]
fn ollama() {
    check(&[
        ("/usr/local/bin/ollama serve", "ollama", "api-server", None),
        (
            "/usr/local/bin/ollama runner --ollama-engine --model /root/.ollama/models/blobs/sha256-60e05f2100071479f596b964 --port 44344",
            "ollama",
            "runner",
            Some("sha256-60e05f210007"),
        ),
        (
            "/tmp/ollama123/runners/cuda_v12/ollama_llama_server --model /b/sha256-8934d96d3f08982e --port 1",
            "ollama",
            "runner",
            Some("sha256-8934d96d3f08"),
        ),
        (
            "/usr/lib/ollama/llama-server --model /b/sha256-8934d96d3f08982e --port 1",
            "ollama",
            "runner",
            Some("sha256-8934d96d3f08"),
        ),
    ]);
}

#[test]
fn other_engines() {
    check(&[
        (
            "text-generation-launcher --model-id google/flan-t5-small --json-output",
            "tgi",
            "launcher",
            Some("google/flan-t5-small"),
        ),
        (
            "text-generation-router --max-concurrent-requests 128 --tokenizer-name google/flan-t5-small",
            "tgi",
            "router",
            Some("google/flan-t5-small"),
        ),
        (
            "/opt/conda/bin/python3.10 /opt/conda/bin/text-generation-server serve google/flan-t5-small --uds-path /tmp/s",
            "tgi",
            "worker",
            Some("google/flan-t5-small"),
        ),
        (
            "tritonserver --model-repository=/models --http-port 8000",
            "triton",
            "server",
            None,
        ),
        (
            "/opt/tritonserver/backends/python/triton_python_backend_stub /models/post-processing/1/model.py shm 1048576",
            "triton",
            "worker",
            Some("post-processing"),
        ),
        (
            "/usr/bin/python /usr/local/bin/trtllm-serve serve /m/Qwen3-8B-fp16/engine --port 18000",
            "tensorrt-llm",
            "server",
            Some("engine"),
        ),
        (
            "python3 /usr/local/bin/trtllm-serve org/x --backend pytorch",
            "tensorrt-llm",
            "server",
            Some("org/x"),
        ),
        (
            "/bin/bash /usr/local/bin/trtllm-llmapi-launch trtllm-serve org/x",
            "tensorrt-llm",
            "launcher",
            None,
        ),
        (
            "python3 -m tensorrt_llm.llmapi.mgmn_worker_node",
            "tensorrt-llm",
            "worker",
            None,
        ),
        (
            "python -m ktransformers.server.main --model_name DeepSeek-V3 --model_path /m/config --gguf_path /m",
            "ktransformers",
            "server",
            Some("DeepSeek-V3"),
        ),
        (
            "python3 /v/bin/ktransformers --model_path deepseek-ai/DeepSeek-V3 --port 10002",
            "ktransformers",
            "server",
            Some("deepseek-ai/DeepSeek-V3"),
        ),
        (
            "python -m ktransformers.local_chat --model_path=/app/DeepSeek-R1",
            "ktransformers",
            "cli",
            Some("DeepSeek-R1"),
        ),
    ]);
}

#[test]
fn who_only_looks_like_an_engine() {
    for line in [
        "vim vllm.py",
        "grep llama-server",
        "bash|-c|vllm serve org/x",
        "sh|-c|exec llama-server -m x.gguf",
        "/bin/bash|/home/me/start-vllm.sh",
        "tail -f /var/log/llama-server.log",
        "pgrep -f VLLM::EngineCore",
        "docker run vllm/vllm-openai --model x",
        "sudo vllm serve org/x",
        "numactl --cpunodebind=0 vllm serve x",
        "ssh host vllm serve org/x",
        "uv run vllm serve org/x",
        "python3 vllm.py serve",
        "python3 /srv/api_server.py --model x",
        "python -m pytest tests/vllm",
        "python -m vllm_bench serve",
        "python3 /v/bin/vllm bench serve --model x",
        "python3 /v/bin/vllm --version",
        "ollama run llama3",
        "ollama ps",
        "/usr/bin/llama-swap --config x",
        "mpirun -n 8 trtllm-serve org/x",
        "ray::IDLE",
        "python3|-c|from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)|--multiprocessing-fork",
        "gdb --args llama-server -m x",
        "python3",
        "",
    ] {
        assert_eq!(detect(&argv(line), "x"), None, "{line}");
    }
    assert_eq!(detect(&[], "kthreadd"), None);
}

#[test]
fn ranks_are_those_of_the_title() {
    for (title, rank, role) in [
        ("VLLM::EngineCore_DP1", Some(1), "engine-core"),
        ("VLLM::Worker_TP0", Some(0), "worker"),
        ("VLLM::Worker_PP1_TP3", Some(3), "worker"),
        ("VLLM::EngineCore_TP1", Some(1), "worker"),
        ("VLLM::APIServer_2", Some(2), "api-server"),
        ("sglang::scheduler_DP0_TP5_EP5", Some(5), "worker"),
        ("sglang::scheduler", None, "worker"),
    ] {
        let found = detect(&argv(title), "").unwrap();
        assert_eq!((found.rank, found.role.as_str()), (rank, role), "{title}");
    }
}

#[test]
fn a_title_that_is_only_in_comm_is_enough() {
    let line = "python3|-c|from multiprocessing.spawn import spawn_main; spawn_main()";
    for (comm, role) in [
        ("VLLM::EngineCor", "engine-core"),
        ("VLLM::Worker_TP", "worker"),
        ("sglang::schedul", "worker"),
        ("sglang::detoken", "detokenizer"),
    ] {
        let found = detect(&argv(line), comm).unwrap();
        assert_eq!(found.role, role, "{comm}");
    }
}

const MAPS: &str = "\
7f8b89c00000-7f8b89e9d000 r--p 00000000 fe:00 131 /v/lib/python3.11/site-packages/xllamacpp/xllamacpp.abi3.so
7f8b8b45f000-7f8b8b473000 rw-p 00000000 00:00 0
7ffd1c5d9000-7ffd1c5fa000 rw-p 00000000 00:00 0 [stack]
";

#[test]
fn a_python_program_is_known_by_its_libraries() {
    for (line, maps, want) in [
        (
            "python serve.py --model /m/gemma3.gguf",
            MAPS,
            Some(("llama.cpp", "embedded")),
        ),
        (
            "python -c x",
            "1-2 r-xp 0 0:0 1 /v/llama_cpp/lib/libllama.so\n",
            Some(("llama.cpp", "embedded")),
        ),
        (
            "python -m mpi4py.futures.server",
            "1-2 r-xp 0 0:0 1 /v/libs/libtensorrt_llm.so\n",
            Some(("tensorrt-llm", "worker")),
        ),
        (
            "python|-c|from multiprocessing.spawn import spawn_main; x",
            "1-2 r-xp 0 0:0 1 /v/vllm/_C.abi3.so\n",
            Some(("vllm", "worker")),
        ),
        ("python x.py", "1-2 r-xp 0 0:0 1 /usr/lib/libc.so.6\n", None),
    ] {
        let found = detect_library(&argv(line), maps);
        let found = found.as_ref().map(|d| (d.engine.as_str(), d.role.as_str()));
        assert_eq!(found, want, "{line}");
        assert!(is_python(&argv(line)));
    }
}

#[test]
fn an_embedded_engines_model_is_on_its_command_line() {
    let found = detect_library(&argv("python serve.py --model /m/gemma3.gguf"), MAPS).unwrap();
    assert_eq!(found.model.as_deref(), Some("gemma3.gguf"));
}
