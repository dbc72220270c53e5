/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Statistics page of a process that uses the provider copyrpc: format, version 2.
 *
 * The page is a memfd named COPYRPC_STATS_NAME, which a reader of the same user finds as
 * "/memfd:copyrpc-stats (deleted)" in /proc/PID/fd. It is sealed (COPYRPC_STATS_SEALS): only the
 * process itself writes it, and its length never changes. docs/statistics.md describes each field,
 * how a reader takes a copy, and what it must check. The provider needs nothing from this header at
 * run time that is not in the page: a reader uses the offsets and lengths that the page states.
 *
 * Numbers are in the byte order of the machine. Counters only grow, and are written without locks,
 * each with one store. A row is read without its lock: its state is stored last when it begins.
 * Levels are those of the last look of the process (docs/statistics.md, section 3).
 */
#ifndef COPYRPC_STATS_H
#define COPYRPC_STATS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COPYRPC_STATS_NAME    "copyrpc-stats"
#define COPYRPC_STATS_MAGIC   UINT64_C(0x3173746174737263) /* "crstats1" */
#define COPYRPC_STATS_VERSION 2u
/** Length beyond which no page is. */
#define COPYRPC_STATS_LEN_MAX (4u << 20)
/** Rows beyond which no table has more. */
#define COPYRPC_STATS_ROWS_MAX 4096u
/** Seals that a page has: F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_FUTURE_WRITE. */
#define COPYRPC_STATS_SEALS 0x17u

/** Tables of a page. */
enum copyrpc_stats_table_id {
	COPYRPC_STATS_TRANSPORTS, /* struct copyrpc_stats_transport */
	COPYRPC_STATS_ENDPOINTS,  /* struct copyrpc_stats_endpoint */
	COPYRPC_STATS_PEERS,      /* struct copyrpc_stats_peer: a connection each */
	COPYRPC_STATS_RESTS,      /* struct copyrpc_stats_peer: connections without a row */
	COPYRPC_STATS_EVENTS,     /* struct copyrpc_stats_event; row 0: copyrpc_stats_recorder */
	COPYRPC_STATS_STALLS,     /* likewise */
	COPYRPC_STATS_WAITS,      /* struct copyrpc_stats_wait */
	COPYRPC_STATS_QUEUES,     /* struct copyrpc_stats_queue: completion queues */
	COPYRPC_STATS_PROCESS,    /* struct copyrpc_stats_process: row 1 */
	COPYRPC_STATS_TABLES,
};

struct copyrpc_stats_table {
	uint32_t offset;  /* of row 0, from the start of the page; a multiple of 8 */
	uint32_t row_len; /* bytes from one row to the next; a multiple of 8 */
	uint32_t rows;
	uint32_t reserved;
};

/** Length of the name of a host, its end included. */
#define COPYRPC_STATS_HOST_LEN 64u

struct copyrpc_stats_page {
	uint64_t magic;    /* stored last, once the page is complete */
	uint32_t version;  /* a reader of another version ignores the page */
	uint32_t len;      /* bytes of the page */
	int32_t pid;       /* in the PID namespace of the process */
	int32_t rank;      /* of the job, from the launcher's environment; -1: unknown */
	uint64_t start_ns; /* CLOCK_REALTIME when the page was made */
	char command[32];  /* name of the program */
	char host[COPYRPC_STATS_HOST_LEN];
	char release[16]; /* version of the provider */
	uint32_t table_cnt;
	uint32_t reserved;
	struct copyrpc_stats_table tables[COPYRPC_STATS_TABLES];
};

enum copyrpc_stats_state {
	COPYRPC_STATS_FREE,  /* nothing else in the row is valid */
	COPYRPC_STATS_LIVE,  /* the object exists */
	COPYRPC_STATS_ENDED, /* the object was closed; the counters stay until the row is needed */
	COPYRPC_STATS_PAST,  /* row 0 of a table: sums of the ended rows that were used again */
};

/** First member of every row. */
struct copyrpc_stats_row {
	uint32_t state; /* enum copyrpc_stats_state */
	uint32_t use;   /* grows when the row is used for another object */
};

struct copyrpc_stats_addr {
	uint16_t family; /* AF_INET or AF_INET6; 0: unknown */
	uint16_t port;   /* in the machine's byte order */
	uint32_t scope;  /* scope of an IPv6 address */
	uint8_t bytes[16];
};

