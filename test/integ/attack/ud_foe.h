/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attacker: a UDP socket with the formats of the wire, a job key, and the packets it received. */
#ifndef INTEG_UD_FOE_H
#define INTEG_UD_FOE_H

#include <netinet/in.h>
#include <stdbool.h>

#include "wire/wire_cm.h"
#include "wire/wire_erpc_msg.h"

struct foe {
	int fd;
	struct sockaddr_in addr;
	uint64_t nonce;
	uint64_t inc; /* incarnation */
	bool is_mute; /* sends nothing after WELCOME */
	/* Received packets. */
	struct wire_cm_pkt ack;         /* an acknowledgement; src_inc 0: none */
	struct wire_cm_pkt req;         /* a connection request of a peer; src_inc 0: none */
	struct wire_erpc_params params; /* parameters of the session; token 0: none */
	struct sockaddr_in port;        /* address for its packets */
};

/** Sets the job key with which all of them seal their packets. */
void foe_set_key(const char *job_key);
/** Opens a new one, at an unused port; a previous one is left as it is. */
void foe_open(struct foe *foe, const char *ip, uint64_t nonce);
/** Closes the port without notice. */
void foe_vanish(struct foe *foe);
/** Replaces it by another one at the same address, without any state. */
void foe_restart(struct foe *foe, uint64_t nonce);
void foe_send(const struct foe *foe, const struct sockaddr_in *to, const void *buf, size_t len);

/** Sends a connection request. */
void foe_ask(const struct foe *foe, const struct sockaddr_in *to);
/** Sends HELLO with this cookie. */
void foe_hello(const struct foe *foe, const struct sockaddr_in *to, const uint8_t *cookie);
/** Replies to a connection request; no packet follows. */
void foe_invite(const struct foe *foe, const struct sockaddr_in *to);

/** Receives pending packets, and replies WELCOME unless it is mute. */
void foe_listen(struct foe *foe, const struct sockaddr_in *to);

#endif
