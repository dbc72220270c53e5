/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does one end of a link tell the other, through the handshake?
 *
 * 64 bytes and three descriptors. Both ends are on one host, so its byte order serves. Whatever
 * comes from a peer is checked in full before any of it is used: a refusal is -FI_EINVAL and a line
 * in the log.
 *
 * Shown by test/unit/dev/shm/test_shm_desc.c.
 */
#ifndef SHM_DESC_H
#define SHM_DESC_H

#include <assert.h>
#include <stdint.h>

#include "dev/dev.h"

#define SHM_DESC_MAGIC   0x6d687370u /* "pshm" */
#define SHM_DESC_VERSION 1u

enum shm_desc_flag {
	SHM_DESC_MEMBARRIER = 1 << 0, /* this reader can do its writers' fences */
};

/** Positions in dev_desc.fds. */
enum shm_desc_fd {
	SHM_FD_SEG,   /* control page and ring */
	SHM_FD_INBOX, /* of the device */
	SHM_FD_BELL,  /* of the device */
	SHM_FD_CNT,
};

struct shm_desc {
	uint32_t magic;
	uint16_t version;
	uint16_t flags;
	uint64_t rx_len;  /* bytes of the ring */
	uint32_t link_id; /* the bit to set in the inbox */
	int32_t pid;
	uint64_t nonce_addr; /* where process_vm_readv finds nonce */
	uint64_t nonce[2];
	uint64_t reserved[2]; /* 0 */
};

static_assert(sizeof(struct shm_desc) == 64, "format");
static_assert(sizeof(struct shm_desc) <= DEV_DESC_MAX && SHM_FD_CNT <= DEV_DESC_FDS, "fits");

struct shm_link;

/** Our half. Descriptors are duplicates: 0 or -FI_EMFILE. */
int shm_desc_fill(const struct shm_link *link, struct dev_desc *desc);

/** Copies the peer's half out and checks bytes and descriptors: 0 or -FI_EINVAL. */
int shm_desc_parse(const struct dev_desc *desc, struct shm_desc *out);

#endif