/** A device, as one engine found it. */
struct copyrpc_stats_transport {
	struct copyrpc_stats_row row;
	char name[16];
	uint32_t path;   /* enum copyrpc_stats_path */
	int32_t error;   /* 0: in use; else the errno because of which it is not, or not now */
	uint64_t memory; /* bytes of receive and send memory of its connections */
};

/** Paths, best first; their bits are those of the handshake. */
enum copyrpc_stats_path {
	COPYRPC_STATS_SHM = 0x1, /* memory of the host */
	COPYRPC_STATS_NIC = 0x2, /* rings over an RDMA device */
	COPYRPC_STATS_UDS = 0x4, /* sessions over datagrams of an RDMA device */
	COPYRPC_STATS_UDP = 0x8, /* sessions over UDP */
};

/**
 * Packets of an endpoint's sessions over datagrams. A received packet is counted by the first check
 * that refused it (docs/datagram-protocol.md, section 7), and had no other effect then.
 */
struct copyrpc_stats_packets {
	uint64_t rx_pkts;       /* received, refused ones included */
	uint64_t rx_malformed;  /* too short, or no valid header */
	uint64_t rx_no_session; /* unknown session number */
	uint64_t rx_bad_token;  /* wrong token of the session */
	uint64_t rx_bad_source; /* address other than the peer's */
	uint64_t rx_bad_state;  /* the session is failing */
	uint64_t rx_stale;      /* of a completed request */
	uint64_t rx_early;      /* a packet before it is missing */
	uint64_t rx_bad;        /* violates the protocol: type, size, number, or content */
	uint64_t rx_repeats;    /* packet of a request received before */
	uint64_t rx_no_memory;  /* no space before attach, or for a long request */
	uint64_t tx_pkts;       /* accepted by the device */
	uint64_t gaps;          /* gaps reported to peers */
	uint64_t piggybacks;    /* batches acknowledged by a piggybacked ack */
};

/** Handshakes of an endpoint. A packet that was counted as bad or stale had no other effect. */
struct copyrpc_stats_handshakes {
	uint64_t rx_pkts;          /* packets received, on any socket */
	uint64_t rx_malformed;     /* not a packet of the handshake */
	uint64_t rx_bad_mac;       /* without a valid MAC */
	uint64_t rx_bad_cookie;    /* HELLO without a valid cookie */
	uint64_t rx_stale;         /* well-formed, but not expected */
	uint64_t rx_refused;       /* ICMP errors: port closed or unreachable */
	uint64_t tx_reqs;          /* REQ sent, including repetitions */
	uint64_t tx_acks;          /* ACK sent, which ends a handshake over UDP */
	uint64_t tx_naks;          /* NAK sent: a peer was refused */
	uint64_t tx_pings;         /* PING sent: is the peer alive? */
	uint64_t crossings;        /* attempts that met the peer's own */
	uint64_t incoming_foreign; /* accepted streams of other users' processes, refused */
	uint64_t rx_unproven;      /* HELLO datagrams from this host, refused: no proof of user */
	uint64_t incoming_evicted; /* accepted streams closed before HELLO: timeout, or too many */
	uint64_t pending_evicted;  /* pending connections ended because too many were pending */
	uint64_t unused_refused;   /* HELLO datagrams of hosts with too many unused connections */
	uint64_t cookies_renewed;  /* times that all cookies were made invalid (cm_ended.h) */
	uint64_t accept_pauses; /* pauses in accepting: no descriptor, or no room (cm_closer.h) */
	uint64_t rx_limited;    /* datagrams of unproved senders, dropped: too many a second */
};

struct copyrpc_stats_endpoint {
	struct copyrpc_stats_row row;
	struct copyrpc_stats_addr addr;
	uint32_t paths; /* offered to peers */
	uint32_t reserved;
	uint64_t unexpected_now; /* bytes of unexpected messages on the heap */
	/* Levels. A receive that finds its message when it is posted counts for that moment. */
	uint64_t posted_now;       /* receives posted */
	uint64_t posted_most;      /* highest number of them at a time */
	uint64_t unexpected_queue; /* unexpected messages */
	/* Highest number of them at a time; exact at any time. */
	uint64_t unexpected_queue_most;
	/* Counters from here on. */
	uint64_t waited_connection; /* operations that waited for a connection */
	uint64_t waited_peer;       /* operations that waited because the peer took no more */
	uint64_t unexpected;        /* messages that arrived before their receive */
	uint64_t connects;          /* connections that came up */
	uint64_t closed;            /* of these, ended in good order by the peer */
	uint64_t died;              /* ended because the peer died or was restarted */
	uint64_t silent;            /* ended because the peer was silent, or did not reply */
	uint64_t refused;           /* connects that were refused */
	uint64_t unreachable;       /* connects without a path to the peer */
	uint64_t broken;            /* ended by any other error */
	struct copyrpc_stats_packets packets;
	struct copyrpc_stats_handshakes handshakes;
};

