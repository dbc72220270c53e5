/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* TCP connection between the runners of two hosts, one for each case. */
#ifndef FT_TALK_H
#define FT_TALK_H

#include <stdbool.h>

/** Returns a listening socket, or -1 and errno. */
int ft_talk_listen(const char *port);
/** Returns the next connection within a minute, or -1. */
int ft_talk_accept(int listener);
/**
 * Connects, with retries for half a minute, since the other side may still run its last case.
 * Returns a socket or -1.
 */
int ft_talk_connect(const char *host, const char *port);
/**
 * Sends this side's verdict, one byte, and receives the other's. Returns false if the connection
 * has ended.
 */
bool ft_talk_verdict(int sock, char *verdict);

#endif
