/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device numbers in memory: most significant byte first, at any alignment.
 *
 * Every access to a field of a WQE, a CQE, an address vector or a doorbell record uses these
 * functions. The model lays no struct over device memory, so that a field's offset is written once.
 */
#ifndef NIC_BE_H
#define NIC_BE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t nic_be16_get(const void *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return be16toh(value);
}

static inline uint32_t nic_be32_get(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return be32toh(value);
}

static inline uint64_t nic_be64_get(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return be64toh(value);
}

static inline void nic_be16_put(void *at, uint16_t value)
{
	value = htobe16(value);
	memcpy(at, &value, sizeof(value));
}

static inline void nic_be32_put(void *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
}

static inline void nic_be64_put(void *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
}

/* Reads a doorbell record: one word that software writes while the device reads. */
static inline uint32_t nic_record_get(const uint32_t *record)
{
	return be32toh(__atomic_load_n(record, __ATOMIC_ACQUIRE));
}

#endif