/** Batches by their number of messages: element k counts those of 2^k up to 2^(k+1) - 1. */
#define COPYRPC_STATS_SIZES 32u

/** A connection: what both directions carried. */
struct copyrpc_stats_peer {
	struct copyrpc_stats_row row;
	struct copyrpc_stats_addr addr; /* of the peer's endpoint */
	uint32_t endpoint;              /* row in the table of endpoints */
	uint32_t path;                  /* enum copyrpc_stats_path */
	char device[16];
	int32_t error; /* errno with which it ended; 0: none */
	int32_t pid;   /* process of the peer; 0: unknown */
	int32_t rank;  /* rank that the peer states; -1: unknown */
	uint32_t reserved;
	char host[COPYRPC_STATS_HOST_LEN]; /* name that the peer states; empty: unknown */
	/* Levels: round trips of sessions over datagrams; 0: none measured. */
	uint64_t rtt_ns;      /* smoothed */
	uint64_t rtt_best_ns; /* shortest that rtt_ns was */
	/* Counters from here on. */
	/* Messages: sends, calls and responses; over datagrams responses are not counted. */
	uint64_t tx_singles;  /* messages that were batches of their own */
	uint64_t tx_messages; /* all others */
	uint64_t rx_messages;
	uint64_t tx_bytes; /* bytes of both, headers and padding included */
	uint64_t rx_bytes;
	uint64_t tx_batches[COPYRPC_STATS_SIZES]; /* without tx_singles */
	uint64_t tx_credits;                      /* batches without messages */
	uint64_t gets;          /* long transfers that this end fetched, beside the messages */
	uint64_t get_bytes;     /* bytes of these */
	uint64_t get_errors;    /* others that failed */
	uint64_t no_space;      /* attempts refused: no room in the ring, or no slot */
	uint64_t no_credit;     /* attempts refused: no credit for a response or a packet */
	uint64_t no_queue;      /* batches that waited for the send queue of the device */
	uint64_t no_memory;     /* attempts refused: no memory, or no number for a call */
	uint64_t paced;         /* packets that waited for the rate of the session */
	uint64_t resent;        /* packets sent again */
	uint64_t losses;        /* times that packets counted as lost */
	uint64_t timeouts;      /* of these, those that were found by time */
	uint64_t accesses;      /* reads and writes of the peer's memory by the devices alone */
	uint64_t access_bytes;  /* bytes of these */
	uint64_t access_errors; /* others that failed */
	uint64_t given;         /* long transfers that the peer fetched from this end */
	uint64_t given_bytes;   /* bytes of these */
	uint64_t tag_requests;  /* messages sent as requests to the peer's device (tag matching) */
	uint64_t tag_matches;   /* messages of the peer that the device matched with receives */
	uint64_t tag_unmatched; /* others that it reported: matched by the processor */
};

/** A completion queue. All but `failed` are levels. */
struct copyrpc_stats_queue {
	struct copyrpc_stats_row row;
	uint64_t unread; /* completions written and not read */
	uint64_t room;   /* for so many there is memory; doubled when needed */
	/* Counters from here on. */
	uint64_t completions; /* written, those with an error included */
	uint64_t failed;      /* of these, with an error, but for probes that found nothing */
};

/** Memory that objects of the whole process hold, and registrations with RDMA devices. */
struct copyrpc_stats_process {
	struct copyrpc_stats_row row;
	uint64_t registered; /* ranges of memory registered with RDMA devices now */
	uint64_t pinned;     /* bytes of these */
	uint64_t slots;      /* bytes of buffers for packets, of sessions over datagrams */
	uint64_t pools;      /* bytes of pools of requests, messages and other objects */
	/* Counters from here on. */
	uint64_t registrations;       /* ranges that were registered */
	uint64_t registration_errors; /* others, that the device refused */
};

