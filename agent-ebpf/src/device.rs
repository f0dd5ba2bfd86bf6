//! Memory for devices: pages pinned for long, and pages that a device's driver allocates.
//!
//! Traces by fentry and fexit (kprobe and kretprobe) the functions that pin user pages, and counts those that were asked
//! for with `FOLL_LONGTERM`, as RDMA, VFIO and io_uring's registered buffers do. A call's work is bounded: of a call that
//! pins more than `SAMPLES` pages every n-th one's node is read, and stands for n. Unpinning is not followed: workers do
//! it, and a huge page's pins are partly given back by the very call that made them.
//!
//! Between the beginning and the end of an ioctl or mmap on a GPU's, accelerator's or RDMA device's file, the tracepoint
//! `mm_page_alloc` tells what the driver allocates; its small change (page tables, slabs) is in the count. Produces
//! `DeviceRow`.

use agent_ebpf::MAJORS;
use aya_ebpf::EbpfContext;
use aya_ebpf::programs::{FExitContext, ProbeContext, RetProbeContext};

use core::ptr::{addr_of, read_volatile};

use crate::kernel;
use crate::rows::{self, Current};
use crate::twins::{entry, exit, tracepoint};

/// How many pages of a call have their node read.
const SAMPLES: u64 = 512;

/// The end of a function that pins pages, whose return value is how many: by fexit, and by kprobe and kretprobe. `$flags`
/// is the index of its `gup_flags`, the array of pages comes next, `$count` is the number of its arguments.
macro_rules! pins {
    ($(#[$doc:meta])* fn $fexit:ident, $kprobe:ident, $kretprobe:ident($count:literal)) => {
        $(#[$doc])*
        #[aya_ebpf::macros::fexit]
        pub(crate) fn $fexit(ctx: FExitContext) -> i32 {
            // The return value follows the arguments.
            let returned: i64 = ctx.arg($count);
            let flags: u32 = ctx.arg(FLAGS as usize);
            if kernel::is_long_term(flags)
                && let Some(current) = Current::get()
                && let Some(pages) = kernel::argument(ctx.as_ptr().cast(), PAGES)
            {
                pinned(&current, pages, returned);
            }
            0
        }

        /// Its beginning, where only kprobes can be had.
        #[aya_ebpf::macros::kprobe]
        pub(crate) fn $kprobe(ctx: ProbeContext) -> u32 {
            let flags = ctx.arg::<u32>(FLAGS as usize);
            let pages = ctx.arg::<u64>(PAGES as usize);
            if let (Some(flags), Some(pages)) = (flags, pages) {
                pinning(flags, pages);
            }
            0
        }

        /// The end of the same.
        #[aya_ebpf::macros::kretprobe]
        pub(crate) fn $kretprobe(ctx: RetProbeContext) -> u32 {
            has_pinned(ctx.ret());
            0
        }
    };
}

const FLAGS: u32 = 2;
const PAGES: u32 = 3;

pins! {
    /// Pins made without the lock of the address space, or with it where that fails.
    ///
    /// - 5.10 to 6.11: `internal_get_user_pages_fast(unsigned long start, unsigned long nr_pages, unsigned int gup_flags,
    ///   struct page **)`
    /// - 6.12 and later: `gup_fast_fallback(…)`, the same
    fn pin_fast, kprobe_pin_fast, kretprobe_pin_fast(4)
}
pins! {
    /// Pins made under the lock: `pin_user_pages(unsigned long start, unsigned long nr_pages, unsigned int gup_flags,
    /// struct page **)`, 6.5 and later.
    fn pin_slow, kprobe_pin_slow, kretprobe_pin_slow(4)
}
pins! {
    /// The same: `pin_user_pages(…, struct vm_area_struct **)`, 5.10 to 6.4.
    fn pin_slow_5_10, kprobe_pin_slow_5_10, kretprobe_pin_slow_5_10(5)
}

#[inline(always)]
fn pinning(flags: u32, pages: u64) {
    if let Some(current) = Current::get()
        && let Some(thread) = rows::thread(&current)
    {
        let pages = if kernel::is_long_term(flags) {
            pages
        } else {
            0
        };
        // SAFETY: this thread's own state.
        unsafe { (*thread).pinning_pages = pages };
    }
}

#[inline(always)]
fn has_pinned(returned: i64) {
    if let Some(current) = Current::get()
        && let Some(thread) = rows::thread(&current)
    {
        // SAFETY: this thread's own state.
        let pages = unsafe {
            let pages = (*thread).pinning_pages;
            (*thread).pinning_pages = 0;
            pages
        };
        if pages != 0 {
            pinned(&current, pages as *const u8, returned);
        }
    }
}

#[inline(always)]
fn pinned(current: &Current, pages: *const u8, returned: i64) {
    // An error, or more than any call pins. A function that returns an int leaves the upper half undefined.
    let count = i64::from(returned as i32);
    if count <= 0 {
        return;
    }
    let count = count as u64;
    let cpu_node = kernel::cpu_node();
    let Some(row) = rows::device_row(current, cpu_node) else {
        return;
    };
    let stride = count.div_ceil(SAMPLES);
    for sample in 0..SAMPLES {
        let index = sample * stride;
        if index >= count {
            break;
        }
        let stands_for = stride.min(count - index);
        let slot = match kernel::node_of_page_in(pages, index) {
            Some(node) => rows::slot(cpu_node, node),
            None => agent_ebpf::SLOT_UNKNOWN,
        };
        // SAFETY: this thread's own row.
        unsafe { rows::add(&raw mut (*row).pinned, slot, stands_for) };
    }
}

#[unsafe(no_mangle)]
static DEVICE_MAJORS: [u8; MAJORS] = [0; MAJORS];

entry! {
    /// An ioctl begins: `security_file_ioctl(struct file *, unsigned int cmd, unsigned long arg)`, all kernels.
    fn driver_ioctl, kprobe_driver_ioctl(file: *const u8 = 0)
    enter_driver(file)
}
exit! {
    /// It has ended: `__x64_sys_ioctl(const struct pt_regs *)` and its like.
    fn driver_ioctl_ends, kretprobe_driver_ioctl_ends()
    leave_driver()
}
entry! {
    /// A mapping begins: `security_mmap_file(struct file *, unsigned long prot, unsigned long flags)`, all kernels.
    fn driver_mmap, kprobe_driver_mmap(file: *const u8 = 0)
    enter_driver(file)
}
exit! {
    /// It has ended: `vm_mmap_pgoff(struct file *, …)`, all kernels.
    fn driver_mmap_ends, kretprobe_driver_mmap_ends()
    leave_driver()
}
tracepoint! {
    /// `mm_page_alloc(struct page *, unsigned int order, gfp_t, int migratetype)`, all kernels.
    fn driver_page_alloc, raw_driver_page_alloc(page: *const u8 = 0, order: u32 = 1)
    allocated(page, order)
}

#[inline(always)]
fn enter_driver(file: *const u8) {
    let Some(current) = Current::get() else {
        return;
    };
    let Some(major) = kernel::device_major(file).filter(|major| *major < MAJORS as u32) else {
        return;
    };
    // SAFETY: in bounds by the test above; volatile, since the user side sets the table before load.
    let is_device = unsafe {
        read_volatile(
            addr_of!(DEVICE_MAJORS)
                .cast::<u8>()
                .add(major as usize & (MAJORS - 1)),
        )
    };
    if is_device == 0 {
        return;
    }
    if let Some(thread) = rows::thread(&current) {
        // SAFETY: this thread's own state.
        unsafe { (*thread).in_driver = 1 };
    }
}

#[inline(always)]
fn leave_driver() {
    let Some(current) = Current::get() else {
        return;
    };
    if let Some(thread) = rows::thread(&current) {
        // SAFETY: this thread's own state.
        unsafe { (*thread).in_driver = 0 };
    }
}

#[inline(always)]
fn allocated(page: *const u8, order: u32) {
    let Some(current) = Current::get() else {
        return;
    };
    let Some(thread) = rows::thread(&current) else {
        return;
    };
    // SAFETY: this thread's own state.
    if unsafe { (*thread).in_driver } == 0 {
        return;
    }
    let cpu_node = kernel::cpu_node();
    let Some(row) = rows::device_row(&current, cpu_node) else {
        return;
    };
    let slot = match kernel::page_node(page) {
        Some(node) => rows::slot(cpu_node, node),
        None => agent_ebpf::SLOT_UNKNOWN,
    };
    let pages = 1u64 << (order & 31);
    // SAFETY: this thread's own row.
    unsafe { rows::add(&raw mut (*row).driver_allocated, slot, pages) };
}
