//! Where the running kernel keeps what the programs read, from its own BTF: no offset is written down anywhere.

use btf::btf::{Btf, FlattenedType, Struct, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What the programs and the ladder must know of the running kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Values for the kernel side's globals, by name.
    pub(crate) globals: BTreeMap<&'static str, u32>,
    /// The functions that were asked for and that this kernel has, with their types of arguments.
    pub(crate) functions: BTreeMap<String, Vec<String>>,
    /// The same of tracepoints.
    pub(crate) tracepoints: BTreeMap<String, Vec<String>>,
}

/// Why the layout could not be read; one line, to be shown as a signal's reason.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayoutError {
    /// No file, or no permission.
    #[error("kernel BTF {path} cannot be read: {error}{}", remedy(error))]
    Open { path: String, error: std::io::Error },
    /// The file is not what it should be.
    #[error("kernel BTF {path} cannot be parsed: {error}")]
    Parse { path: String, error: btf::Error },
    /// This kernel names it differently.
    #[error("kernel BTF has no {0}; this kernel's layout is not known")]
    Missing(String),
}

/// Without the file it is the kernel's configuration.
fn remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::NotFound => " (needs CONFIG_DEBUG_INFO_BTF)",
        _ => "",
    }
}

impl Layout {
    /// Reads a kernel's BTF file, usually `/sys/kernel/btf/vmlinux`, and what it says of the functions and tracepoints of
    /// these names. Takes about 0.3 s and 80 MiB for the time of it.
    pub(crate) fn read(path: &Path, names: &BTreeSet<&str>) -> Result<Self, LayoutError> {
        let shown = path.display().to_string();
        std::fs::File::open(path).map_err(|error| LayoutError::Open {
            path: shown.clone(),
            error,
        })?;
        let btf =
            Btf::from_file(path).map_err(|error| LayoutError::Parse { path: shown, error })?;
        Self::from_btf(&btf, names)
    }

    fn from_btf(btf: &Btf, names: &BTreeSet<&str>) -> Result<Self, LayoutError> {
        let types = Types(btf);
        let mut layout = Self::default();
        for found in btf.get_types() {
            let Some(name) = &found.name else { continue };
            let Type::FunctionProto(proto) = &found.base_type else {
                continue;
            };
            let arguments = || proto.params.iter().map(|p| types.written(p.type_id));
            if found.is_function && found.num_refs == 0 {
                if names.contains(name.as_str()) {
                    layout.functions.insert(name.clone(), arguments().collect());
                }
            } else if let Some(tracepoint) = name.strip_prefix("btf_trace_")
                && names.contains(tracepoint)
            {
                // The first argument is the tracer's own data.
                let arguments = arguments().skip(1).collect();
                layout.tracepoints.insert(tracepoint.to_owned(), arguments);
            }
        }
        let g = &mut layout.globals;
        g.insert("TASK_PID", types.offset("task_struct", "pid")?);
        g.insert("TASK_TGID", types.offset("task_struct", "tgid")?);
        g.insert("TASK_MM", types.offset("task_struct", "mm")?);
        let entity = types.offset("task_struct", "se")?;
        let run_time = types.offset("sched_entity", "sum_exec_runtime")?;
        g.insert("TASK_RUN_TIME", entity + run_time);
        let exec_start = types.offset("sched_entity", "exec_start")?;
        g.insert("TASK_EXEC_START", entity + exec_start);
        g.insert("TASK_SIGNAL", types.offset("task_struct", "signal")?);
        g.insert("SIGNAL_LIVE", types.offset("signal_struct", "live")?);
        g.insert("VMA_MM", types.offset("vm_area_struct", "vm_mm")?);
        g.insert("TASK_MINOR_FAULTS", types.offset("task_struct", "min_flt")?);
        g.insert("TASK_MAJOR_FAULTS", types.offset("task_struct", "maj_flt")?);
        for (name, register) in REGISTERS {
            // Those of x86; the rung that asks for them stands on x86 alone.
            g.insert(name, types.offset("pt_regs", register).unwrap_or(0));
        }
        g.insert("FILE_INODE", types.offset("file", "f_inode")?);
        g.insert("INODE_RDEV", types.offset("inode", "i_rdev")?);
        g.insert("NODE_SHIFT", 64 - types.nodes_shift()?);
        g.insert("HEAD_BIT", types.enum_value("PG_head")?);
        g.insert("ORDER_OFFSET", types.order_offset()?);
        g.insert(
            "MIGRATE_REASON_NUMA",
            types.enum_value("MR_NUMA_MISPLACED")?,
        );
        // An enumerator since 6.3, a macro of this value before.
        let long_term = types.enum_value("FOLL_LONGTERM").unwrap_or(0x10000);
        g.insert("FOLL_LONGTERM", long_term);
        Ok(layout)
    }
}

