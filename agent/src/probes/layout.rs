//! Where the running kernel keeps what the programs read, from its own BTF: no offset is written down anywhere.

use super::btf::{self, Btf, BtfError, Id, Kind, Type};
use std::collections::{BTreeMap, BTreeSet, HashMap};
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
    Parse { path: String, error: BtfError },
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
    /// these names.
    pub(crate) fn read(path: &Path, names: &BTreeSet<&str>) -> Result<Self, LayoutError> {
        let shown = path.display().to_string();
        let data = std::fs::read(path).map_err(|error| LayoutError::Open {
            path: shown.clone(),
            error,
        })?;
        let btf = Btf::new(data).map_err(|error| LayoutError::Parse { path: shown, error })?;
        Self::from_btf(&btf, names)
    }

    fn from_btf(btf: &Btf, names: &BTreeSet<&str>) -> Result<Self, LayoutError> {
        let types = Types::find(btf, names);
        let mut layout = Self {
            functions: types.functions.clone(),
            tracepoints: types.tracepoints.clone(),
            ..Self::default()
        };
        let g = &mut layout.globals;
        g.insert("TASK_PID", types.offset("task_struct", "pid")?);
        g.insert("TASK_TGID", types.offset("task_struct", "tgid")?);
        g.insert("TASK_MM", types.offset("task_struct", "mm")?);
        let entity = types.offset("task_struct", "se")?;
        let run_time = types.offset("sched_entity", "sum_exec_runtime")?;
        g.insert("TASK_RUN_TIME", entity + run_time);
        let exec_start = types.offset("sched_entity", "exec_start")?;
        g.insert("TASK_EXEC_START", entity + exec_start);
        g.insert(
            "TASK_VOLUNTARY_SWITCHES",
            types.offset("task_struct", "nvcsw")?,
        );
        g.insert(
            "TASK_INVOLUNTARY_SWITCHES",
            types.offset("task_struct", "nivcsw")?,
        );
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

/// Structures of which something is asked.
const STRUCTURES: [&str; 11] = [
    "task_struct",
    "sched_entity",
    "signal_struct",
    "vm_area_struct",
    "pt_regs",
    "file",
    "inode",
    "zonelist",
    "pglist_data",
    "page",
    "folio",
];

/// Enumerators of which the value is asked.
const ENUMERATORS: [&str; 3] = ["PG_head", "MR_NUMA_MISPLACED", "FOLL_LONGTERM"];

/// Structures in structures are no deeper.
const DEPTH: usize = 16;

/// What is asked for, found in one pass.
struct Types<'a> {
    btf: &'a Btf,
    structures: HashMap<&'a str, Type<'a>>,
    enumerators: HashMap<&'a str, u32>,
    functions: BTreeMap<String, Vec<String>>,
    tracepoints: BTreeMap<String, Vec<String>>,
}

impl<'a> Types<'a> {
    fn find(btf: &'a Btf, names: &BTreeSet<&str>) -> Self {
        let mut found = Self {
            btf,
            structures: HashMap::new(),
            enumerators: HashMap::new(),
            functions: BTreeMap::new(),
            tracepoints: BTreeMap::new(),
        };
        for (_, one) in btf.types() {
            match one.kind {
                Kind::Struct if STRUCTURES.contains(&one.name) && one.has_members() => {
                    found.structures.entry(one.name).or_insert(one);
                }
                Kind::Enum => found.add_enumerators(&one),
                Kind::Function if names.contains(one.name) => {
                    let prototype = btf.get(one.size_or_id);
                    let arguments = prototype.map(|proto| found.arguments(&proto, 0));
                    let arguments = arguments.unwrap_or_default();
                    found.functions.insert(one.name.to_owned(), arguments);
                }
                Kind::Typedef => found.add_tracepoint(&one, names),
                _ => {}
            }
        }
        found
    }

    fn add_enumerators(&mut self, of: &Type<'a>) {
        for one in self.btf.members(of) {
            if let Some(name) = ENUMERATORS.iter().find(|name| **name == one.name) {
                self.enumerators.entry(name).or_insert(one.type_or_value);
            }
        }
    }

