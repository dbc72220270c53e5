/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory barriers that the device relies on, by name. Used by the mlx5 queues and doorbells.
 *
 * They order accesses on the bus, so a fence between processors is not enough (Arm's outer
 * shareable domain, x86's write-combining buffers):
 *
 *   to_device    WQEs in memory              before  the doorbell record that counts them
 *   mmio_start   the doorbell record         before  the register
 *   mmio_flush   drains the register's stores from the write-combining buffer, before the next ones
 *   from_device  reading the owner bit       before  reading the rest of the CQE (and the data)
 *   give_back    reading what the device     before  the index that lets the device write there
 *                wrote                               again
 *
 * An architecture that is missing here does not compile: a wrong guess loses completions rarely.
 * Tests: test/unit/dev/mlx5/test_m5_barrier.c and, for the instructions, test/lint/doorbell.
 */
#ifndef DEV_MLX5_M5_BARRIER_H
#define DEV_MLX5_M5_BARRIER_H

#if defined(__x86_64__)

/* Write-back memory keeps the order of stores and of loads: only the compiler is constrained. */
static inline void m5_barrier_to_device(void)
{
	__asm__ volatile("" ::: "memory");
}

static inline void m5_barrier_from_device(void)
{
	__asm__ volatile("" ::: "memory");
}

/* The processor moves no store before an earlier load. */
static inline void m5_barrier_give_back(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Stores to write-combining memory are unordered. */
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

/* Orders earlier loads before later loads and stores: a store can pass an independent load. */
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
