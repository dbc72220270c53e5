/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ports of sockets: FI_COPYRPC_PORTS limits those that the kernel would choose otherwise.
 *
 * Called for every socket that peers send to: by cm/ for UDP and for listeners, by dev/udp. A port
 * that the application has chosen is not changed.
 */
#ifndef UTIL_PORT_H
#define UTIL_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/** Parses "first-last" or a single port. Returns whether the text is one of them. Pure. */
bool util_port_parse(const char *text, uint16_t *first, uint16_t *last);

/**
 * Binds `fd` to `addr`. A port of 0 stands for the first free one of FI_COPYRPC_PORTS, or for any
 * without that parameter. Returns 0 or -errno; -EADDRINUSE for a range that is used up is logged.
 */
int util_port_bind(int fd, const struct sockaddr *addr, socklen_t len);

#endif