/** Kinds of events, and their two numbers. Paths: enum copyrpc_stats_path. Errors: errno. */
enum copyrpc_stats_event_kind {
	COPYRPC_STATS_DEVICE_UNUSED = 1, /* a path has no device here: path, error */
	COPYRPC_STATS_CONNECTING,        /* this end requests a connection: 0, 0 */
	COPYRPC_STATS_CONNECTED,         /* path, better paths of this end that are not taken */
	COPYRPC_STATS_MOVED,         /* connected again, by another path: path, that of before */
	COPYRPC_STATS_NOT_CONNECTED, /* a request failed: 0, error */
	COPYRPC_STATS_PATH_FAILED,   /* a request goes on without a path: path, error */
	COPYRPC_STATS_PATH_AVOIDED,  /* nothing arrived by it on several connections: path, 0 */
	COPYRPC_STATS_CLOSED,        /* by the peer, in good order: path, 0 */
	COPYRPC_STATS_CLOSED_HERE,   /* by this end: path, 0 */
	COPYRPC_STATS_LOST,          /* path, error */
	COPYRPC_STATS_DEVICE_OUT,    /* port down, or device failed: path, error */
	COPYRPC_STATS_DEVICE_BACK,   /* device in use again: path, nanoseconds */
	/* The following are in the table of stalls. */
	COPYRPC_STATS_STALL = 32, /* sending is refused: cause, attempts refused */
	COPYRPC_STATS_STALL_END,  /* attempts refused, nanoseconds */
	COPYRPC_STATS_LOSSES,     /* packets are sent again: their number, 0 */
	COPYRPC_STATS_LOSSES_END, /* packets sent again, nanoseconds */
	COPYRPC_STATS_WAIT,       /* an operation waits for long: cause, nanoseconds */
	COPYRPC_STATS_WAIT_END,   /* cause, nanoseconds */
};

/** Causes of the wait of an operation for a peer. */
enum copyrpc_stats_cause {
	COPYRPC_STATS_FOR_CONNECTION = 1, /* to be connected */
	COPYRPC_STATS_FOR_ROOM,           /* room in the peer's ring, or a slot */
	COPYRPC_STATS_FOR_CREDIT,         /* credit for a response, or a packet */
	COPYRPC_STATS_FOR_QUEUE,          /* the send queue of the device */
	COPYRPC_STATS_FOR_ACK,            /* the acknowledgement of a message */
	COPYRPC_STATS_FOR_RECEIVE,        /* a receive buffer of the peer */
	COPYRPC_STATS_FOR_RESPONSE,       /* the response to a request */
	COPYRPC_STATS_FOR_MESSAGE,        /* a message for a receive from this peer */
};

/** A peer that operations of this process wait for. */
struct copyrpc_stats_wait {
	struct copyrpc_stats_row row;      /* only LIVE ones are valid */
	struct copyrpc_stats_addr peer;    /* address of the endpoint */
	uint32_t endpoint;                 /* row in the table of endpoints */
	int32_t pid;                       /* process of the peer; 0: unknown */
	uint32_t cause;                    /* enum copyrpc_stats_cause */
	int32_t rank;                      /* rank that the peer states; -1: unknown */
	char host[COPYRPC_STATS_HOST_LEN]; /* name that the peer states; empty: unknown */
	uint64_t since_ns;   /* the wait began then, or little before; since the page was made */
	uint64_t arrived_ns; /* no earlier than the last arrival of something from the peer */
};

/** Row 0 of the table of events. */
struct copyrpc_stats_recorder {
	struct copyrpc_stats_row row; /* COPYRPC_STATS_PAST */
	uint64_t clock_ns;            /* CLOCK_MONOTONIC when the page was made */
	uint64_t event_cnt;           /* events since then */
	uint64_t looked_ns;           /* last look at the peers (FI_COPYRPC_WATCH), as time_ns */
	uint64_t reserved[4];
};

/** An event. The one with number n is in row 1 + (n - 1) % (rows - 1). */
struct copyrpc_stats_event {
	uint64_t number;  /* twice the number, stored last; odd: being written; 0: none */
	uint64_t time_ns; /* since the page was made */
	uint32_t kind;    /* enum copyrpc_stats_event_kind */
	uint32_t reserved;
	struct copyrpc_stats_addr peer; /* family 0: none */
	uint64_t values[2];             /* the two numbers of the kind */
};

#ifdef __cplusplus
}
#endif

#endif
