/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdma_cm: the model of an open /dev/infiniband/rdma_cm, as far as connections of RC queue pairs
 * need it.
 *
 * A descriptor is an event channel (krn_chan.h) whose events are indices of segment->cm_event.
 * Identifiers are in the segment, so that one end puts events into the channel of the other; there
 * are no packets and no daemon. All IP addresses of the host belong to the node of the calling
 * process; a listener is found by its port. Commands are structs of the kernel's rdma_user_cm.h.
 * Those of AF_IB are refused, so that librdmacm uses those with IP addresses.
 */
#ifndef KRN_CM_H
#define KRN_CM_H

#include "model/fabric/mdl_objects.h"

#include <stddef.h>
#include <sys/types.h>

/* Opens a descriptor. Returns -1 with errno on failure. */
int krn_cm_open(int flags);
/* Executes write(). Returns size or -errno. index is the number of the channel. */
ssize_t krn_cm_write(int fd, uint32_t index, const void *from, size_t size);
void krn_cm_close(uint32_t index);
/*
 * Notifies live ends of the death of the other process. Returns the time of the next call, as
 * nic_service() does.
 */
uint64_t krn_cm_service(uint64_t now_ns);

/* ---- between the krn_cm*.c ---- */

/* Command: the struct written by the program, padded with zeros, and the space for the response. */
struct krn_cm_cmd {
	int fd;
	uint32_t chan;
	const void *in;
	uint32_t out_len;
};

/*
 * Returns the identifier with that number if this process owns it, else null. cm_lock is held after
 * the return.
 */
struct mdl_cm_id *krn_cm_own(uint32_t number);
struct mdl_cm_id *krn_cm_find(uint32_t number);
/* Writes a response, cut to the space that the program provides. */
void krn_cm_reply(const struct krn_cm_cmd *cmd, uint64_t to, const void *from, size_t len);

struct rdma_ucm_conn_param;
/*
 * Raises an event for an identifier of any process. about: the identifier that counts the event
 * (this one or its listener).
 */
void krn_cm_event(const struct mdl_cm_id *to, uint32_t number, const struct mdl_cm_id *about,
		  uint32_t event, int32_t status, const struct rdma_ucm_conn_param *param);
/* Creates an identifier in a channel of a process. Returns null if there is no free entry. */
struct mdl_cm_id *krn_cm_new(uint32_t proc, uint32_t chan, uint32_t *number);
/* Minimum and maximum delay of a disconnect request. */
#define KRN_CM_WIRE_NS     10000000ull
#define KRN_CM_PATIENCE_NS 1000000000ull
/*
 * Raises the event of the other end's disconnect when it is due. Returns the time of the next call.
 */
uint64_t krn_cm_tell(struct mdl_cm_id *id, uint64_t now_ns);
/* Ends the connection of the identifier and notifies the other end. */
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
