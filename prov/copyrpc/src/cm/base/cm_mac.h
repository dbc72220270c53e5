/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does the sender know the job's key, and is the stranger where he says?
 *
 * MAC: keyed BLAKE2b (libsodium's crypto_generichash) over who speaks, to whom, and every byte of
 * the packet before the MAC. With the addresses in it a packet cannot be sent back to its author
 * or on to a third. Without a key the field is zero, and a packet that has one is refused: both
 * ends have the key or neither.
 *
 * Cookie: a keyed hash of the stranger's address, incarnation and nonce under a secret that never leaves
 * the agent, and of the half minute: whoever shows it has received at that address what we
 * sent there just now, and we kept nothing meanwhile.
 *
 * Pure but for random; cm_mac_init once before. Shown by test/unit/cm/base/test_cm_mac.c.
 */
#ifndef CM_CM_MAC_H
#define CM_CM_MAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"

#define CM_MAC_KEY_LEN 32u

/** Half a minute: a cookie is good for one to two of these. */
#define CM_COOKIE_TICK_NS 30000000000ull

struct cm_mac_key {
	bool is_set;
	uint8_t bytes[CM_MAC_KEY_LEN];
};

/** Makes the library ready: 0, or -FI_ENOSYS. Any number of times, from any thread. */
int cm_mac_init(void);

/** `job_key`: any text; NULL or empty: no key. All of it counts. */
void cm_mac_key_set(struct cm_mac_key *key, const char *job_key);
void cm_mac_key_wipe(struct cm_mac_key *key);

/** Fills in the MAC of an encoded packet from `src` to `dst`. */
void cm_mac_seal(const struct cm_mac_key *key, const union cm_addr *src, const union cm_addr *dst,
		 uint8_t *buf, size_t len);
/** Is it the right one? Takes the same time for every wrong one. */
bool cm_mac_check(const struct cm_mac_key *key, const union cm_addr *src, const union cm_addr *dst,
		  const uint8_t *buf, size_t len);

struct cm_cookie_jar {
	uint8_t secret[CM_MAC_KEY_LEN];
};

void cm_cookie_init(struct cm_cookie_jar *jar);
void cm_cookie_make(const struct cm_cookie_jar *jar, const union cm_addr *addr, uint64_t inc,
		    uint64_t nonce, uint64_t now_ns, uint8_t cookie[WIRE_CM_COOKIE_LEN]);
bool cm_cookie_check(const struct cm_cookie_jar *jar, const union cm_addr *addr, uint64_t inc,
		     uint64_t nonce, uint64_t now_ns, const uint8_t cookie[WIRE_CM_COOKIE_LEN]);

/** 64 random bits, never 0. */
uint64_t cm_mac_random(void);
/** A number below `bound`. */
uint32_t cm_mac_random_below(uint32_t bound);
/** `len` - 1 random hexadecimal digits and a terminator. */
void cm_mac_random_name(char *name, size_t len);

/** Keyed hash for tables that strangers can fill. */
uint64_t cm_mac_table_hash(const struct cm_cookie_jar *jar, const union cm_addr *addr);

#endif
