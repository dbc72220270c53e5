/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Message contents that identify the message, and buffers that detect writes outside their bounds.
 *
 * Every message has a key; its bytes follow from the key and the position. A buffer has a guard on
 * either side: ft_buf_check() finds any write outside.
 */
#ifndef FT_DATA_H
#define FT_DATA_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ft.h"

#define FT_GUARD 64

static inline uint8_t ft_byte(uint32_t key, size_t pos)
{
	uint32_t x = key * 2654435761u + (uint32_t)pos * 40503u;

	return (uint8_t)(x >> 13 ^ x >> 24);
}

static inline void ft_fill(void *buf, size_t len, uint32_t key)
{
	uint8_t *bytes = buf;

	for (size_t i = 0; i < len; i++)
		bytes[i] = ft_byte(key, i);
}

/**
 * Returns the position of the first byte that does not match the key, or -1. `from`: position of
 * buf[0].
 */
static inline long ft_wrong_from(const void *buf, size_t len, uint32_t key, size_t from)
{
	const uint8_t *bytes = buf;

	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != ft_byte(key, from + i))
			return (long)i;
	}
	return -1;
}

static inline long ft_wrong(const void *buf, size_t len, uint32_t key)
{
	return ft_wrong_from(buf, len, key, 0);
}

/** Allocates a page-aligned buffer with a guard before and behind; filled with 0xEE. */
static inline uint8_t *ft_buf_new(size_t len)
{
	uint8_t *mem = malloc(len + 2 * FT_GUARD);

	FT_CHECK(mem, "out of memory");
	memset(mem, 0xEE, len + 2 * FT_GUARD);
	return mem + FT_GUARD;
}

/** Checks that nothing but the first `written` bytes of a new buffer of `len` has changed. */
static inline void ft_buf_check(const uint8_t *buf, size_t len, size_t written)
{
	for (size_t i = 0; i < FT_GUARD; i++)
		FT_CHECK(buf[-1 - (long)i] == 0xEE, "written %zu bytes before a buffer", i + 1);
	for (size_t i = written; i < len + FT_GUARD; i++)
		FT_CHECK(buf[i] == 0xEE, "byte %zu of a buffer is written: %zu arrived, it has %zu",
			 i, written, len);
}

static inline void ft_buf_free(uint8_t *buf)
{
	free(buf - FT_GUARD);
}

#endif
