/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who attacks: a UDP socket that knows the formats of the wire, and what it was told.
 */
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
	uint64_t inc; /* its incarnation */
	bool is_mute; /* says nothing after WELCOME */
	/* What it heard. */
	struct wire_cm_pkt ack;         /* an invitation; src_inc 0: none */
	struct wire_cm_pkt req;         /* a request of somebody's; src_inc 0: none */
	struct wire_erpc_params params; /* the session that it got; token 0: none */
	struct sockaddr_in port;        /* and where packets for it go */
};

/** A new one, at a port that nobody has; whatever it was before stays as it is. */
void foe_open(struct foe *foe, const char *ip, uint64_t nonce);
/** Nobody is there any more, and nobody says so. */
void foe_vanish(struct foe *foe);
/** At the same address somebody else, who knows nothing of the one before. */
void foe_restart(struct foe *foe, uint64_t nonce);
void foe_send(const struct foe *foe, const struct sockaddr_in *to, const void *buf, size_t len);

/** May I? */
void foe_ask(const struct foe *foe, const struct sockaddr_in *to);
/** Here I am, with this cookie. */
void foe_hello(const struct foe *foe, const struct sockaddr_in *to, const uint8_t *cookie);
/** Come, to who has asked; no more will follow. */
void foe_invite(const struct foe *foe, const struct sockaddr_in *to);

/** Takes in what has come, and answers WELCOME unless it is mute. */
void foe_listen(struct foe *foe, const struct sockaddr_in *to);

#endif