/// The registers with which a thread entered the kernel, by the kernel side's names.
const REGISTERS: [(&str, &str); 5] = [
    ("REGS_CALL", "orig_ax"),
    ("REGS_IP", "ip"),
    ("REGS_ARG_1", "di"),
    ("REGS_ARG_2", "si"),
    ("REGS_ARG_3", "dx"),
];

struct Types<'a>(&'a Btf);

impl Types<'_> {
    fn structure(&self, name: &str) -> Result<&Struct, LayoutError> {
        self.0
            .get_types()
            .iter()
            .filter(|t| t.name.as_deref() == Some(name) && t.num_refs == 0)
            .find_map(|t| match &t.base_type {
                Type::Struct(s) if !s.members.is_empty() => Some(s),
                _ => None,
            })
            .ok_or_else(|| LayoutError::Missing(format!("struct {name}")))
    }

    /// Byte offset of a member, also inside anonymous structures and unions.
    fn offset(&self, structure: &str, member: &str) -> Result<u32, LayoutError> {
        self.bits(self.structure(structure)?, member)
            .map(|bits| bits / 8)
            .ok_or_else(|| LayoutError::Missing(format!("{structure}.{member}")))
    }

    fn bits(&self, structure: &Struct, member: &str) -> Option<u32> {
        structure
            .members
            .iter()
            .find_map(|m| match m.name.as_deref() {
                Some(name) if name == member => Some(m.offset),
                None | Some("") => match &self.0.get_type_by_id(m.type_id).ok()?.base_type {
                    Type::Struct(inner) | Type::Union(inner) => {
                        self.bits(inner, member).map(|bits| m.offset + bits)
                    }
                    _ => None,
                },
                Some(_) => None,
            })
    }

    /// A type as the ladder writes it: `folio *`, `page **`, `i32` for an integer, enumeration or truth value of 32 bits,
    /// `struct` for one by value, `void *`.
    fn written(&self, id: u32) -> String {
        let Ok(found) = self.0.get_type_by_id(id) else {
            return "?".to_owned();
        };
        let name = match &found.base_type {
            Type::Integer(integer) => format!("i{}", integer.bits),
            Type::Enum32(_) => "i32".to_owned(),
            Type::Enum64(_) => "i64".to_owned(),
            Type::Void => "void".to_owned(),
            Type::Struct(s) | Type::Union(s) if found.num_refs > 0 => self.name_of(s),
            Type::Struct(_) | Type::Union(_) => "struct".to_owned(),
            _ => "?".to_owned(),
        };
        match found.num_refs {
            0 => name,
            refs => format!("{name} {}", "*".repeat(refs as usize)),
        }
    }

    /// A structure's name. What a pointer points to has none of its own here: the structure of the same members has.
    fn name_of(&self, structure: &Struct) -> String {
        let same =
            |other: &Struct| {
                !other.members.is_empty()
                    && other.members.len() == structure.members.len()
                    && other.members.iter().zip(&structure.members).all(|(a, b)| {
                        (a.type_id, a.offset, &a.name) == (b.type_id, b.offset, &b.name)
                    })
            };
        let named = self.0.get_types().iter().find_map(|t| match &t.base_type {
            Type::Struct(s) | Type::Union(s) if t.num_refs == 0 && same(s) => t.name.clone(),
            _ => None,
        });
        named.unwrap_or_else(|| "struct".to_owned())
    }

    fn member_type(&self, structure: &str, member: &str) -> Result<&FlattenedType, LayoutError> {
        let missing = || LayoutError::Missing(format!("{structure}.{member}"));
        let found = self
            .structure(structure)?
            .members
            .iter()
            .find(|m| m.name.as_deref() == Some(member));
        self.0
            .get_type_by_id(found.ok_or_else(missing)?.type_id)
            .map_err(|_| missing())
    }

    fn array_length(&self, structure: &str, member: &str) -> Result<u32, LayoutError> {
        match &self.member_type(structure, member)?.base_type {
            Type::Array(array) => Ok(array.num_elements),
            _ => Err(LayoutError::Missing(format!("array {structure}.{member}"))),
        }
    }

    /// log2 of the number of nodes that the kernel was built for: a zone list has one entry for each zone of each
    /// node, and one to end it.
    fn nodes_shift(&self) -> Result<u32, LayoutError> {
        let entries = self
            .array_length("zonelist", "_zonerefs")?
            .saturating_sub(1);
        let zones = self.array_length("pglist_data", "node_zones")?.max(1);
        (entries / zones)
            .checked_ilog2()
            .ok_or_else(|| LayoutError::Missing("node count in zonelist".to_owned()))
    }

    fn enum_value(&self, name: &str) -> Result<u32, LayoutError> {
        self.0
            .get_types()
            .iter()
            .find_map(|t| match &t.base_type {
                Type::Enum32(e) => e
                    .entries
                    .iter()
                    .find(|entry| entry.name.as_deref() == Some(name)),
                _ => None,
            })
            .and_then(|entry| u32::try_from(entry.value).ok())
            .ok_or_else(|| LayoutError::Missing(format!("enumerator {name}")))
    }

    /// A compound page's order: a byte of its second page's own, or since 6.6 the low byte of that page's flags.
    fn order_offset(&self) -> Result<u32, LayoutError> {
        let page = self.0.get_types().iter().find(|t| {
            t.name.as_deref() == Some("page")
                && t.num_refs == 0
                && matches!(t.base_type, Type::Struct(_))
        });
        let page_bytes = page
            .ok_or_else(|| LayoutError::Missing("struct page".to_owned()))?
            .bits
            / 8;
        if let Ok(folio) = self.structure("folio") {
            if let Some(bits) = self.bits(folio, "_folio_order") {
                return Ok(bits / 8);
            }
            if let Some(bits) = self.bits(folio, "_flags_1") {
                return Ok(bits / 8);
            }
        }
        Ok(page_bytes + self.offset("page", "compound_order")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine that runs the tests has BTF or this fails: without it the product has nothing to stand on.
    #[test]
    fn the_running_kernel_has_every_global() {
        let names = BTreeSet::from(["sched_process_fork", "task_numa_fault"]);
        let layout = Layout::read(Path::new("/sys/kernel/btf/vmlinux"), &names).unwrap();
        for global in [
            "TASK_PID",
            "TASK_TGID",
            "TASK_MM",
            "TASK_RUN_TIME",
            "TASK_EXEC_START",
            "FOLL_LONGTERM",
            "TASK_SIGNAL",
            "SIGNAL_LIVE",
            "VMA_MM",
            "TASK_MINOR_FAULTS",
            "TASK_MAJOR_FAULTS",
            "REGS_CALL",
            "REGS_IP",
            "REGS_ARG_1",
            "REGS_ARG_2",
            "REGS_ARG_3",
            "FILE_INODE",
            "INODE_RDEV",
            "NODE_SHIFT",
            "HEAD_BIT",
            "ORDER_OFFSET",
            "MIGRATE_REASON_NUMA",
        ] {
            assert!(layout.globals.contains_key(global), "{global}");
        }
        let task = "task_struct *".to_owned();
        assert_eq!(
            layout.tracepoints["sched_process_fork"],
            [task.clone(), task]
        );
        assert_eq!(layout.functions["task_numa_fault"], ["i32"; 4]);
    }

    #[test]
    fn a_file_that_is_no_btf_is_an_error_and_no_panic() {
        let error = Layout::read(Path::new("/proc/version"), &BTreeSet::new()).unwrap_err();
        assert!(matches!(error, LayoutError::Parse { .. }), "{error}");
    }
}
