/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simple direct accesses (docs/rma.md): core_chan_ops.access, and their ends. Called by core
 * through ring_template.h, and by progress.
 *
 * The device numbers and counts them, so the connection keeps two numbers and no record. The flush
 * policy is that of messages (docs/flush-policy.md): a single one leaves at once; behind others in
 * progress, or with FI_MORE, it waits for the next progress call at the latest. The device ends a
 * run that is long enough itself.
 *
 * Whatever needs a record, a slot or a registration of its own goes by ring_direct.h.
 *
 * Tests: test/unit/ring/test_ring_access.c.
 */
#ifndef RING_RING_ACCESS_H
#define RING_RING_ACCESS_H

#include <assert.h>
#include <rdma/fi_errno.h>

#include "core/core_reg.h"
#include "ring/ring_conn.h"

/** Returns true while simple accesses are not known to have ended. */
static inline bool ring_access_is_open(const struct ring_conn *conn)
{
	return conn->link->access_cnt != conn->accessed;
}

/** Returns the flags for the device. */
static inline unsigned ring_access_dev_flags(const struct ring_conn *conn, unsigned flags)
{
	unsigned more = ring_access_is_open(conn) ? DEV_ACCESS_MORE : flags & DEV_ACCESS_MORE;

	if (UTIL_UNLIKELY(flags & CORE_DIRECT_NOW))
		more = 0;
	return (flags & (DEV_ACCESS_WRITE | DEV_ACCESS_SILENT)) | more;
}

static_assert((int)CORE_DIRECT_WRITE == DEV_ACCESS_WRITE &&
		      (int)CORE_DIRECT_MORE == DEV_ACCESS_MORE &&
		      (int)CORE_DIRECT_SILENT == DEV_ACCESS_SILENT,
	      "equal flags of core and device");

/** Implements core_chan_ops.access. */
UTIL_INLINE int ring_access(const struct dev_link_ops *dev, struct ring_conn *conn,
			    const struct core_access_args *args)
{
	struct dev_link *link = conn->link;
	bool takes = (args->flags & CORE_DIRECT_WRITE) && args->len <= link->inline_max;
	unsigned dev_flags = ring_access_dev_flags(conn, args->flags);
	int ret;

	if (!dev->access || UTIL_UNLIKELY(conn->eng.err) || (!takes && !args->reg))
		return -FI_ENOSYS;
	if (UTIL_UNLIKELY(args->flags & CORE_DIRECT_ORDERED) &&
	    (conn->tx.open || conn->tx.post_cnt))
		return -FI_EAGAIN;
	ret = dev->access(link, args->buf, (uint32_t)args->len, args->remote_addr, args->remote_key,
			  takes ? NULL : args->reg->mem, dev_flags);
	if (UTIL_UNLIKELY(ret))
		return ret;
	if ((dev_flags & DEV_ACCESS_MORE) && util_list_is_empty(&conn->dirty_link))
		ring_conn_mark_dirty(conn);
	return 0;
}

/** Handles DEV_EV_ACCESS. */
static inline void ring_access_ended(struct ring_conn *conn, uint32_t cnt)
{
	if ((int32_t)(cnt - conn->accessed) <= 0)
		return; /* no more than before */
	conn->accessed = cnt;
	conn->eng.up->on_accessed(&conn->eng.chan, cnt);
}

/** Returns true while simple accesses are in progress, and lets their ends be reported. */
UTIL_INLINE bool ring_access_is_busy(const struct dev_link_ops *dev, struct ring_conn *conn)
{
	if (!dev->settle || conn->eng.err || !ring_access_is_open(conn))
		return false;
	dev->settle(conn->link);
	return true;
}

#endif
