//! Reading the running kernel's structures, at offsets that the user side took from that kernel's BTF.

use aya_ebpf::helpers::generated::{
    bpf_get_current_task, bpf_get_current_task_btf, bpf_get_numa_node_id, bpf_task_pt_regs,
};
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_probe_read_kernel};
use core::ptr::{addr_of, read_volatile};

/// Declares globals that the user side sets before load; volatile, since the compiler sees only the zero.
macro_rules! global {
    ($($name:ident),+) => {$(
        #[unsafe(no_mangle)]
        static $name: u32 = 0;
    )+};
}
global!(
    NODE_SHIFT,
    HEAD_BIT,
    ORDER_OFFSET,
    TASK_PID,
    TASK_TGID,
    TASK_MM,
    TASK_MINOR_FAULTS,
    TASK_MAJOR_FAULTS,
    REGS_CALL,
    REGS_IP,
    REGS_ARG_1,
    REGS_ARG_2,
    REGS_ARG_3,
    TASK_RUN_TIME,
    TASK_EXEC_START,
    TASK_VOLUNTARY_SWITCHES,
    TASK_INVOLUNTARY_SWITCHES,
    TASK_SIGNAL,
    SIGNAL_LIVE,
    VMA_MM,
    MIGRATE_REASON_NUMA,
    FOLL_LONGTERM,
    FILE_INODE,
    INODE_RDEV
);

#[inline(always)]
fn load(global: &'static u32) -> u32 {
    // SAFETY: a valid reference.
    unsafe { read_volatile(addr_of!(*global)) }
}

/// Reads a `T` at `offset` bytes from a kernel address; `None` when the address is not mapped.
#[inline(always)]
fn read<T>(base: *const u8, offset: u32) -> Option<T> {
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_kernel(base.add(offset as usize).cast::<T>()) }.ok()
}

/// The current thread: (thread-group id, thread id).
#[inline(always)]
pub(crate) fn current() -> (u32, u32) {
    let id = bpf_get_current_pid_tgid();
    ((id >> 32) as u32, id as u32)
}

/// The node of the CPU that this runs on.
#[inline(always)]
pub(crate) fn cpu_node() -> u32 {
    // SAFETY: no arguments.
    unsafe { bpf_get_numa_node_id() as u32 }
}

/// A task's (thread-group id, thread id).
#[inline(always)]
pub(crate) fn task_ids(task: *const u8) -> Option<(u32, u32)> {
    Some((read(task, load(&TASK_TGID))?, read(task, load(&TASK_PID))?))
}

/// How a program was given its task: by a typed argument, which may be read directly, or as a bare address.
#[derive(Clone, Copy)]
pub(crate) enum Task {
    /// An argument that the verifier knows as a `struct task_struct *`.
    Typed(*const u8),
    /// Any address.
    Bare(*const u8),
}

impl Task {
    #[inline(always)]
    fn read<T: Copy>(self, offset: u32) -> Option<T> {
        match self {
            // SAFETY: the verifier has checked that the offset is a member of this type; a bad address reads as zero. A
            // helper's call would cost as much as the rest of the program.
            Self::Typed(task) => Some(unsafe { *task.add(offset as usize).cast::<T>() }),
            Self::Bare(task) => read(task, offset),
        }
    }

    /// Where it is.
    #[inline(always)]
    pub(crate) fn address(self) -> u64 {
        match self {
            Self::Typed(task) | Self::Bare(task) => task as u64,
        }
    }

    /// Its thread id.
    #[inline(always)]
    pub(crate) fn tid(self) -> Option<u32> {
        self.read(load(&TASK_PID))
    }

    /// The scheduler's account of its run time: nanoseconds since its birth, without what interrupts and the hypervisor
    /// took. Up to date for the leaving task of a context switch.
    #[inline(always)]
    pub(crate) fn run_time(self) -> Option<u64> {
        self.read(load(&TASK_RUN_TIME))
    }