    /// A tracepoint's type is that of a pointer to a function whose first argument is the tracer's own data.
    fn add_tracepoint(&mut self, typedef: &Type<'_>, names: &BTreeSet<&str>) {
        let tracepoint = typedef.name.strip_prefix("btf_trace_");
        let Some(tracepoint) = tracepoint.filter(|name| names.contains(name)) else {
            return;
        };
        let pointer = self.btf.bare(typedef.size_or_id);
        let pointer = pointer.filter(|found| found.kind == Kind::Pointer);
        let prototype = pointer.and_then(|pointer| self.btf.bare(pointer.size_or_id));
        if let Some(prototype) = prototype.filter(|found| found.kind == Kind::Prototype) {
            let arguments = self.arguments(&prototype, 1);
            self.tracepoints.insert(tracepoint.to_owned(), arguments);
        }
    }

    fn arguments(&self, prototype: &Type<'_>, skip: usize) -> Vec<String> {
        let arguments = self.btf.members(prototype).skip(skip);
        arguments.map(|a| self.written(a.type_or_value)).collect()
    }

    fn structure(&self, name: &str) -> Result<&Type<'a>, LayoutError> {
        let found = self.structures.get(name);
        found.ok_or_else(|| LayoutError::Missing(format!("struct {name}")))
    }

    /// Byte offset of a member, also inside anonymous structures and unions.
    fn offset(&self, structure: &str, member: &str) -> Result<u32, LayoutError> {
        self.bits(self.structure(structure)?, member, DEPTH)
            .map(|bits| bits / 8)
            .ok_or_else(|| LayoutError::Missing(format!("{structure}.{member}")))
    }

    fn bits(&self, structure: &Type<'_>, member: &str, depth: usize) -> Option<u32> {
        self.btf.members(structure).find_map(|m| match m.name {
            name if name == member => Some(m.bits),
            "" if depth > 0 => {
                let inner = self.btf.bare(m.type_or_value)?;
                let bits = self.bits(&inner, member, depth - 1)?;
                Some(m.bits + bits)
            }
            _ => None,
        })
    }

    /// A type as the ladder writes it: `folio *`, `page **`, `i32` for an integer, enumeration or truth value of 32 bits,
    /// `struct` for one by value, `void *`.
    fn written(&self, mut id: Id) -> String {
        let mut pointers = String::new();
        // What a structure without a name of its own is called.
        let mut called = "";
        let mut steps = 0;
        let name = loop {
            if id == 0 {
                break "void".to_owned();
            }
            steps += 1;
            // More would be a circle.
            let Some(found) = self.btf.get(id).filter(|_| steps < btf::LONGEST_CHAIN) else {
                break "?".to_owned();
            };
            match found.kind {
                Kind::Pointer => pointers.push('*'),
                Kind::Typedef => called = found.name,
                Kind::Qualifier => {}
                Kind::Int => break format!("i{}", Btf::int_bits(&found).unwrap_or(0)),
                Kind::Enum => break "i32".to_owned(),
                Kind::Enum64 => break "i64".to_owned(),
                Kind::Struct | Kind::Union | Kind::Forward if pointers.is_empty() => {
                    break "struct".to_owned();
                }
                Kind::Struct | Kind::Union | Kind::Forward => {
                    let names = [found.name, called, "struct"];
                    let name = names.into_iter().find(|name| !name.is_empty());
                    break name.unwrap_or_default().to_owned();
                }
                _ => break "?".to_owned(),
            }
            id = found.size_or_id;
        };
        if pointers.is_empty() {
            name
        } else {
            format!("{name} {pointers}")
        }
    }

    fn array_length(&self, structure: &str, member: &str) -> Result<u32, LayoutError> {
        let members = self.btf.members(self.structure(structure)?);
        let mut members = members.filter(|found| found.name == member);
        let found = members.next().and_then(|m| self.btf.bare(m.type_or_value));
        let array = found.and_then(|found| Btf::array(&found));
        let missing = || LayoutError::Missing(format!("array {structure}.{member}"));
        Ok(array.ok_or_else(missing)?.1)
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
        let value = self.enumerators.get(name).copied();
        value.ok_or_else(|| LayoutError::Missing(format!("enumerator {name}")))
    }

    /// A compound page's order: a byte of its second page's own, or since 6.6 the low byte of that page's flags.
    fn order_offset(&self) -> Result<u32, LayoutError> {
        let page_bytes = self.structure("page")?.size_or_id;
        if let Ok(folio) = self.structure("folio") {
            for member in ["_folio_order", "_flags_1"] {
                if let Some(bits) = self.bits(folio, member, DEPTH) {
                    return Ok(bits / 8);
                }
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
            "TASK_VOLUNTARY_SWITCHES",
            "TASK_INVOLUNTARY_SWITCHES",
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
