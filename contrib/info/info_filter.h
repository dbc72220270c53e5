/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* FI_PROVIDER and lines of libfabric's log. Pure. */
#ifndef INFO_INFO_FILTER_H
#define INFO_INFO_FILTER_H

#include <stdbool.h>
#include <stddef.h>

/** Returns whether FI_PROVIDER, or NULL without it, lets libfabric use copyrpc. */
bool info_filter_permits(const char *value);

/**
 * Returns the text of the next warning of copyrpc in a log and its length, and moves *log behind
 * it. Returns NULL if there is no further one.
 */
const char *info_log_warning(const char **log, size_t *len);

#endif
