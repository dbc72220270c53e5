/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Second socket of an endpoint, connected to the peer that it sends most to. Called by udp_tx.c,
 * udp_rx.c, udp_into.c and udp_dgram.c.
 *
 * The kernel looks up the route of each datagram that an unconnected socket sends, and of each that
 * arrives for one: 0.3 us each. A connected socket keeps both. It has the address and port of the
 * endpoint's own socket, so that the peer sees no difference; the kernel gives it the datagrams of
 * its peer, and its queue to us as long as it is open.
 *
 * A peer is chosen once UDP_NEAR_VOTES more send calls went to it than to all others, which a
 * majority vote counts (Boyer and Moore). Polls take the own socket in turns, as often as the
 * connected one if it had something, else one of UDP_NEAR_TURNS. Any unexpected error ends this
 * socket alone, and for good.
 */
#ifndef DEV_UDP_UDP_NEAR_H
#define DEV_UDP_UDP_NEAR_H

#include <stdbool.h>
#include <stdint.h>

struct udp_dgram;
struct udp_ah;

#define UDP_NEAR_VOTES   1024u
#define UDP_NEAR_TURNS   4u
#define UDP_NEAR_DISCARD 9

struct udp_near {
	int fd;                     /* -1: none */
	const struct udp_ah *peer;  /* connected to it, or NULL */
	const struct udp_ah *first; /* leads the vote, or NULL */
	uint32_t votes;
	uint8_t turn;
	uint8_t own_asked; /* turns of the own socket in which only its length was asked for */
	bool own_found;    /* the last poll of the own socket found something */
	bool off;          /* no second socket any more */
};

/** Begins the next turn. */
static inline void udp_near_pass(struct udp_near *near)
{
	near->turn = (uint8_t)((near->turn + 1) % (near->own_found ? 2 : UDP_NEAR_TURNS));
}

/** Returns true if this poll takes the own socket too, and begins the next turn. */
static inline bool udp_near_is_own_turn(struct udp_near *near)
{
	udp_near_pass(near);
	return !near->turn;
}

/** Returns true if that is so of the next poll. */
static inline bool udp_near_is_own_next(const struct udp_near *near)
{
	return near->turn + 1 >= (near->own_found ? 2 : (int)UDP_NEAR_TURNS);
}

/** Counts a send call to `to`, and connects the socket to the winner of the vote. */
void udp_near_vote_cold(struct udp_dgram *ud, const struct udp_ah *to);

/** Forgets an address handle, and closes the socket if it is connected to it. */
void udp_near_forget(struct udp_dgram *ud, const struct udp_ah *ah);

/** Closes the socket, for good. In both cases datagrams in its queue are lost. */
void udp_near_drop(struct udp_dgram *ud);

#endif
