/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lines between two hosts: greetings of equal and of different keys, and lines of foes. */
#include "info/info_talk.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NONCE "00112233445566778899aabbccddeeff"

struct listener {
	struct info_talk talk;
	const char *key;
	int ret;
};

static void *listener_run(void *arg)
{
	struct listener *it = arg;

	it->ret = info_talk_listen(&it->talk, it->key);
	return NULL;
}

/* Greets between two threads. Returns the result of the prober; both ends agree. */
static int greet(const char *there, const char *here)
{
	struct listener listener = { .key = there };
	struct info_talk talk = { 0 };
	pthread_t thread;
	int socks[2], ret;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, socks), 0);
	listener.talk.fd = socks[0];
	talk.fd = socks[1];
	cr_assert_eq(pthread_create(&thread, NULL, listener_run, &listener), 0);
	ret = info_talk_probe(&talk, here, "udp");
	pthread_join(thread, NULL);
	cr_expect_eq(listener.ret, ret);
	cr_expect_str_eq(listener.talk.path, "udp");
	cr_expect_str_eq(listener.talk.version, PACKAGE_VERSION);
	cr_expect_str_eq(talk.version, PACKAGE_VERSION);
	close(socks[0]);
	close(socks[1]);
	return ret;
}

Test(info_talk, equal_keys_agree_and_different_ones_do_not)
{
	cr_expect_eq(greet("sesame", "sesame"), 0);
	cr_expect_eq(greet(NULL, NULL), 0);
	cr_expect_eq(greet(NULL, ""), 0);
	cr_expect_eq(greet("sesame", "sesam"), -EACCES);
	cr_expect_eq(greet("sesame", NULL), -EACCES);
	cr_expect_eq(greet(NULL, "sesame"), -EACCES);
}

Test(info_talk, a_proof_depends_on_key_and_nonces_and_does_not_contain_the_key)
{
	char nonces[2][INFO_TALK_HEX] = { NONCE, NONCE }, one[33], two[33], three[33];

	info_talk_prove("0123456789abcdef", nonces, one);
	info_talk_prove("0123456789abcdeF", nonces, two);
	nonces[1][0] = '1';
	info_talk_prove("0123456789abcdef", nonces, three);
	cr_expect_eq(strlen(one), 32);
	cr_expect_str_neq(one, two);
	cr_expect_str_neq(one, three);
	cr_expect_null(strstr(one, "0123456789abcdef"));
	info_talk_prove("", nonces, one);
	cr_expect_str_eq(one, "-");
}

Test(info_talk, only_whole_bytes_in_hexadecimal_are_read)
{
	uint8_t bytes[2] = { 0 };

	cr_expect(info_talk_unhex("fF01", bytes, 2));
	cr_expect_eq(bytes[0], 0xff);
	cr_expect_eq(bytes[1], 1);
	cr_expect_not(info_talk_unhex("ff0", bytes, 2));
	cr_expect_not(info_talk_unhex("ff011", bytes, 2));
	cr_expect_not(info_talk_unhex("ff0x", bytes, 2));
	cr_expect_not(info_talk_unhex("", bytes, 2));
}

/* Returns what the listener makes of these bytes, behind which the connection ends. */
static int listen_to(const char *bytes, size_t len)
{
	struct info_talk talk = { 0 };
	int socks[2], ret;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, socks), 0);
	cr_assert_eq(write(socks[1], bytes, len), (ssize_t)len);
	shutdown(socks[1], SHUT_WR);
	talk.fd = socks[0];
	ret = info_talk_listen(&talk, NULL);
	close(socks[0]);
	close(socks[1]);
	return ret;
}

Test(info_talk, other_bytes_are_no_greeting)
{
	static const char good[] = "copyrpc_info 1 0.1 " NONCE " - udp\n";
	static const char *const bad[] = {
		"",
		"\n",
		"GET / HTTP/1.0\n",
		"copyrpc_info 2 0.1 " NONCE " - udp\n",
		"copyrpc_info 1 0.1 " NONCE " - shm\n",
		"copyrpc_info 1 0.1 " NONCE " -\n",
		"copyrpc_info 1 0.1 " NONCE " - udp",
	};
	char longest[2 * INFO_TALK_LINE];

	cr_expect_eq(listen_to(good, strlen(good)), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(listen_to(bad[i], strlen(bad[i])), -EPROTO, "%s", bad[i]);
	cr_expect_eq(listen_to("copyrpc_info\0 1\n", 16), -EPROTO);
	memset(longest, 'x', sizeof(longest));
	cr_expect_eq(listen_to(longest, sizeof(longest)), -EPROTO);
}

/* Receives what the other end sends. Returns the result. */
static int receive(const char *bytes, size_t len, char line[INFO_TALK_LINE])
{
	struct info_talk talk;
	int socks[2], ret;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, socks), 0);
	talk.fd = socks[1];
	cr_assert_eq(send(socks[0], bytes, len, 0), (ssize_t)len);
	close(socks[0]);
	ret = info_talk_recv(&talk, line);
	close(socks[1]);
	return ret;
}

Test(info_talk, a_line_has_no_byte_that_a_terminal_could_execute)
{
	char line[INFO_TALK_LINE], bytes[] = "fail 5 a?c\n";

	for (int byte = 0; byte < 256; byte++) {
		bytes[8] = (char)byte;
		if (byte == '\n')
			continue;
		cr_expect_eq(receive(bytes, strlen("fail 5 a?c\n"), line),
			     byte < ' ' || byte > '~' ? -EPROTO : 0, "byte %d", byte);
	}
	cr_expect_eq(receive("no end", 6, line), -EPROTO);
}
