/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What carries the connections of an engine? THE LANE CONTRACT: one device and the loop over it.
 *
 * An engine has one transport per path that it offers. A connection belongs to the transport of the path that
 * its handshake took, from prepare to free. An engine knows a transport by its table alone; a transport embeds
 * struct eng_transport first, in the room that the engine has for it.
 *
 *   open -> { prepare -> establish -> attach -> poll, flush ... -> drain -> end -> stop -> free } -> close
 *
 * prepare and establish run in the control thread (with cm's mutex: they must not block, nor call
 * cm), everything else runs under the domain's lock; open and close alone. A transport without an
 * attached connection is polled only before somebody sleeps: what came for a connection before its
 * attach must be there then. free may come at any time after prepare, stop comes before it, drain
 * and end only after attach.
 *
 * Shown by test/unit/engine.
 */
#ifndef ENG_TRANSPORT_H
#define ENG_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/core_chan.h"
#include "dev/dev.h"

#define ENG_TRANSPORTS_MAX 4u
#define ENG_TRANSPORT_SPACE                                                                        \
	256u /* bytes that a transport may have, struct eng_transport included */

struct cm_params;
struct eng_conn;
struct eng_transport;

struct eng_transport_ops {
	uint32_t path; /* the bit of WIRE_CM_PATH_* that its connections take */
	const char *name;
	/* As dev_ops.probe: quick and silent. NULL: always there. */
	int (*probe)(struct dev_about *about);
	/* 0, or -FI_E* as dev_ops.open. */
	int (*open)(struct eng_transport *transport);
	void (*close)(struct eng_transport *transport);
	/*
	 * Something of its own per endpoint, before the first prepare for it, in the control
	 * thread; `addr`: the endpoint's, concrete. NULL: nothing. Then every connection's
	 * eep->port[] of this transport is what it gave (eng_transport_ep). ep_close: all of them are freed.
	 */
	int (*ep_open)(struct eng_transport *transport, struct core_engine_ep *eep,
		       const struct sockaddr *addr, void **port);
	void (*ep_close)(struct eng_transport *transport, void *port);
	/*
	 * Makes a connection, zeroed beyond what it sets itself, and our half of it (engine bytes and
	 * dev; path is set). The engine fills in struct eng_conn behind it, chan.ops aside. 0, or
	 * -FI_E* as cm_ep_ops.prepare; logged if it is worth it.
	 */
	int (*prepare)(struct eng_transport *transport, struct core_engine_ep *eep,
		       struct cm_params *params, struct eng_conn **conn);
	/*
	 * What our half says depends on where the peer is: behind prepare, before the half leaves.
	 * NULL: it does not.
	 */
	void (*aim)(struct eng_conn *conn, const struct sockaddr *peer, struct cm_params *params);
	/* The peer's half: validates it all. 0 or -FI_E*: the peer is refused with it. */
	int (*establish)(struct eng_conn *conn, const struct cm_params *peer);
	/* From now on it is polled: 0 or -FI_E*. on_up follows. */
	int (*attach)(struct eng_conn *conn);
	/* Has it ever heard of the peer? NULL: that is not known. */
	bool (*has_received)(const struct eng_conn *conn);
	/*
	 * When was the peer heard last, by util_clock_ns; 0: never. NULL: that is not known. In the control
	 * thread, beside whatever progress does.
	 */
	uint64_t (*heard)(const struct eng_conn *conn);
	/*
	 * Makes the up-calls for all that has arrived from the peer: it is gone, or will not be heard any
	 * more. One that goes on sending does not keep it from returning.
	 */
	void (*drain)(struct eng_conn *conn);
	/*
	 * conn->err is set: nothing more is sent or taken in, the device lets go of memory that
	 * is not its own, what is open ends with the error. on_down follows.
	 */
	void (*end)(struct eng_conn *conn);
	/*
	 * Everything goes but memory that is held; no up-call any more. What was accepted was flushed
	 * before, unless conn->err. Once.
	 */
	void (*stop)(struct eng_conn *conn);
	/* The memory goes, too. */
	void (*free)(struct eng_conn *conn);
	/* Takes in a bounded part of what arrived: true if there may be more. */
	bool (*poll)(struct eng_transport *transport);
	/* Lets go what waits, and asks what has to be asked. */
	void (*flush)(struct eng_transport *transport);
	/* poll, and flush. NULL: one after the other. */
	void (*progress)(struct eng_transport *transport);
	/* As in dev_ops. arm: -FI_EAGAIN also while flush has something to do. */
	int (*wait_fd)(struct eng_transport *transport);
	int (*arm)(struct eng_transport *transport);
	void (*disarm)(struct eng_transport *transport);
};

struct eng_transport {
	const struct eng_transport_ops *ops;
	struct core_engine *engine;
	uint32_t conn_cnt; /* attached and not freed */
};

union eng_transport_space {
	struct eng_transport transport; /* first */
	uint64_t bytes[ENG_TRANSPORT_SPACE / 8];
};

/** The transports that an engine is opened with, best first; of one path the first that opens is taken. */
struct eng_transports {
	uint32_t cnt;
	const struct eng_transport_ops *ops[ENG_TRANSPORTS_MAX];
};

#endif