    /// How often it has left a CPU since its birth, the switch under way included.
    #[inline(always)]
    pub(crate) fn switches(self) -> Option<u64> {
        let voluntary: u64 = self.read(load(&TASK_VOLUNTARY_SWITCHES))?;
        let involuntary: u64 = self.read(load(&TASK_INVOLUNTARY_SWITCHES))?;
        Some(voluntary + involuntary)
    }
}

/// The current task's run time as the scheduler accounted for it last, and that moment by the scheduler's clock.
#[inline(always)]
pub(crate) fn current_run_time() -> Option<(u64, u64)> {
    let task = current_task();
    Some((
        read(task, load(&TASK_RUN_TIME))?,
        read(task, load(&TASK_EXEC_START))?,
    ))
}

/// Whether the current thread is its process's last; true only once it has begun to exit.
#[inline(always)]
pub(crate) fn current_is_last_thread() -> bool {
    let task = current_task();
    let Some(signal) = read::<*const u8>(task, load(&TASK_SIGNAL)) else {
        return false;
    };
    read::<i32>(signal, load(&SIGNAL_LIVE)) == Some(0)
}

/// Whether `mm` is the current thread's own address space.
#[inline(always)]
pub(crate) fn is_own_mm(mm: *const u8) -> bool {
    read::<*const u8>(current_task(), load(&TASK_MM)) == Some(mm)
}

/// The current task as the verifier knows it, whose members are read without a helper's call. Linux 5.11 and later.
#[derive(Clone, Copy)]
pub(crate) struct Me(*const u8);

impl Me {
    #[inline(always)]
    pub(crate) fn get() -> Self {
        // SAFETY: no arguments.
        Self(unsafe { bpf_get_current_task_btf() } as *const u8)
    }

    #[inline(always)]
    fn read<T: Copy>(self, offset: u32) -> T {
        // SAFETY: the verifier has checked that the offset is a member of this type.
        unsafe { *self.0.add(offset as usize).cast::<T>() }
    }

    /// (thread-group id, thread id).
    #[inline(always)]
    pub(crate) fn ids(self) -> (u32, u32) {
        (self.read(load(&TASK_TGID)), self.read(load(&TASK_PID)))
    }

    /// Whether `mm` is its own address space.
    #[inline(always)]
    pub(crate) fn has_mm(self, mm: *const u8) -> bool {
        self.read::<*const u8>(load(&TASK_MM)) == mm
    }

    /// What it is at: the same number within one page fault, or one system call between two faults, and another in the
    /// next. Nobody tells when those end: but each fault that ends is counted in the thread's own account, and the
    /// registers with which it entered the kernel tell its system calls apart, by number and arguments. Linux 5.15 and
    /// later, x86.
    #[inline(always)]
    pub(crate) fn moment(self) -> u64 {
        let call = self.register(load(&REGS_CALL));
        if call == NO_CALL {
            return self.faults();
        }
        // Odd numbers without a pattern (digits of pi), so that what differs doesn't cancel out.
        let call = self
            .faults()
            .wrapping_add(call.wrapping_mul(0x1319_8a2e_0370_7345))
            .wrapping_add(
                self.register(load(&REGS_ARG_1))
                    .wrapping_mul(0x082e_fa98_ec4e_6c89),
            )
            .wrapping_add(
                self.register(load(&REGS_ARG_2))
                    .wrapping_mul(0x4528_21e6_38d0_1377),
            )
            .wrapping_add(
                self.register(load(&REGS_ARG_3))
                    .wrapping_mul(0xbe54_66cf_34e9_0c6d),
            );
        call | IN_CALL
    }

    /// Whether it is still at that moment. Of a fault of the program the account alone is asked, which is the cheaper
    /// half: only a fault that failed after it allocated could be taken for what comes next.
    #[inline(always)]
    pub(crate) fn is_still_at(self, moment: u64) -> bool {
        if moment & IN_CALL == 0 {
            self.faults() == moment
        } else {
            self.moment() == moment
        }
    }

    /// Its faults that have ended.
    #[inline(always)]
    fn faults(self) -> u64 {
        self.read::<u64>(load(&TASK_MINOR_FAULTS)) + self.read::<u64>(load(&TASK_MAJOR_FAULTS))
    }

