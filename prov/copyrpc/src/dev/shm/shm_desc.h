/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Description of one end of a link, exchanged by the handshake. Called by shm_link.c.
 *
 * 64 bytes in host byte order and three descriptors. Everything that a peer sends is validated
 * before any of it is used: a malformed description is -FI_EINVAL and a log line.
 */
#ifndef DEV_SHM_SHM_DESC_H
#define DEV_SHM_SHM_DESC_H

#include <assert.h>
#include <stdint.h>

#include "dev/dev.h"

#define SHM_DESC_MAGIC   0x6d687370u /* "pshm" */
#define SHM_DESC_VERSION 3u

enum shm_desc_flag {
	SHM_DESC_MEMBARRIER = 1 << 0, /* this reader executes its writers' fences (membarrier) */
};

/** Positions in dev_desc.fds. */
enum shm_desc_fd {
	SHM_FD_SEG,   /* control page and ring */
	SHM_FD_INBOX, /* inbox of the device */
	SHM_FD_BELL,  /* bell of the device: the shared end of a pair of sockets */
	SHM_FD_CNT,
};

struct shm_desc {
	uint32_t magic;
	uint16_t version;
	uint16_t flags;
	uint64_t rx_len;     /* bytes of the ring */
	uint32_t link_id;    /* bit in the inbox */
	int32_t pid;         /* the peer's own word, which nothing uses: see dev_desc.pid */
	uint64_t nonce_addr; /* address of nonce for process_vm_readv */
	uint64_t nonce[2];
	uint64_t reserved[2]; /* 0 */
};

static_assert(sizeof(struct shm_desc) == 64, "format");
static_assert(sizeof(struct shm_desc) <= DEV_DESC_MAX && SHM_FD_CNT <= DEV_DESC_FDS, "fits");

struct shm_link;

/**
 * Fills in the local half, with desc->pid for a peer that gets the struct and no stream.
 * Descriptors are duplicates. Returns 0 or -FI_EMFILE.
 */
int shm_desc_fill(const struct shm_link *link, struct dev_desc *desc);

/** Copies the peer's half, checks bytes and descriptors. Returns 0 or -FI_EINVAL. */
int shm_desc_parse(const struct dev_desc *desc, struct shm_desc *out);

#endif
