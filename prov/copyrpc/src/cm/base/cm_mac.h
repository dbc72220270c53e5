/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MACs, cookies and random numbers of the handshake.
 *
 * MAC: keyed BLAKE2b (libsodium's crypto_generichash) over the two addresses and every byte of the
 * packet before the MAC. The addresses keep a packet from being sent back to its sender or on to a
 * third party. Without a job key the MAC is an unkeyed digest of the packet: one that was altered
 * on its way is dropped, as is one of an end with a key. Both ends have the key, or neither.
 *
 * Cookie: keyed hash (SipHash) of the sender's address, incarnation and nonce and the current half
 * minute, under a secret of the CM endpoint. A valid cookie proves that the sender received our
 * ACK at that address, without any state here.
 *
 * Pure except for the random functions; call cm_mac_init first.
 */
#ifndef CM_BASE_CM_MAC_H
#define CM_BASE_CM_MAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"

#define CM_MAC_KEY_LEN 32u

/** Half a minute. A cookie is valid for one to two ticks. */
#define CM_COOKIE_TICK_NS 30000000000ull
#define CM_COOKIE_LIFE_NS (2 * CM_COOKIE_TICK_NS)

struct cm_mac_key {
	bool is_set;
	uint8_t bytes[CM_MAC_KEY_LEN];
};

/** Initialises the library. Returns 0 or -FI_ENOSYS. Callable repeatedly and from any thread. */
int cm_mac_init(void);

/** Derives the key from `job_key`, any text; NULL or empty: no key. */
void cm_mac_key_set(struct cm_mac_key *key, const char *job_key);
void cm_mac_key_wipe(struct cm_mac_key *key);

/** Writes the MAC of an encoded packet from `src` to `dst`. */
void cm_mac_seal(const struct cm_mac_key *key, const union cm_addr *src, const union cm_addr *dst,
		 uint8_t *buf, size_t len);
/** Returns whether the MAC is valid, in constant time. */
bool cm_mac_check(const struct cm_mac_key *key, const union cm_addr *src, const union cm_addr *dst,
		  const uint8_t *buf, size_t len);

struct cm_cookie_jar {
	uint8_t secret[CM_MAC_KEY_LEN];
	uint64_t era; /* times that all cookies were made invalid */
};

void cm_cookie_init(struct cm_cookie_jar *jar);
void cm_cookie_make(const struct cm_cookie_jar *jar, const union cm_addr *addr, uint64_t inc,
		    uint64_t nonce, uint64_t now_ns, uint8_t cookie[WIRE_CM_COOKIE_LEN]);
bool cm_cookie_check(const struct cm_cookie_jar *jar, const union cm_addr *addr, uint64_t inc,
		     uint64_t nonce, uint64_t now_ns, const uint8_t cookie[WIRE_CM_COOKIE_LEN]);

/** Makes all cookies of the jar invalid that were made so far. */
void cm_cookie_renew(struct cm_cookie_jar *jar);

/** Returns 64 random bits, never 0. */
uint64_t cm_mac_random(void);
/** Returns a random number below `bound`. */
uint32_t cm_mac_random_below(uint32_t bound);
/** Writes `len` - 1 random hexadecimal digits and a terminator. */
void cm_mac_random_name(char *name, size_t len);

/** Returns a keyed hash, so that senders cannot choose colliding addresses. */
uint64_t cm_mac_table_hash(const struct cm_cookie_jar *jar, const union cm_addr *addr);
/** Returns a keyed hash of an attempt of a peer. */
uint64_t cm_mac_attempt_hash(const struct cm_cookie_jar *jar, const union cm_addr *addr,
			     uint64_t inc, uint64_t nonce);

#endif
