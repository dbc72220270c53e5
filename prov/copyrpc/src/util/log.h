/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Log lines, written through libfabric's log (FI_LOG_LEVEL, FI_LOG_PROV=copyrpc).
 *
 * WARN: the user must act, and the line says how. INFO: a decision or an event of an object's
 * lifetime. DBG is compiled out unless UTIL_LOG_DEBUG is defined. Nothing is logged per message.
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include <stdbool.h>
#include <stdint.h>

/** Provider that lines are logged for; defined in util/log.c, filled in by ofi/. */
extern struct fi_provider util_log_prov;

#define UTIL_WARN(subsys, ...) FI_WARN(&util_log_prov, FI_LOG_##subsys, __VA_ARGS__)
/** Warns at most once a minute per call site, for conditions that persist. */
#define UTIL_WARN_SELDOM(subsys, ...)                                                              \
	do {                                                                                       \
		static uint64_t util_log_next_ns;                                                  \
                                                                                                   \
		if (util_log_is_due(&util_log_next_ns))                                            \
			UTIL_WARN(subsys, __VA_ARGS__);                                            \
	} while (0)

/**
 * Returns whether a minute has passed since the last true result. *next_ns starts at 0. Any thread;
 * keeps errno.
 */
bool util_log_is_due(uint64_t *next_ns);

#define UTIL_INFO(subsys, ...) FI_INFO(&util_log_prov, FI_LOG_##subsys, __VA_ARGS__)

#ifdef UTIL_LOG_DEBUG
#define UTIL_DBG(subsys, ...) FI_DBG(&util_log_prov, FI_LOG_##subsys, __VA_ARGS__)
#else
#define UTIL_DBG(subsys, ...) ((void)0)
#endif

#endif
