/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages for a fuzzer of core's handlers that have the form of legal ones (wire/wire_op.h), with
 * numbers of a script. Used by fuzz_core_rx.c.
 */
#ifndef FUZZ_CORE_FORGE_H
#define FUZZ_CORE_FORGE_H

#include <stdint.h>

#include "fuzz/script.h"

#define FORGE_MAX 512u /* bytes of a body */
#define FORGE_KEY 7u   /* of the region that peers may access */

/** Group of which the endpoint is a member. */
extern uint64_t forge_group;

/** Forged message: operation with its flags, and body. */
struct forged {
	uint32_t op;
	uint32_t len;
	uint8_t body[FORGE_MAX]; /* without the operation word */
};

/** Each makes one of the forms that the script selects. Fields repeat bytes of `echo`, of 64. */
void forge_msg(struct script *script, const uint8_t *echo, struct forged *out);
void forge_call(struct script *script, const uint8_t *echo, struct forged *out);
/** Makes the body of a response. */
void forge_response(struct script *script, const uint8_t *echo, struct forged *out);

#endif
