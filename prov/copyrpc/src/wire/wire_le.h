/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Little-endian numbers at unaligned addresses. Tested by test/unit/wire/test_wire_le.c. */
#ifndef WIRE_WIRE_LE_H
#define WIRE_WIRE_LE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void wire_put16(uint8_t *at, uint16_t v)
{
	v = htole16(v);
	memcpy(at, &v, sizeof(v));
}

static inline void wire_put32(uint8_t *at, uint32_t v)
{
	v = htole32(v);
	memcpy(at, &v, sizeof(v));
}

static inline void wire_put64(uint8_t *at, uint64_t v)
{
	v = htole64(v);
	memcpy(at, &v, sizeof(v));
}

static inline uint16_t wire_get16(const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return le16toh(v);
}

static inline uint32_t wire_get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return le32toh(v);
}

static inline uint64_t wire_get64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return le64toh(v);
}

static inline bool wire_is_zero(const uint8_t *at, size_t len)
{
	uint8_t all = 0;

	for (size_t i = 0; i < len; i++)
		all |= at[i];
	return !all;
}

#endif
