/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lines of text between --probe and --listen, over TCP.
 *
 *	listener    copyrpc_info 1 VERSION NONCE
 *	prober      copyrpc_info 1 VERSION NONCE PROOF PATH
 *	listener    key same | key differ
 *	both        name ADDRESS MTU | fail ERROR STEP
 *
 * NONCE, PROOF and ADDRESS are hexadecimal. PROOF is a keyed hash of both nonces, or "-" without a
 * job key; the key itself is never sent. The listener proves nothing to a prober without the key.
 * Lines are short, and everything in them is checked, since any program may connect.
 */
#ifndef INFO_INFO_TALK_H
#define INFO_INFO_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INFO_TALK_LINE  512u
#define INFO_TALK_NONCE 16u
#define INFO_TALK_PROOF 16u
#define INFO_TALK_HEX   (2u * INFO_TALK_NONCE + 1u)

struct info_talk {
	int fd;
	char version[32];              /* of the other end */
	char path[8];                  /* requested by the prober */
	char nonces[2][INFO_TALK_HEX]; /* of the listener, of the prober */
};

/** Greets as the listener; fills version and path. Returns 0, -EPROTO, or -EACCES: keys differ. */
int info_talk_listen(struct info_talk *talk, const char *key);

/** Greets as the prober, for `path`. Returns the same. */
int info_talk_probe(struct info_talk *talk, const char *key, const char *path);

/** Sends a line. Returns 0 or -EPROTO. */
int info_talk_send(struct info_talk *talk, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Receives a line, without its end. Returns 0 or -EPROTO. */
int info_talk_recv(struct info_talk *talk, char line[INFO_TALK_LINE]);

/** Prints the proof of a key (NULL or empty: "-") for two nonces. */
void info_talk_prove(const char *key, char (*nonces)[INFO_TALK_HEX],
		     char proof[2 * INFO_TALK_PROOF + 1]);

/** Reads exactly `len` bytes in hexadecimal. Returns false if the text is anything else. */
bool info_talk_unhex(const char *text, uint8_t *bytes, size_t len);

#endif
