/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hooks of the modules msg, rma, coll, rpc and watch into the life of endpoints, peers and regions.
 * Called by core, which includes none of the modules; core/modules/core_modules.c fills the table.
 */
#ifndef CORE_CORE_MODULE_H
#define CORE_CORE_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core_chan;
struct core_ep;
struct core_mr;
struct core_peer;

/** NULL: the module has no such hook. */
struct core_module {
	/* Opens the module's part of an endpoint. Returns 0 or -FI_E*. */
	int (*ep_open)(struct core_ep *ep);
	/* First part of a close: drops arrivals and posted receives, while the queues are bound. */
	void (*ep_stop)(struct core_ep *ep);
	/* Last part of a close, without peers and channels; or undoes ep_open. */
	void (*ep_close)(struct core_ep *ep);
	/* Writes the lengths of the module's queues to the endpoint's row of statistics. */
	void (*ep_show)(struct core_ep *ep);
	/* Cancels posted receives. */
	void (*ep_flush)(struct core_ep *ep);
	/* Messages of an unknown number may be lost, though their sender is alive. */
	void (*ep_lost)(struct core_ep *ep, int err);
	/* A peer has a new channel, which progress uses from its next call on. */
	void (*peer_up)(struct core_peer *peer);
	/*
	 * A peer fails: the channel and its memory still exist. `err` 0, here and below: only the
	 * connection ends, as agreed, and another one follows.
	 */
	void (*peer_failing)(struct core_peer *peer, int err);
	/* A peer has failed: it has no channel, and its operations have ended. */
	void (*peer_failed)(struct core_peer *peer, int err);
	/* Sets *number to that of the oldest receive that only this peer can end, if any. */
	void (*peer_awaited)(const struct core_peer *peer, uint64_t *number);
	/* A channel is about to be closed or stopped. */
	void (*chan_down)(struct core_ep *ep, struct core_chan *chan);
	/* The channel of a failed peer is closed: no device moves bytes of gets any more. */
	void (*peer_closed)(struct core_peer *peer);
	/*
	 * `alias`, which has no channel and is freed next, is another address of `peer`, which is
	 * up.
	 */
	void (*peer_merged)(struct core_peer *alias, struct core_peer *peer);
	/* A peer is about to be freed. */
	void (*peer_free)(struct core_peer *peer);
	/* Ends exposures of a region: the revocable ones, or `all`. */
	void (*mr_revoke)(struct core_mr *mr, bool all);
};

#define CORE_MODULE_CNT 6

extern const struct core_module core_modules[CORE_MODULE_CNT];

/** Calls a hook of all modules, in the order of the table. */
#define CORE_MODULES_CALL(hook, ...)                                                               \
	do {                                                                                       \
		for (size_t call_at = 0; call_at < CORE_MODULE_CNT; call_at++)                     \
			if (core_modules[call_at].hook)                                            \
				core_modules[call_at].hook(__VA_ARGS__);                           \
	} while (0)

#endif
