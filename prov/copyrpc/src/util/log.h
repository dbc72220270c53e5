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
#include <rdma/providers/fi_prov.h>
#include <rdma/providers/fi_log.h>

/** The provider that lines are logged for; defined in util/log.c, filled in by ofi/. */
extern struct fi_provider util_log_prov;

#define UTIL_WARN(subsys, ...) FI_WARN(&util_log_prov, FI_LOG_##subsys, __VA_ARGS__)
#define UTIL_INFO(subsys, ...) FI_INFO(&util_log_prov, FI_LOG_##subsys, __VA_ARGS__)

#ifdef UTIL_LOG_DEBUG
#define UTIL_DBG(subsys, ...) FI_DBG(&util_log_prov, FI_LOG_##subsys, __VA_ARGS__)
#else
#define UTIL_DBG(subsys, ...) ((void)0)
#endif

#endif
