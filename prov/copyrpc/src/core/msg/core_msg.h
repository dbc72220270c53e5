/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messaging's part of an endpoint: matchers and pools. Hooks of core_module.h, and core_srx.c. */
#ifndef CORE_MSG_CORE_MSG_H
#define CORE_MSG_CORE_MSG_H

#include <stdint.h>

struct core_ep;
struct core_peer;

/** Returns 0 or -FI_ENOMEM. */
int core_msg_ep_open(struct core_ep *ep);
/** Leaves the shared receive context, and drops messages and receives without completions. */
void core_msg_ep_stop(struct core_ep *ep);
void core_msg_ep_close(struct core_ep *ep);
/** Writes the lengths of the matching queues to the endpoint's row in the statistics page. */
void core_msg_ep_show(struct core_ep *ep);
void core_msg_peer_awaited(const struct core_peer *peer, uint64_t *number);

#endif
