//! The rules by which engines are known, as data, after the engines' own sources and listings of
//! their processes.

use crate::engines::model_name::ModelFrom::{self, Nowhere, Options, Positional, ScriptPath};

/// How a rule knows a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program {
    /// File name of an executable or a script.
    Name(&'static str),
    /// A Python module, also started as its file; one that ends in a dot covers all below it.
    Module(&'static str),
}

/// A program that is part of an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// The program.
    pub(crate) program: Program,
    /// Its first arguments; empty for any.
    pub(crate) words: &'static [&'static str],
    /// The engine, as in a snapshot.
    pub(crate) engine: &'static str,
    /// What it does there.
    pub(crate) role: &'static str,
    /// Where its model is named.
    pub(crate) model: ModelFrom,
}

const fn name(
    name: &'static str,
    words: &'static [&'static str],
    engine: &'static str,
    role: &'static str,
    model: ModelFrom,
) -> Rule {
    Rule {
        program: Program::Name(name),
        words,
        engine,
        role,
        model,
    }
}

const fn module(
    module: &'static str,
    words: &'static [&'static str],
    engine: &'static str,
    role: &'static str,
    model: ModelFrom,
) -> Rule {
    Rule {
        program: Program::Module(module),
        words,
        engine,
        role,
        model,
    }
}

const VLLM_MODEL: ModelFrom = Options(&["--model", "--model-tag"]);
const VLLM_SERVED: ModelFrom = Positional(&["--model", "--model-tag"]);
const SGLANG_MODEL: ModelFrom = Options(&["--model-path", "--model"]);
const GGUF: ModelFrom = Options(&[
    "-m",
    "--model",
    "-hf",
    "-hfr",
    "--hf-repo",
    "-mu",
    "--model-url",
]);
const TRTLLM_MODEL: ModelFrom = Positional(&["--model", "-m"]);
const KT_MODEL: ModelFrom = Options(&["--model-name", "--model-path", "--gguf-path"]);

/// Every program, the special before the general.
#[rustfmt::skip] // One rule a line: a table is read by its columns.
pub(crate) const PROGRAMS: &[Rule] = &[
    name("vllm", &["serve"], "vllm", "api-server", VLLM_SERVED),
    name("vllm", &["run-batch"], "vllm", "batch", VLLM_MODEL),
    name("vllm", &["bench", "latency"], "vllm", "bench", VLLM_MODEL),
    name("vllm", &["bench", "throughput"], "vllm", "bench", VLLM_MODEL),
    module("vllm.entrypoints.cli.main", &["serve"], "vllm", "api-server", VLLM_SERVED),
    module("vllm.entrypoints.openai.run_batch", &[], "vllm", "batch", VLLM_MODEL),
    module("vllm.entrypoints.openai.api_server", &[], "vllm", "api-server", VLLM_MODEL),
    module("vllm.entrypoints.api_server", &[], "vllm", "api-server", VLLM_MODEL),
    module("dynamo.vllm", &[], "vllm", "worker", VLLM_MODEL),
    name("sglang", &["serve"], "sglang", "server", SGLANG_MODEL),
    module("sglang.launch_server", &[], "sglang", "server", SGLANG_MODEL),
    module("sglang.bench_one_batch", &[], "sglang", "bench", SGLANG_MODEL),
    module("sglang.bench_offline_throughput", &[], "sglang", "bench", SGLANG_MODEL),
    module("dynamo.sglang", &[], "sglang", "worker", SGLANG_MODEL),
    name("llama-server", &[], "llama.cpp", "server", GGUF),
    name("llama-cli", &[], "llama.cpp", "cli", GGUF),
    name("llama-run", &[], "llama.cpp", "cli", GGUF),
    name("llama-bench", &[], "llama.cpp", "bench", GGUF),
    name("llama-batched-bench", &[], "llama.cpp", "bench", GGUF),
    name("llama-perplexity", &[], "llama.cpp", "bench", GGUF),
    name("ggml-rpc-server", &[], "llama.cpp", "worker", Nowhere),
    module("llama_cpp.server", &[], "llama.cpp", "server", GGUF),
    module("xllamacpp.", &[], "llama.cpp", "server", GGUF),
    name("ollama", &["serve"], "ollama", "api-server", Nowhere),
    name("ollama", &["runner"], "ollama", "runner", Options(&["--model"])),
    name("ollama_llama_server", &[], "ollama", "runner", Options(&["--model"])),
    name("text-generation-launcher", &[], "tgi", "launcher", Options(&["--model-id"])),
    name("text-generation-router", &[], "tgi", "router", Options(&["--tokenizer-name"])),
    name("text-generation-server", &["serve"], "tgi", "worker", Positional(&[])),
    name("tritonserver", &[], "triton", "server", Nowhere),
    name("triton_python_backend_stub", &[], "triton", "worker", ScriptPath),
    name("trtllm-serve", &["serve"], "tensorrt-llm", "server", TRTLLM_MODEL),
    name("trtllm-serve", &["disaggregated"], "tensorrt-llm", "router", Nowhere),
    name("trtllm-serve", &["disaggregated_mpi_worker"], "tensorrt-llm", "worker", Nowhere),
    name("trtllm-serve", &[], "tensorrt-llm", "server", TRTLLM_MODEL),
    name("trtllm-bench", &[], "tensorrt-llm", "bench", Options(&["--model", "-m"])),
    name("trtllm-llmapi-launch", &[], "tensorrt-llm", "launcher", Nowhere),
    module("tensorrt_llm.commands.serve", &[], "tensorrt-llm", "server", TRTLLM_MODEL),
    module("tensorrt_llm.llmapi.mgmn_leader_node", &[], "tensorrt-llm", "launcher", Nowhere),
    module("tensorrt_llm.llmapi.mgmn_worker_node", &[], "tensorrt-llm", "worker", Nowhere),
    module("dynamo.trtllm", &[], "tensorrt-llm", "worker", Options(&["--model-path", "--model"])),
    name("ktransformers", &[], "ktransformers", "server", KT_MODEL),
    module("ktransformers.server.main", &[], "ktransformers", "server", KT_MODEL),
    module("ktransformers.local_chat", &[], "ktransformers", "cli", KT_MODEL),
    module("ktransformers.", &[], "ktransformers", "worker", KT_MODEL),
];

