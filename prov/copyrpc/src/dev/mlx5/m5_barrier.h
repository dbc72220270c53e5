/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which order of memory accesses does the device rely on, and how is it had here?
 *
 * Five places need one, and each has its name; the order is one of the bus, so a fence between
 * processors is not enough (Arm's outer shareable domain, x86's write-combining buffers):
 *
 *   to_device    WQEs in memory              before  the doorbell record that counts them
 *   mmio_start   the doorbell record         before  the register
 *   mmio_flush   the register's stores leave the write-combining buffer now, and before the next
 *   from_device  the owner bit was read      before  the rest of the CQE (and the data) is
 *   give_back    what the device wrote is    before  the index that lets it write there again
 *                read
 *
 * An architecture that is not here does not compile: a guess would lose completions once a week.
 * Shown by test/unit/dev/mlx5/test_m5_barrier.c and, as instructions, by test/lint/doorbell.
 */
#ifndef M5_M5_BARRIER_H
#define M5_M5_BARRIER_H

#if defined(__x86_64__)

/* Stores to write-back memory stay in order, and loads do: the compiler alone must be told. */
static inline void m5_barrier_to_device(void)
{
	__asm__ volatile("" ::: "memory");
}

static inline void m5_barrier_from_device(void)
{
	__asm__ volatile("" ::: "memory");
}

/* No store passes an earlier load. */
static inline void m5_barrier_give_back(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Stores to write-combining memory are ordered with nothing. */
static inline void m5_barrier_mmio_start(void)
{
	__asm__ volatile("sfence" ::: "memory");
}

static inline void m5_barrier_mmio_flush(void)
{
	__asm__ volatile("sfence" ::: "memory");
}

#elif defined(__aarch64__)

static inline void m5_barrier_to_device(void)
{
	__asm__ volatile("dmb oshst" ::: "memory");
}

static inline void m5_barrier_from_device(void)
{
	__asm__ volatile("dmb oshld" ::: "memory");
}

/* Earlier loads before later loads and stores: a store alone would pass loads that it does not depend on. */
static inline void m5_barrier_give_back(void)
{
	__asm__ volatile("dmb oshld" ::: "memory");
}

static inline void m5_barrier_mmio_start(void)
{
	__asm__ volatile("dsb st" ::: "memory");
}

static inline void m5_barrier_mmio_flush(void)
{
	__asm__ volatile("dsb st" ::: "memory");
}

#else
#error "name this architecture's barriers towards a device"
#endif

#endif
