/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Filter of a socket (udp_filter.h). */
#include "dev/udp/udp_filter.h"

#include <linux/filter.h>
#include <sys/socket.h>

#define UDP_FILTER_SKIP 8u /* the program sees the UDP header first */
#define UDP_FILTER_ALL  UINT32_MAX

static struct sock_filter udp_filter_op(uint16_t code, uint8_t if_true, uint8_t if_false,
					uint32_t arg)
{
	return (struct sock_filter){ .code = code, .jt = if_true, .jf = if_false, .k = arg };
}

void udp_filter_attach(int fd, const struct dev_dgram_match *match, uint32_t match_cnt)
{
	struct sock_filter ops[4 * DEV_DGRAM_MATCH_MAX + 1];
	struct sock_fprog program = { .filter = ops };
	unsigned short len = 0;
	uint32_t i;

	if (!match_cnt || match_cnt > DEV_DGRAM_MATCH_MAX)
		return;
	/* Loading a byte behind the end of a datagram drops it. */
	for (i = 0; i < match_cnt; i++) {
		ops[len++] = udp_filter_op(BPF_LD | BPF_B | BPF_ABS, 0, 0,
					   UDP_FILTER_SKIP + match[i].off);
		ops[len++] = udp_filter_op(BPF_ALU | BPF_AND | BPF_K, 0, 0, match[i].mask);
		ops[len++] = udp_filter_op(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, match[i].value);
		ops[len++] = udp_filter_op(BPF_RET | BPF_K, 0, 0, 0);
	}
	ops[len++] = udp_filter_op(BPF_RET | BPF_K, 0, 0, UDP_FILTER_ALL);
	program.len = len;
	/* Without it only floods cost more. */
	(void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}
