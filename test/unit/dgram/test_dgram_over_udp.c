/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Socket addresses and the attributes of a local socket. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "dev/udp/udp_sock.h"
#include "dgram/dgram_over.h"

static struct sockaddr_storage addr_of(const char *text, uint16_t port)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ss;
	struct sockaddr_in *in = (struct sockaddr_in *)&ss;

	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else {
		cr_assert_eq(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
	}
	return ss;
}

Test(dgram_over_udp, an_exported_address_equals_the_imported_one)
{
	static const char *const texts[] = { "127.0.0.1", "10.1.2.3", "::1", "2001:db8::7" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct sockaddr_storage in = addr_of(texts[i], 4711), back;
		struct dev_desc desc;

		cr_assert_eq(dgram_over_udp.import(&in, &desc), 0);
		cr_expect_eq(dgram_over_udp.export(&desc, &back),
			     i < 2 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
		cr_expect_eq(memcmp(&in, &back, sizeof(in)), 0, "%s", texts[i]);
	}
}

Test(dgram_over_udp, an_unusable_address_is_refused)
{
	static const struct {
		const char *text;
		uint16_t port;
	} bad[] = { { "127.0.0.1", 0 },     { "0.0.0.0", 1 }, { "255.255.255.255", 1 },
		    { "224.0.0.1", 1 },     { "::", 1 },      { "ff02::1", 1 },
		    { "::ffff:1.2.3.4", 1 } };
	struct sockaddr_storage in;
	struct dev_desc desc;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		in = addr_of(bad[i].text, bad[i].port);
		cr_expect_eq(dgram_over_udp.import(&in, &desc), -FI_EINVAL, "%s", bad[i].text);
	}
	in = addr_of("127.0.0.1", 1);
	in.ss_family = AF_UNIX;
	cr_expect_eq(dgram_over_udp.import(&in, &desc), -FI_EINVAL);
}

Test(dgram_over_udp, a_probe_returns_the_attributes_of_a_socket)
{
	struct sockaddr_storage in = addr_of("127.0.0.1", 0);
	struct dev_about about = { 0 };
	struct udp_sock sock;
	uint32_t mtu;

	cr_assert_eq(dgram_over_udp.probe(&dgram_over_udp, (struct sockaddr *)&in, &about, &mtu),
		     0);
	cr_assert_eq(udp_sock_open(&sock, (struct sockaddr *)&in, 0, 8), 0);
	cr_expect_eq(mtu, sock.mtu);
	udp_sock_close(&sock);
	in.ss_family = AF_UNIX;
	cr_expect_eq(dgram_over_udp.probe(&dgram_over_udp, (struct sockaddr *)&in, &about, &mtu),
		     -FI_ENODEV);
}
