//! Titles that engines give their processes, such as `VLLM::Worker_PP0_TP1`.

/// A title's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Title<'a> {
    /// What it is, without ranks: `Worker`, `scheduler`.
    pub(crate) what: &'a str,
    /// Its rank in the group that the title names, the tensor-parallel one first: ranks in
    /// different groups of one engine repeat.
    pub(crate) rank: Option<u32>,
    /// Whether it names a tensor- or pipeline-parallel rank.
    pub(crate) has_model_rank: bool,
}

/// Takes a title apart: `PREFIX::WHAT[_GROUPn]…`, or `WHATn` for a plain number. `None` if it does
/// not start with the prefix, in any case.
pub(crate) fn parse<'a>(title: &'a str, prefix: &str) -> Option<Title<'a>> {
    let start = title.get(..prefix.len())?;
    let rest = title.get(prefix.len()..)?;
    if !start.eq_ignore_ascii_case(prefix) {
        return None;
    }
    let mut words = rest.split(['_', ' ', ':']);
    let mut end = 0;
    for word in words.by_ref() {
        if group(word).is_some() || word.parse::<u32>().is_ok() || word == "TP" {
            break;
        }
        // Names of groups whose number stands in a word of its own: ATTN_CP0, MOE_DP0.
        if end > 0 && ["ATTN", "MOE"].contains(&word) {
            break;
        }
        end += word.len() + usize::from(end > 0);
    }
    let what = rest.get(..end)?;
    let ranks = rest.get(end..)?.split(['_', ' ']).filter(|w| !w.is_empty());
    let of = |name: &str| {
        ranks
            .clone()
            .filter_map(group)
            .find_map(|(group, rank)| (group == name).then_some(rank))
    };
    let rank = of("TP")
        .or_else(|| of("PP"))
        .or_else(|| of("EP"))
        .or_else(|| of("DP"))
        .or_else(|| ranks.clone().next()?.parse().ok());
    Some(Title {
        what,
        rank,
        has_model_rank: of("TP").or_else(|| of("PP")).is_some(),
    })
}

/// `TP3` is ("TP", 3).
fn group(word: &str) -> Option<(&str, u32)> {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let name = ["TP", "PP", "EP", "DP", "CP", "NP", "PCP", "DCP"]
        .into_iter()
        .find(|name| *name == letters)?;
    Some((name, word.get(letters.len()..)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_as_engines_write_them() {
        for (title, prefix, want) in [
            ("VLLM::EngineCore", "VLLM::", Some(("EngineCore", None))),
            (
                "VLLM::EngineCore_DP1",
                "VLLM::",
                Some(("EngineCore", Some(1))),
            ),
            (
                "VLLM::DPEngineCore_0",
                "VLLM::",
                Some(("DPEngineCore", Some(0))),
            ),
            ("VLLM::Worker_TP3", "VLLM::", Some(("Worker", Some(3)))),
            ("VLLM::Worker_PP1_TP0", "VLLM::", Some(("Worker", Some(0)))),
            (
                "VLLM::Worker_DP1_TP2_EP6",
                "VLLM::",
                Some(("Worker", Some(2))),
            ),
            ("VLLM::Worker_TP", "VLLM::", Some(("Worker", None))),
            ("vllm::APIServer_3", "VLLM::", Some(("APIServer", Some(3)))),
            ("sglang::scheduler", "sglang::", Some(("scheduler", None))),
            (
                "sglang::scheduler_DP0_PP0_ATTN_CP0_MOE_DP0_TP1_EP1",
                "sglang::",
                Some(("scheduler", Some(1))),
            ),
            (
                "sglang::data_parallel_controller",
                "sglang::",
                Some(("data_parallel_controller", None)),
            ),
            (
                "sglang::tokenizer_worker:4242",
                "sglang::",
                Some(("tokenizer_worker", None)),
            ),
            ("VLL", "VLLM::", None),
            ("vim VLLM::EngineCore", "VLLM::", None),
        ] {
            let got = parse(title, prefix).map(|t| (t.what, t.rank));
            assert_eq!(got, want, "{title}");
        }
    }
}