    /// The same for one instruction of the program: a fault that failed is not counted.
    #[inline(always)]
    pub(crate) fn instruction(self) -> u64 {
        let ip = self.register(load(&REGS_IP));
        self.moment()
            .wrapping_add(ip.wrapping_mul(0xa409_3822_299f_31d1))
    }

    /// A register with which it entered the kernel.
    #[inline(always)]
    fn register(self, offset: u32) -> u64 {
        // SAFETY: a task, and then its registers, which the verifier knows as such; it has checked their members.
        unsafe {
            let registers = bpf_task_pt_regs(self.0 as *mut _) as *const u8;
            *registers.add(offset as usize).cast::<u64>()
        }
    }
}

/// What stands for the system call's number when there is none: a fault or an interrupt of the program.
const NO_CALL: u64 = u64::MAX;
/// The bit of a moment within a system call; a count of faults doesn't reach it.
const IN_CALL: u64 = 1 << 63;

/// Whether a mapping belongs to the current thread's own address space.
#[inline(always)]
pub(crate) fn is_own_vma(vma: *const u8) -> bool {
    read::<*const u8>(vma, load(&VMA_MM)).is_some_and(is_own_mm)
}

#[inline(always)]
fn current_task() -> *const u8 {
    // SAFETY: no arguments; always a valid task.
    unsafe { bpf_get_current_task() as *const u8 }
}

/// A page's or folio's node: both begin with the flags word.
#[inline(always)]
pub(crate) fn page_node(page: *const u8) -> Option<u32> {
    let flags: u64 = read(page, 0)?;
    Some((flags >> load(&NODE_SHIFT)) as u32)
}

/// The same of an argument that the verifier knows as a `struct page *`.
#[inline(always)]
pub(crate) fn typed_page_node(page: *const u8) -> Option<u32> {
    // The allocation's tracepoint also tells failures, and the verifier knows.
    if page.is_null() {
        return None;
    }
    // SAFETY: a member of this type at offset 0, of its size; a bad address reads as zero.
    let flags = unsafe { *page.cast::<u64>() };
    Some((flags >> load(&NODE_SHIFT)) as u32)
}

/// A folio's or head page's node and size in pages of 4 KiB.
#[inline(always)]
pub(crate) fn folio_node_and_pages(folio: *const u8) -> Option<(u32, u64)> {
    let flags: u64 = read(folio, 0)?;
    let node = (flags >> load(&NODE_SHIFT)) as u32;
    if (flags >> load(&HEAD_BIT)) & 1 == 0 {
        return Some((node, 1));
    }
    let order: u8 = read(folio, load(&ORDER_OFFSET))?;
    Some((node, 1 << (order & 31)))
}

/// The major number of the device that a file is; 0 for one that is none.
#[inline(always)]
pub(crate) fn device_major(file: *const u8) -> Option<u32> {
    let inode: *const u8 = read(file, load(&FILE_INODE))?;
    let device: u32 = read(inode, load(&INODE_RDEV))?;
    // `MINORBITS`, unchanged since 2.6.
    Some(device >> 20)
}

/// Reads one entry of the kernel's array of pages: its node.
#[inline(always)]
pub(crate) fn node_of_page_in(pages: *const u8, index: u64) -> Option<u32> {
    // SAFETY: only computed here; the helper checks it.
    let entry = unsafe { pages.add(index as usize * 8) };
    page_node(read::<*const u8>(entry, 0)?)
}

/// A pointer among a traced function's arguments that points to no structure: the verifier lets no program load it.
#[inline(always)]
pub(crate) fn argument(context: *const u8, index: u32) -> Option<*const u8> {
    read(context, index * 8)
}

/// The flag that asks for a long-term pin.
#[inline(always)]
pub(crate) fn is_long_term(gup_flags: u32) -> bool {
    gup_flags & load(&FOLL_LONGTERM) != 0
}

/// The reason that NUMA balancing gives.
#[inline(always)]
pub(crate) fn migrate_reason_numa() -> u32 {
    load(&MIGRATE_REASON_NUMA)
}
