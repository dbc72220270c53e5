/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Warnings of the provider as findings. Used by probes that run libfabric in a child. */
#ifndef INFO_INFO_LOG_H
#define INFO_INFO_LOG_H

struct info_report;

/** Makes libfabric log all warnings of copyrpc. Called in a child, before libfabric is used. */
void info_log_warnings_on(void);

/** Adds each warning of copyrpc in `log` once, except those that other probes report. */
void info_log_add(struct info_report *report, const char *log);

#endif
