/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lines between two hosts: see info_talk.h. */
#include "info/info_talk.h"

#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define INFO_TALK_HELLO "copyrpc_info 1 "

int info_talk_send(struct info_talk *talk, const char *format, ...)
{
	char line[INFO_TALK_LINE];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (len < 0 || len >= (int)sizeof(line) - 1)
		return -EPROTO;
	line[len++] = '\n';
	return send(talk->fd, line, (size_t)len, MSG_NOSIGNAL) == len ? 0 : -EPROTO;
}

/*
 * Reads byte by byte: nothing behind the line is taken. Parts of it are shown to the user, so a
 * byte that a terminal could execute is an error.
 */
int info_talk_recv(struct info_talk *talk, char line[INFO_TALK_LINE])
{
	for (size_t len = 0; len < INFO_TALK_LINE; len++) {
		if (recv(talk->fd, &line[len], 1, 0) != 1)
			return -EPROTO;
		if (line[len] == '\n') {
			line[len] = '\0';
			return 0;
		}
		if (line[len] < ' ' || line[len] > '~')
			return -EPROTO;
	}
	return -EPROTO;
}

void info_talk_prove(const char *key, char (*nonces)[INFO_TALK_HEX],
		     char proof[2 * INFO_TALK_PROOF + 1])
{
	uint8_t secret[crypto_generichash_KEYBYTES], hash[INFO_TALK_PROOF];
	char text[2 * INFO_TALK_HEX + 1];

	if (!key || !*key) {
		strcpy(proof, "-");
		return;
	}
	snprintf(text, sizeof(text), "%s %s", nonces[0], nonces[1]);
	crypto_generichash(secret, sizeof(secret), (const uint8_t *)key, strlen(key), NULL, 0);
	crypto_generichash(hash, sizeof(hash), (const uint8_t *)text, strlen(text), secret,
			   sizeof(secret));
	sodium_memzero(secret, sizeof(secret));
	sodium_bin2hex(proof, 2 * INFO_TALK_PROOF + 1, hash, sizeof(hash));
}

bool info_talk_unhex(const char *text, uint8_t *bytes, size_t len)
{
	size_t got = 0;

	return strlen(text) == 2 * len &&
	       !sodium_hex2bin(bytes, len, text, 2 * len, NULL, &got, NULL) && got == len;
}

static void info_talk_nonce(char nonce[INFO_TALK_HEX])
{
	uint8_t bytes[INFO_TALK_NONCE];

	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2hex(nonce, INFO_TALK_HEX, bytes, sizeof(bytes));
}

static bool info_talk_is_path(const char *path)
{
	return !strcmp(path, "udp") || !strcmp(path, "nic");
}

int info_talk_listen(struct info_talk *talk, const char *key)
{
	char line[INFO_TALK_LINE], proof[2 * INFO_TALK_PROOF + 1], theirs[sizeof(proof)];

	if (sodium_init() < 0)
		return -EPROTO;
	info_talk_nonce(talk->nonces[0]);
	if (info_talk_send(talk, INFO_TALK_HELLO "%s %s", PACKAGE_VERSION, talk->nonces[0]) ||
	    info_talk_recv(talk, line) ||
	    sscanf(line, INFO_TALK_HELLO "%31s %32s %32s %7s", talk->version, talk->nonces[1],
		   theirs, talk->path) != 4 ||
	    !info_talk_is_path(talk->path))
		return -EPROTO;
	info_talk_prove(key, talk->nonces, proof);
	if (strlen(theirs) != strlen(proof) || sodium_memcmp(theirs, proof, strlen(proof))) {
		info_talk_send(talk, "key differ");
		return -EACCES;
	}
	return info_talk_send(talk, "key same");
}

int info_talk_probe(struct info_talk *talk, const char *key, const char *path)
{
	char line[INFO_TALK_LINE], proof[2 * INFO_TALK_PROOF + 1];

	if (sodium_init() < 0)
		return -EPROTO;
	info_talk_nonce(talk->nonces[1]);
	if (info_talk_recv(talk, line) ||
	    sscanf(line, INFO_TALK_HELLO "%31s %32s", talk->version, talk->nonces[0]) != 2)
		return -EPROTO;
	info_talk_prove(key, talk->nonces, proof);
	if (info_talk_send(talk, INFO_TALK_HELLO "%s %s %s %s", PACKAGE_VERSION, talk->nonces[1],
			   proof, path) ||
	    info_talk_recv(talk, line))
		return -EPROTO;
	if (!strcmp(line, "key differ"))
		return -EACCES;
	return strcmp(line, "key same") ? -EPROTO : 0;
}
