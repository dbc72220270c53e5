/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does an engine ask of a device? THE DEVICE CONTRACT: links.
 *
 * A link is reliable, ordered and one-sided: what one end appends at tx_base appears in the same
 * offsets of the other end's rx_base, and each write_imm there yields one event here. Two rings,
 * one writer and one reader each; a ring is made and sized by its reader.
 *
 *            engine appends            write_imm(off, len, imm)           poll -> {link, imm}
 *   tx_base [....#####......] ------------------------------------> rx_base [....#####......]
 *
 * Direct links (DEV_CAP_DIRECT): tx_base IS the peer's ring, write_imm only signals. Other links:
 * tx_base is a local, registered send ring of the same size and write_imm moves the bytes.
 *
 * In-band arrival (inband_len > 0): the device keeps eight bytes at offset 24 of the 32-byte head
 * of every write (link_word). It stores the immediate there last, and clears the words of possible
 * next heads before, so a poll is one load of the line that also carries the data. For that, the
 * inband_len bytes behind every write must be free (modulo the ring): the engine counts a ring that
 * is inband_len smaller. It writes the first 24 bytes of a head, never the word, and nothing behind
 * a write before its write_imm. An immediate counts units of DEV_IMM_UNIT bytes from this write's
 * head to the next one's, modulo the ring: that is all a device knows of the protocol above it. Links
 * without in-band arrival know nothing of it: a write is any stretch, its immediate any number.
 *
 * Life of a link: create (local half, from the control thread) -> describe -> the handshake carries
 * the description to the peer -> connect -> attach (from the thread that polls: events may flow) ->
 * detach -> close. create, describe, connect and close may run in another thread than poll; all the
 * rest is called by whoever holds the domain.
 * The peer may write as soon as its own half is connected, before our attach. None of that is lost:
 * the device keeps it until attach.
 *
 * Memory of the user that a device moves by itself (get, put) is registered where the device needs that
 * (mem_reg is not NULL): the lender registers what it announces with DEV_MEM_REMOTE_READ and sends
 * remote_key along, the fetcher registers its buffers and passes them in dev_get.mem.
 *
 * Reviewed against: mlx5/verbs (write_imm = WRITE_WITH_IMM, tx_base = registered ring, get = READ,
 * read_consumer = 8-byte READ with a later event, and a fence: when it is back all writes before it
 * are placed; write_imm_ack = a signalled write; -FI_EAGAIN = send queue full, DOWN = QP error),
 * shared memory, and a reliable byte stream (write_imm = header + bytes; inband_len 0).
 */
#ifndef DEV_DEV_H
#define DEV_DEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "util/list.h"

#define DEV_IMM_UNIT      32u
#define DEV_LINK_WORD_OFF 24u  /* of link_word in the 32-byte head of a write */
#define DEV_DESC_MAX      512u /* bytes of a description */
#define DEV_DESC_FDS      4u   /* descriptors that go with it (shared memory only) */

#define DEV_GET_IOV_MAX 4u

struct dev;
struct dev_link;

enum dev_cap {
	DEV_CAP_DIRECT = 1 << 0, /* tx_base is the peer's memory */
	DEV_CAP_GET = 1 << 1,    /* get() works towards this peer (proven, not assumed) */
	DEV_CAP_PUT = 1 << 2,    /* put() too */
};

enum dev_event_kind {
	DEV_EV_IMM,  /* a write arrived: imm */
	DEV_EV_READ, /* a read_consumer ended: value */
	DEV_EV_ACK,  /* a write_imm_ack and all writes before it are in the peer's hands */
	DEV_EV_GET,  /* a get or put ended: get->status is set */
	DEV_EV_DOWN, /* the link is dead: status; the device logged why. The link's last event */
};

enum dev_mem_access {
	DEV_MEM_LOCAL = 1 << 0,        /* a get of ours writes it, a put reads it */
	DEV_MEM_REMOTE_READ = 1 << 1,  /* peers may get it */
	DEV_MEM_REMOTE_WRITE = 1 << 2, /* peers may put into it */
};

/** Registered memory. Devices embed it first. */
struct dev_mem {
	uint64_t
		remote_key; /* what a peer puts into dev_get.remote_key; remote_addr is the address */
};

/** What a NIC is, as fi_getinfo tells it. Text is terminated; empty or 0: not known. */
struct dev_about {
	char name[64];    /* "mlx5_0" */
	char version[64]; /* of the firmware */
	char state[16];   /* "active" */
	char link[16];    /* "InfiniBand" or "Ethernet" */
	char addr[64];    /* GID or LID, as people write it */
	char pci[16];     /* "0000:3b:00.0" */
	uint32_t vendor_id;
	uint32_t device_id;
	uint64_t mtu;
	uint64_t speed; /* bits per second */
};

/**
 * A bulk transfer between the peer's memory and local buffers. Owned by the caller until it ends.
 */
struct dev_get {
	uint64_t remote_addr;
	uint64_t remote_key;
	const struct iovec *iov; /* local buffers, in order; valid until the end */
	size_t iov_cnt;
	size_t len; /* bytes to move, at most what iov holds; the device splits what is too long */
	int status; /* result: 0 or -FI_E* */
	void *user;
	struct util_list dev_link; /* the device's, until the end */
	struct dev_mem
		*mem[DEV_GET_IOV_MAX]; /* of iov[i], covering it; if the device has mem_reg */
};

struct dev_event {
	struct dev_link *link;
	enum dev_event_kind kind;
	uint32_t imm;        /* DEV_EV_IMM */
	uint64_t value;      /* DEV_EV_READ: the peer's consumer word */
	struct dev_get *get; /* DEV_EV_GET */
	int status;          /* DEV_EV_DOWN: -FI_E* */
};

/** What travels to the peer in the handshake. Descriptors are owned by the holder of the struct. */
struct dev_desc {
	uint32_t len;
	uint32_t fd_cnt;
	uint8_t bytes[DEV_DESC_MAX];
	int fds[DEV_DESC_FDS];
};

/** The part of a link that the engine reads. Devices embed it first. */
struct dev_link {
	const struct dev_link_ops *ops;
	uint8_t *tx_base;
	uint8_t *rx_base;
	uint64_t tx_len;     /* C of the peer's ring: a power of two */
	uint64_t rx_len;     /* C of ours */
	uint32_t inband_len; /* of tx_base, a multiple of DEV_IMM_UNIT; known after connect */
	uint32_t caps;       /* enum dev_cap */
	/* Word that the peer reads with read_consumer: how far our end has released rx_base. */
	uint64_t *consumer_word;
	void *user; /* the engine's connection */
};

struct dev_link_ops {
	/*
	 * Makes [off, off + len) of tx_base visible in the peer's ring and signals imm, in order.
	 * Never crosses the end of the ring. 0, or -FI_EAGAIN (nothing was done; room comes by
	 * polling). The bytes may be overwritten only after the peer released them.
	 */
	int (*write_imm)(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm);
	/*
	 * The same, and a DEV_EV_ACK follows when the peer's device has it and all before it: one
	 * for each, in order. NULL: direct links, whose writes are with the peer at once.
	 */
	int (*write_imm_ack)(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm);
	/*
	 * The peer's consumer word: 1 and *value at once, 0 when a DEV_EV_READ will bring it (at
	 * most one outstanding), or -FI_EAGAIN.
	 */
	int (*read_consumer)(struct dev_link *link, uint64_t *value);
	/*
	 * Starts a get: 1 when it ended at once (status set), 0 when DEV_EV_GET will come, <0:
	 * nothing was started (-FI_EAGAIN: no room now). A status of -FI_EPERM also takes the
	 * capability away: use the ring from then on. After DOWN or detach no event comes for what
	 * is open; after detach neither it nor its buffers are touched any more.
	 */
	int (*get)(struct dev_link *link, struct dev_get *get);
	/* The same from the local buffers into the peer's memory. NULL without DEV_CAP_PUT. */
	int (*put)(struct dev_link *link, struct dev_get *get);
	/*
	 * `delta` more (or fewer) stretches of our memory are announced to the peer, who may get
	 * them: a device whose two ends can both copy helps while it polls. NULL: nothing to do.
	 */
	void (*expose)(struct dev_link *link, int delta);
	/* Local half of the description, for the peer's connect. Duplicates descriptors. */
	int (*describe)(struct dev_link *link, struct dev_desc *desc);
	/* The peer's half. Takes nothing over: fds in desc stay the caller's. Validates it all. */
	int (*connect)(struct dev_link *link, const struct dev_desc *peer);
	/*
	 * Enters the set that poll visits / leaves it: no event after detach, and no access by the
	 * device to anything but the link's own memory.
	 */
	int (*attach)(struct dev_link *link);
	void (*detach)(struct dev_link *link);
	/*
	 * One event of this attached link alone, if there is one: what a peer that is gone had
	 * still sent. NULL: a device poll that returns false says as much for every link.
	 */
	bool (*poll)(struct dev_link *link, struct dev_event *ev);
	/* Frees a detached (or never attached) link. */
	void (*close)(struct dev_link *link);
};

struct dev_ops {
	const char *name;
	/*
	 * Is there such a device here? 0 and *about, or -FI_ENODEV: quick and silent, since every
	 * fi_getinfo asks. NULL: always (shared memory).
	 */
	int (*probe)(struct dev_about *about);
	/* 0 or -FI_E*: -FI_ENODEV silently, anything else with a line that says what to do. */
	int (*open)(struct dev **dev);
	void (*close)(struct dev *dev); /* no link and no memory left */
	/* The local half of a link whose ring has rx_len bytes (a power of two >= 1024). */
	int (*link_create)(struct dev *dev, uint64_t rx_len, struct dev_link **link);
	/*
	 * Registers memory of the user: access is a set of enum dev_mem_access. Stays valid until
	 * mem_dereg; afterwards nobody reaches it, whatever is on its way. NULL: not needed.
	 */
	int (*mem_reg)(struct dev *dev, const void *addr, size_t len, unsigned access,
		       struct dev_mem **mem);
	void (*mem_dereg)(struct dev *dev, struct dev_mem *mem);
	/* One event, if there is one: the caller's loop is compiled once per device. */
	bool (*poll)(struct dev *dev, struct dev_event *ev);
	/*
	 * Waiting: fd becomes readable when an armed device has something to poll. arm returns
	 * -FI_EAGAIN when something came in between (poll again); disarm is idempotent.
	 */
	int (*wait_fd)(struct dev *dev);
	int (*arm)(struct dev *dev);
	void (*disarm)(struct dev *dev);
};

#endif
