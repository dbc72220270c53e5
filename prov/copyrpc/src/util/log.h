/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does the user hear of it?
 *
 * Every line goes through libfabric's own log (FI_LOG_LEVEL, FI_LOG_PROV=copyrpc). WARN: the user
 * must act, and the line says how. INFO: a decision or an event of a lifetime. DBG is compiled out
 * unless UTIL_LOG_DEBUG is defined. Nothing is logged per message.
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stdint.h>
#include <rdma/providers/fi_prov.h>
#include <rdma/providers/fi_log.h>

/** The provider that lines are logged for; defined in util/log.c, filled in by ofi/. */
extern struct fi_provider util_log_prov;

#define UTIL_WARN(subsys, ...) FI_WARN(&util_log_prov, FI_LOG_##subsys, __VA_ARGS__)
/** The same, for what comes again as long as its cause lasts: each place once a minute. */
#define UTIL_WARN_SELDOM(subsys, ...)                                                              \
	do {                                                                                       \
		static uint64_t util_log_next_ns;                                                  \
                                                                                                   \
		if (util_log_is_due(&util_log_next_ns))                                            \
			UTIL_WARN(subsys, __VA_ARGS__);                                            \
	} while (0)

/** Was the last time a minute ago? *next_ns: 0 at first. Any thread; errno stays. */
bool util_log_is_due(uint64_t *next_ns);

#define UTIL_INFO(subsys, ...) FI_INFO(&util_log_prov, FI_LOG_##subsys, __VA_ARGS__)

#ifdef UTIL_LOG_DEBUG
#define UTIL_DBG(subsys, ...) FI_DBG(&util_log_prov, FI_LOG_##subsys, __VA_ARGS__)
#else
#define UTIL_DBG(subsys, ...) ((void)0)
#endif

#endif
