/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device contract for links: implemented by shm, verbs and mlx5, called by the engine. Datagrams:
 * dgram.h.
 *
 * A link is reliable, ordered and one-sided. Bytes appended at tx_base of one end appear at the
 * same offsets of rx_base at the other end. Each write_imm yields one event there. Each of the two
 * rings has one writer and one reader. The reader allocates and sizes the ring.
 *
 *            engine appends            write_imm(off, len, imm)           poll -> {link, imm}
 *   tx_base [....#####......] ------------------------------------> rx_base [....#####......]
 *
 * Direct links (DEV_CAP_DIRECT): tx_base is the peer's ring, write_imm only signals. Other links:
 * tx_base is a local, registered send ring of the same size and write_imm moves the bytes.
 *
 * Life of a link: create (the local half) -> describe -> the handshake carries the description to
 * the peer -> connect -> attach (from here on poll returns events) -> detach -> close. create,
 * describe, connect and close may run in any thread. All other operations run in the polling
 * thread, which holds the domain's lock. The device keeps writes that arrive before attach.
 */
#ifndef DEV_DEV_H
#define DEV_DEV_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "util/list.h"

#define DEV_IMM_UNIT      32u
#define DEV_IMM_SHORT     0x80000000u /* the lower 16 bits count the units */
#define DEV_LINK_WORD_OFF 24u         /* Offset of the link word in the 32-byte head of a write. */
#define DEV_DESC_MAX      512u        /* Longest description in bytes. */
#define DEV_DESC_FDS      4u          /* Descriptors that go with it (shared memory only). */

#define DEV_GET_IOV_MAX 4u

struct dev;
struct dev_link;

/** Returns the units that an immediate counts. */
static inline uint32_t dev_imm_units(uint32_t imm)
{
	return imm & DEV_IMM_SHORT ? imm & 0xffff : imm;
}

enum dev_cap {
	DEV_CAP_DIRECT = 1 << 0, /* tx_base is the peer's memory */
	DEV_CAP_GET = 1 << 1,    /* get() works towards this peer; tested, not assumed */
	DEV_CAP_PUT = 1 << 2,    /* put() works towards this peer */
	DEV_CAP_DC = 1 << 3,     /* shared queue pairs carry it; changes with moves */
	DEV_CAP_MOVE = 1 << 4,   /* move() works towards this peer */
	/*
	 * Requested by the user before connect: a peer that is silent for DEV_BRIEF_MS ends the
	 * link, where the device can tell links apart, and not only one silent for PEER_TIMEOUT
	 */
	DEV_CAP_BRIEF = 1 << 5,
};

#define DEV_BRIEF_MS 1000u

enum dev_event_kind {
	DEV_EV_IMM,  /* a write arrived: imm */
	DEV_EV_READ, /* a read_consumer ended: value */
	DEV_EV_ACK,  /* the peer's device has a write_imm_ack and all writes before it */
	DEV_EV_GET,  /* a get or put ended: get->status is set */
	/* the first `value` simple accesses have ended; may be less than was reported */
	DEV_EV_ACCESS,
	/* nothing of the peer writes into local buffers any more; after withdraw returned false */
	DEV_EV_WITHDRAWN,
	/* the link failed: status. The device logged the cause. Last event of the link */
	DEV_EV_DOWN,
};

enum dev_mem_access {
	DEV_MEM_LOCAL = 1 << 0,        /* written by a local get, read by a local put */
	DEV_MEM_REMOTE_READ = 1 << 1,  /* peers may get it */
	DEV_MEM_REMOTE_WRITE = 1 << 2, /* peers may put into it */
};

/** Flags of a transfer. */
enum dev_get_flag {
	/* put: the bytes are copied before the return, mem is not used; len <= link->inline_max */
	DEV_GET_INLINE = 1 << 0,
	/* put: ends once the bytes are in the peer's memory, visible to its processor */
	DEV_GET_PLACED = 1 << 1,
	/* the device need not see the transfer before `kick` or the next post */
	DEV_GET_MORE = 1 << 2,
	/* -FI_EAGAIN unless all of the transfer is posted now, before later writes of the link */
	DEV_GET_NOW = 1 << 3,
};

/** Flags of a simple access. Bits as those of core, so that they need no translation. */
enum dev_access_flag {
	DEV_ACCESS_WRITE = 1 << 0,  /* to the peer's memory; else a read */
	DEV_ACCESS_MORE = 1 << 2,   /* equals DEV_GET_MORE */
	DEV_ACCESS_SILENT = 1 << 5, /* the end need not be reported, unless `settle` requests it */
};

/** Registered or exposed memory. Devices embed it first. */
struct dev_mem {
	/* For the peer's dev_get.remote_key. Below 2^32 where the device has open_beside */
	uint64_t remote_key;
};

/** Attributes of a NIC for fi_getinfo. Text is terminated. Empty or 0: unknown. */
struct dev_about {
	char name[64];    /* "mlx5_0" */
	char version[64]; /* of the firmware */
	char state[16];   /* "active" */
	char link[16];    /* "InfiniBand" or "Ethernet" */
	char addr[64];    /* GID or LID as text */
	char pci[16];     /* "0000:3b:00.0" */
	uint32_t vendor_id;
	uint32_t device_id;
	uint8_t gid[16]; /* of the port, as on the wire */
	uint16_t lid;    /* 0: Ethernet */
	uint64_t mtu;
	uint64_t speed; /* bits per second */
};

/**
 * Bulk transfer between the peer's memory and local buffers. Owned by the caller until it ends.
 * Where the device has mem_reg, both sides register: the exposing side with DEV_MEM_REMOTE_READ or
 * DEV_MEM_REMOTE_WRITE, and it sends remote_key; the side that starts the transfer fills mem.
 */
struct dev_get {
	uint64_t remote_addr;
	uint64_t remote_key;
	const struct iovec *iov; /* Local buffers in order; valid until the end. */
	size_t iov_cnt;
	/* Bytes to move, at most the length of iov. The device splits long transfers. */
	size_t len;
	int status;     /* result: 0 or -FI_E* */
	unsigned flags; /* enum dev_get_flag */
	void *user;
	struct util_list dev_link; /* Owned by the device until the end. */

	/* mem[i] covers iov[i]. Needed if the device has mem_reg. */
	struct dev_mem *mem[DEV_GET_IOV_MAX];
};

struct dev_event {
	struct dev_link *link;
	enum dev_event_kind kind;
	uint32_t imm;        /* DEV_EV_IMM */
	uint64_t value;      /* DEV_EV_READ: the peer's consumer word; DEV_EV_ACCESS: modulo 2^32 */
	struct dev_get *get; /* DEV_EV_GET */
	int status;          /* DEV_EV_DOWN: -FI_E* */
};

/** Description of one end, sent to the peer in the handshake. The holder of the struct owns fds. */
struct dev_desc {
	bool peer_moves; /* for describe: links to this peer may move (dev_link_ops.move) */
	uint32_t len;
	uint32_t fd_cnt;
	uint8_t bytes[DEV_DESC_MAX];
	int fds[DEV_DESC_FDS];
	/*
	 * for connect: process at the other end of the stream that the description came by, as the
	 * kernel names it (SO_PEERCRED); 0: unknown
	 */
	pid_t pid;
};

/**
 * Part of a link that the engine reads. Devices embed it first.
 *
 * In-band arrival (inband_len > 0): the device keeps a link word of eight bytes at offset 24 of the
 * 32-byte head of every write. It stores the immediate there last and clears the words of possible
 * next heads before. A poll is then one load of a line that also carries data. The engine writes
 * the first 24 bytes of a head, never the word, and nothing behind a write before its write_imm.
 * The inband_len bytes behind every write (modulo the ring) must be free, so the engine uses a ring
 * that is inband_len smaller. An immediate counts units of DEV_IMM_UNIT bytes from the head of this
 * write to the next head, modulo the ring.
 *
 * Without in-band arrival a write is a range of the ring, and its immediate counts units from its
 * head to the next one's: all 32 bits do, or the lower 16 if DEV_IMM_SHORT is set. Then bits 16 to
 * 30 are the engine's, and the range begins behind the head: 32 bytes that it does not use. A
 * device may write the link word of a head. An immediate of 0 arrives where the device could not
 * send it as one: it is the lower half of the link word of the head, little endian, and not 0.
 */
struct dev_link {
	const struct dev_link_ops *ops;
	uint8_t *tx_base;
	uint8_t *rx_base;
	uint64_t tx_len;     /* bytes of the peer's ring: a power of two */
	uint64_t rx_len;     /* bytes of the local ring */
	uint32_t inband_len; /* of tx_base, a multiple of DEV_IMM_UNIT; set by connect */
	uint32_t access_cnt; /* simple accesses accepted so far, modulo 2^32; counted by access() */
	/* Word that the peer reads with read_consumer: how far rx_base is released here. */
	uint64_t *consumer_word;
	void *user;          /* connection of the engine */
	uint32_t inline_max; /* most bytes of a put with DEV_GET_INLINE; changes with moves */
	uint32_t caps;       /* enum dev_cap */
};

static_assert(offsetof(struct dev_link, inline_max) == 64, "writes and arrivals need one line");

struct dev_link_ops {
	/*
	 * Makes [off, off + len) of tx_base visible in the peer's ring and signals imm, in order.
	 * The range never crosses the end of the ring. Returns 0, or -FI_EAGAIN if nothing was done
	 * (polling makes room). The bytes may be overwritten only after the peer released them.
	 */
	int (*write_imm)(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm);
	/*
	 * Like write_imm, and one DEV_EV_ACK follows, in order, when the peer's device has this
	 * write and all before it. NULL: direct links, where writes reach the peer at once.
	 */
	int (*write_imm_ack)(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm);
	/*
	 * Returns true if at present write_imm_ack costs the device no more than write_imm. NULL:
	 * it always costs a completion.
	 */
	bool (*acks_are_free)(const struct dev_link *link);
	/*
	 * Reads the peer's consumer word. Returns 1 with *value set, 0 if a DEV_EV_READ will bring
	 * the value (at most one is outstanding), or -FI_EAGAIN.
	 */
	int (*read_consumer)(struct dev_link *link, uint64_t *value);
	/*
	 * Starts a get. Returns 1 if it ended at once (status is set), 0 if a DEV_EV_GET will
	 * follow, or a negative error if nothing was started (-FI_EAGAIN: no room now). A status of
	 * -FI_EPERM also removes the capability: the engine uses the ring from then on. After DOWN
	 * or detach, open transfers get no event. After detach the device touches neither them nor
	 * their buffers.
	 */
	int (*get)(struct dev_link *link, struct dev_get *get);
	/* Like get, from the local buffers into the peer's memory. NULL without DEV_CAP_PUT. */
	int (*put)(struct dev_link *link, struct dev_get *get);
	/*
	 * Starts a simple access: a put or get of one buffer, covered by `mem`, with no record of
	 * its own. mem is NULL for a write of at most inline_max bytes, which are copied before the
	 * return unless the link is dead. Returns 0 or -FI_EAGAIN. Simple accesses end in the order
	 * of their starts and are reported by their number, one DEV_EV_ACCESS for several of them:
	 * at the latest for those that the device has seen, except at their end DEV_ACCESS_SILENT.
	 * Before DOWN a DEV_EV_ACCESS reports those that have succeeded. NULL: get and put only.
	 */
	int (*access)(struct dev_link *link, const void *buf, uint32_t len, uint64_t remote_addr,
		      uint64_t remote_key, const struct dev_mem *mem, unsigned flags);
	/* Lets a DEV_EV_ACCESS follow for all simple accesses. Returns 0, or -FI_EAGAIN. */
	int (*settle)(struct dev_link *link);
	/* Shows the device all transfers with DEV_GET_MORE. NULL: it sees each at once. */
	void (*kick)(struct dev_link *link);
	/*
	 * Lets the peer get [addr, addr + len) with mem->remote_key, until unexpose. A device that
	 * can copy at both ends then helps, while it polls, with the peer's first get of these
	 * bytes, if that begins at addr. Both NULL: the device has mem_reg, or needs neither.
	 */
	int (*expose)(struct dev_link *link, const void *addr, size_t len, struct dev_mem **mem);
	void (*unexpose)(struct dev_link *link, struct dev_mem *mem);
	/*
	 * Drops all gets, without events. Returns true once nothing of the peer can write into
	 * their buffers. After false a DEV_EV_WITHDRAWN follows, in bounded time. NULL: detach does
	 * not wait for peers.
	 */
	bool (*withdraw)(struct dev_link *link);
	/*
	 * Lets the link go over a queue pair of its own (`own`), or over those that links share,
	 * once both ends are ready; meanwhile write_imm may return -FI_EAGAIN. The end that is not
	 * called follows. DEV_CAP_DC tells how the local writes go; the peer's may differ for a
	 * moment. Returns 0, -FI_EALREADY if the link is on that way or gets there, -FI_EAGAIN
	 * while another move is in progress, -FI_ENOSPC without a free queue pair, or an error
	 * with which the link stays as it is. A peer without a free queue pair leaves it as it is,
	 * too. NULL: there is one way.
	 */
	int (*move)(struct dev_link *link, bool own);
	/*
	 * Fills the local half of the description for the peer's connect. Duplicates descriptors.
	 */
	int (*describe)(struct dev_link *link, struct dev_desc *desc);
	/* Validates and uses the peer's half. The caller keeps ownership of desc and its fds. */
	int (*connect)(struct dev_link *link, const struct dev_desc *peer);
	/*
	 * Adds the link to, or removes it from, the set that poll looks at. After detach the link
	 * yields no event and the device accesses no memory but the link's own.
	 */
	int (*attach)(struct dev_link *link);
	void (*detach)(struct dev_link *link);
	/*
	 * Returns one event of this attached link, if there is one: writes that a dead peer sent
	 * before it died. NULL: a device poll that returns false covers every link.
	 */
	bool (*poll)(struct dev_link *link, struct dev_event *ev);
	/*
	 * Takes the memory that this link shares with `first` (dev_ops.link_beside), which is
	 * detached: `first` may be closed before this link. NULL without link_beside.
	 */
	void (*adopt)(struct dev_link *link, struct dev_link *first);
	/* Frees a detached (or never attached) link. */
	void (*close)(struct dev_link *link);
};

struct dev_ops {
	const char *name;
	/*
	 * Checks for a device without logging: fi_getinfo calls it each time. Returns 0 with *about
	 * filled, or -FI_ENODEV. NULL: always present (shared memory).
	 */
	int (*probe)(struct dev_about *about);
	/*
	 * Returns 0, -FI_ENODEV without a log line, or another error with a log line and its
	 * remedy.
	 */
	int (*open)(struct dev **dev);
	/*
	 * Opens another port than that of `other`, which is open, for the same peers. Returns 0,
	 * -FI_ENODEV without a log line if there is none, or like open. NULL: there is none.
	 */
	int (*open_beside)(struct dev *other, struct dev **dev);
	void (*close)(struct dev *dev); /* no link and no registered memory may be left */
	/*
	 * Returns the number of further links that may have a queue pair of their own. NULL: links
	 * do not move.
	 */
	uint32_t (*own_left)(struct dev *dev);
	/* Creates the local half of a link with a ring of rx_len bytes (a power of two >= 1024). */
	int (*link_create)(struct dev *dev, uint64_t rx_len, struct dev_link **link);
	/*
	 * Creates the local half of a link over the rings and the consumer word of `first`, a link
	 * of another device with the same operations. It connects after `first`, to the like of the
	 * peer, and is closed before, unless it adopts the memory. NULL without open_beside.
	 */
	int (*link_beside)(struct dev *dev, struct dev_link *first, struct dev_link **link);
	/*
	 * Registers memory of the user for a set of enum dev_mem_access, valid until mem_dereg. An
	 * empty set: read by a local put. The writes of peers are placed in order.
	 * After mem_dereg no access reaches the memory, not even one in flight. NULL: not needed.
	 */
	int (*mem_reg)(struct dev *dev, const void *addr, size_t len, unsigned access,
		       struct dev_mem **mem);
	void (*mem_dereg)(struct dev *dev, struct dev_mem *mem);
	/*
	 * Reads the device's own events, and returns its state: 0, -FI_ENETDOWN while its port is
	 * down for longer than links outlast, or -FI_EIO once it has failed: its links end, and it
	 * does nothing more until it is closed and opened again. Called by the polling thread.
	 * NULL: it cannot fail.
	 */
	int (*health)(struct dev *dev);
	/* Returns one event, if there is one. The engine compiles its loop once per device. */
	bool (*poll)(struct dev *dev, struct dev_event *ev);
	/*
	 * Waiting: fd becomes readable when an armed device has something to poll. arm returns
	 * -FI_EAGAIN if something arrived in between (poll again). disarm is idempotent.
	 */
	int (*wait_fd)(struct dev *dev);
	int (*arm)(struct dev *dev);
	void (*disarm)(struct dev *dev);
};

#endif