/// A title's prefix, what follows it, and whose process it is.
pub(crate) struct TitleRule {
    /// Prefix of the title.
    pub(crate) prefix: &'static str,
    /// What follows, ranks left out; empty for anything else with that prefix.
    pub(crate) what: &'static str,
    /// The engine.
    pub(crate) engine: &'static str,
    /// The role.
    pub(crate) role: &'static str,
}

const fn title(
    prefix: &'static str,
    what: &'static str,
    engine: &'static str,
    role: &'static str,
) -> TitleRule {
    TitleRule {
        prefix,
        what,
        engine,
        role,
    }
}

/// Every title. vLLM's prefix can be changed (`VLLM_PROCESS_NAME_PREFIX`); then the command line
/// of the server that started it is all that is known.
pub(crate) const TITLES: &[TitleRule] = &[
    title("VLLM::", "APIServer", "vllm", "api-server"),
    title("VLLM::", "EngineCore", "vllm", "engine-core"),
    title("VLLM::", "DPEngineCore", "vllm", "engine-core"),
    title("VLLM::", "DPCoordinator", "vllm", "coordinator"),
    title("VLLM::", "DP_Coordinator", "vllm", "coordinator"),
    title("VLLM::", "", "vllm", "worker"),
    title("ray::", "RayWorkerWrapper", "vllm", "worker"),
    title("sglang::", "detokenizer", "sglang", "detokenizer"),
    title(
        "sglang::",
        "data_parallel_controller",
        "sglang",
        "coordinator",
    ),
    title("sglang::", "tokenizer_worker", "sglang", "api-server"),
    title("sglang::", "", "sglang", "worker"),
];

/// A library that makes the program that maps it part of an engine.
pub(crate) struct Library {
    /// Part of its path.
    pub(crate) path: &'static str,
    /// The engine.
    pub(crate) engine: &'static str,
}

/// Libraries of engines that people embed in Python programs of their own; the first that is
/// mapped counts, so those that are built on others come first.
pub(crate) const LIBRARIES: &[Library] = &[
    Library {
        path: "/vllm/_C",
        engine: "vllm",
    },
    Library {
        path: "/sgl_kernel/",
        engine: "sglang",
    },
    Library {
        path: "/kt_kernel",
        engine: "ktransformers",
    },
    Library {
        path: "/KTransformersOps",
        engine: "ktransformers",
    },
    Library {
        path: "/libtensorrt_llm.so",
        engine: "tensorrt-llm",
    },
    Library {
        path: "/libllama.so",
        engine: "llama.cpp",
    },
    Library {
        path: "/xllamacpp/xllamacpp",
        engine: "llama.cpp",
    },
];
