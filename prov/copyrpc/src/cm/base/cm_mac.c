/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Keyed hashes of packets and addresses, with libsodium: see cm_mac.h. */
#include "cm/base/cm_mac.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <sodium.h>
#include <string.h>

static_assert(CM_MAC_KEY_LEN >= crypto_generichash_KEYBYTES_MIN &&
		      CM_MAC_KEY_LEN <= crypto_generichash_KEYBYTES_MAX,
	      "the key fits the hash");
static_assert(CM_MAC_KEY_LEN == crypto_shorthash_KEYBYTES + crypto_shorthash_siphashx24_KEYBYTES,
	      "the secret is a key for tables and one for cookies");
static_assert(WIRE_CM_COOKIE_LEN == crypto_shorthash_siphashx24_BYTES, "the hash fills a cookie");

/* Prefix of each hashed text, so that a value made for one use is invalid in another. */
static const char cm_mac_use_key[16] = "copyrpc-key-1";
static const char cm_mac_use_packet[16] = "copyrpc-packet1";
static const char cm_mac_use_plain[16] = "copyrpc-plain-1";

int cm_mac_init(void)
{
	return sodium_init() < 0 ? -FI_ENOSYS : 0;
}

void cm_mac_key_set(struct cm_mac_key *key, const char *job_key)
{
	crypto_generichash_state st;

	memset(key, 0, sizeof(*key));
	if (!job_key || !*job_key)
		return;
	crypto_generichash_init(&st, NULL, 0, sizeof(key->bytes));
	crypto_generichash_update(&st, (const uint8_t *)cm_mac_use_key, sizeof(cm_mac_use_key));
	crypto_generichash_update(&st, (const uint8_t *)job_key, strlen(job_key));
	crypto_generichash_final(&st, key->bytes, sizeof(key->bytes));
	key->is_set = true;
}

void cm_mac_key_wipe(struct cm_mac_key *key)
{
	sodium_memzero(key, sizeof(*key));
}

/* Writes an address without its interface index, which differs between the ends. */
static void cm_mac_write_addr(const union cm_addr *addr, uint8_t bytes[WIRE_CM_ADDR_LEN])
{
	struct wire_cm_addr wire;

	cm_addr_to_wire(addr, &wire);
	wire.scope = 0;
	wire_cm_addr_encode(&wire, bytes);
}

static void cm_mac_add_addr(crypto_generichash_state *st, const union cm_addr *addr)
{
	uint8_t bytes[WIRE_CM_ADDR_LEN];

	cm_mac_write_addr(addr, bytes);
	crypto_generichash_update(st, bytes, sizeof(bytes));
}

/** Writes the digest of a packet without a key: it detects damage, not forgery. */
static void cm_mac_digest(const uint8_t *buf, size_t len, uint8_t *mac)
{
	crypto_generichash_state st;

	crypto_generichash_init(&st, NULL, 0, WIRE_CM_MAC_LEN);
	crypto_generichash_update(&st, (const uint8_t *)cm_mac_use_plain, sizeof(cm_mac_use_plain));
	crypto_generichash_update(&st, buf, len - WIRE_CM_MAC_LEN);
	crypto_generichash_final(&st, mac, WIRE_CM_MAC_LEN);
}

static void cm_mac_compute(const struct cm_mac_key *key, const union cm_addr *src,
			   const union cm_addr *dst, const uint8_t *buf, size_t len, uint8_t *mac)
{
	crypto_generichash_state st;

	if (!key->is_set) {
		cm_mac_digest(buf, len, mac);
		return;
	}
	crypto_generichash_init(&st, key->bytes, sizeof(key->bytes), WIRE_CM_MAC_LEN);
	crypto_generichash_update(&st, (const uint8_t *)cm_mac_use_packet,
				  sizeof(cm_mac_use_packet));
	cm_mac_add_addr(&st, src);
	cm_mac_add_addr(&st, dst);
	crypto_generichash_update(&st, buf, len - WIRE_CM_MAC_LEN);
	crypto_generichash_final(&st, mac, WIRE_CM_MAC_LEN);
}

