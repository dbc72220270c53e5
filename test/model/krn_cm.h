/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdma_cm: what an open /dev/infiniband/rdma_cm is, as far as connections of RC queue pairs need
 * it.
 *
 * A descriptor is an event channel (krn_chan.h) whose events are indices of segment->cm_event.
 * Identifiers lie in the segment, so that one end puts events into the channel of the other; there
 * are no packets and no daemon. All IP addresses of the host belong to the node of the process that
 * asks; a listener is found by its port. Commands are structs of the kernel's rdma_user_cm.h; those
 * of AF_IB are refused, so that librdmacm uses the ones with IP addresses.
 */
#ifndef KRN_CM_H
#define KRN_CM_H

#include "model/mdl_objects.h"

#include <stddef.h>
#include <sys/types.h>

/* A descriptor, or -1 and errno. */
int krn_cm_open(int flags);
/* What write() returns: size, or -errno. index is the number of the channel. */
ssize_t krn_cm_write(int fd, uint32_t index, const void *from, size_t size);
void krn_cm_close(uint32_t index);
/* Tells live ends that the other process died; when to come again, as nic_service() says it. */
uint64_t krn_cm_service(uint64_t now_ns);

/* ---- between the krn_cm*.c */

/* One command: the struct that came, zero beyond it, and the room for the response. */
struct krn_cm_cmd {
	int fd;
	uint32_t chan;
	const void *in;
	uint32_t out_len;
};

/*
 * The identifier with that number if it is this process's, else null. cm_lock is held from here on.
 */
struct mdl_cm_id *krn_cm_own(uint32_t number);
struct mdl_cm_id *krn_cm_find(uint32_t number);
/* A response, cut to the room that the program has. */
void krn_cm_reply(const struct krn_cm_cmd *cmd, uint64_t to, const void *from, size_t len);

struct rdma_ucm_conn_param;
/*
 * An event for an identifier of any process; about: whose count it belongs to (the identifier, or
 * its listener).
 */
void krn_cm_event(const struct mdl_cm_id *to, uint32_t number, const struct mdl_cm_id *about,
		  uint32_t event, int32_t status, const struct rdma_ucm_conn_param *param);
/* A new identifier in a channel of a process, or null. */
struct mdl_cm_id *krn_cm_new(uint32_t proc, uint32_t chan, uint32_t *number);
/* How long a disconnect request is under way, at least and at most. */
#define KRN_CM_WIRE_NS     10000000ull
#define KRN_CM_PATIENCE_NS 1000000000ull
/* Tells the program that the other end hung up, when it is time; when to come again. */
uint64_t krn_cm_tell(struct mdl_cm_id *id, uint64_t now_ns);
/* Ends what the identifier is part of: the other end learns it. */
void krn_cm_hang_up(struct mdl_cm_id *id);

int krn_cm_create_id(struct krn_cm_cmd *cmd);
int krn_cm_destroy_id(struct krn_cm_cmd *cmd);
int krn_cm_migrate_id(struct krn_cm_cmd *cmd);
int krn_cm_get_event(struct krn_cm_cmd *cmd);
int krn_cm_bind_ip(struct krn_cm_cmd *cmd);
int krn_cm_resolve_ip(struct krn_cm_cmd *cmd);
int krn_cm_resolve_route(struct krn_cm_cmd *cmd);
int krn_cm_query_route(struct krn_cm_cmd *cmd);
int krn_cm_init_qp_attr(struct krn_cm_cmd *cmd);
int krn_cm_listen(struct krn_cm_cmd *cmd);
int krn_cm_connect(struct krn_cm_cmd *cmd);
int krn_cm_accept(struct krn_cm_cmd *cmd);
int krn_cm_reject(struct krn_cm_cmd *cmd);
int krn_cm_disconnect(struct krn_cm_cmd *cmd);
int krn_cm_ignore(struct krn_cm_cmd *cmd);

#endif /* KRN_CM_H */
