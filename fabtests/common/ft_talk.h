/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How do two hosts find each other outside the fabric? One TCP connection for each case. */
#ifndef FT_TALK_H
#define FT_TALK_H

#include <stdbool.h>

/** A listening socket, or -1 and errno. */
int ft_talk_listen(const char *port);
/** The next connection, within a minute; or -1. */
int ft_talk_accept(int listener);
/** A connection, tried for half a minute: the other side may still be busy with its last case. Or -1. */
int ft_talk_connect(const char *host, const char *port);
/** Gives this side's verdict, one byte, and takes the other's. False: it is gone. */
bool ft_talk_verdict(int sock, char *verdict);

#endif