void cm_mac_seal(const struct cm_mac_key *key, const union cm_addr *src, const union cm_addr *dst,
		 uint8_t *buf, size_t len)
{
	cm_mac_compute(key, src, dst, buf, len, buf + len - WIRE_CM_MAC_LEN);
}

bool cm_mac_check(const struct cm_mac_key *key, const union cm_addr *src, const union cm_addr *dst,
		  const uint8_t *buf, size_t len)
{
	uint8_t mac[WIRE_CM_MAC_LEN];

	cm_mac_compute(key, src, dst, buf, len, mac);
	return !sodium_memcmp(mac, buf + len - WIRE_CM_MAC_LEN, WIRE_CM_MAC_LEN);
}

void cm_cookie_init(struct cm_cookie_jar *jar)
{
	randombytes_buf(jar->secret, sizeof(jar->secret));
	jar->era = 0;
}

void cm_cookie_renew(struct cm_cookie_jar *jar)
{
	jar->era++;
}

static void cm_cookie_compute(const struct cm_cookie_jar *jar, const union cm_addr *addr,
			      uint64_t inc, uint64_t nonce, uint64_t tick, uint8_t *cookie)
{
	struct {
		uint8_t addr[WIRE_CM_ADDR_LEN];
		uint64_t inc, nonce, tick, era;
	} text = { .inc = inc, .nonce = nonce, .tick = tick, .era = jar->era };

	cm_mac_write_addr(addr, text.addr);
	crypto_shorthash_siphashx24(cookie, (const uint8_t *)&text, sizeof(text),
				    jar->secret + crypto_shorthash_KEYBYTES);
}

void cm_cookie_make(const struct cm_cookie_jar *jar, const union cm_addr *addr, uint64_t inc,
		    uint64_t nonce, uint64_t now_ns, uint8_t cookie[WIRE_CM_COOKIE_LEN])
{
	cm_cookie_compute(jar, addr, inc, nonce, now_ns / CM_COOKIE_TICK_NS, cookie);
}

bool cm_cookie_check(const struct cm_cookie_jar *jar, const union cm_addr *addr, uint64_t inc,
		     uint64_t nonce, uint64_t now_ns, const uint8_t cookie[WIRE_CM_COOKIE_LEN])
{
	uint64_t tick = now_ns / CM_COOKIE_TICK_NS;
	uint8_t good[WIRE_CM_COOKIE_LEN];

	for (unsigned age = 0; age < 2; age++) {
		cm_cookie_compute(jar, addr, inc, nonce, tick - age, good);
		if (!sodium_memcmp(good, cookie, sizeof(good)))
			return true;
	}
	return false;
}

uint64_t cm_mac_random(void)
{
	uint64_t v = 0;

	while (!v)
		randombytes_buf(&v, sizeof(v));
	return v;
}

uint32_t cm_mac_random_below(uint32_t bound)
{
	return randombytes_uniform(bound);
}

void cm_mac_random_name(char *name, size_t len)
{
	uint8_t raw[64];

	assert(len % 2 == 1 && len / 2 <= sizeof(raw));
	randombytes_buf(raw, len / 2);
	sodium_bin2hex(name, len, raw, len / 2);
}

uint64_t cm_mac_table_hash(const struct cm_cookie_jar *jar, const union cm_addr *addr)
{
	uint64_t hash;

	crypto_shorthash((uint8_t *)&hash, (const uint8_t *)addr, sizeof(*addr), jar->secret);
	return hash;
}

uint64_t cm_mac_attempt_hash(const struct cm_cookie_jar *jar, const union cm_addr *addr,
			     uint64_t inc, uint64_t nonce)
{
	struct {
		uint64_t inc;
		uint64_t nonce;
		union cm_addr addr;
	} attempt;
	uint64_t hash;

	memset(&attempt, 0, sizeof(attempt));
	attempt.inc = inc;
	attempt.nonce = nonce;
	attempt.addr = *addr;
	crypto_shorthash((uint8_t *)&hash, (const uint8_t *)&attempt, sizeof(attempt), jar->secret);
	return hash;
}
