/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Traffic through outages of a device, for the script `outage`: numbered messages from one process
 * to another, whose port goes down or whose device fails meanwhile.
 *
 * usage: outage_flood receive IP FILE
 *        outage_flood send IP PORT FILE MESSAGES SECONDS
 *        outage_flood compare SENT RECEIVED
 *
 * The sender sends at least that many messages for at least that long after the first one, of 16
 * bytes to 100 KB, and now and then reads a region of the receiver, which goes on until FILE.stop
 * exists. A tenth of the time it sends as fast as it can, else it sleeps while its messages are on
 * their way. Every operation ends once, well or with an error, within PATIENCE. FLOOD_LONG=BYTES
 * makes every 16th message that long. The receiver checks the contents of each message, that none
 * arrives twice, and that the receives, in the order in which they were posted, have growing
 * numbers. Each writes what became of every message to its file, and "compare" checks that all
 * messages that completed at the sender have arrived.
 */
#include <sched.h>
#include <stdint.h>
#include <unistd.h>

#include <rdma/fi_rma.h>

#include "integ/fab.h"

#define TAG_MESSAGE 1
#define TAG_END     2
#define KEY         7
#define REGION_LEN  4096u
#define SENDS       64u
#define RECEIVES    256u
#define PATIENCE    120.0 /* seconds */
#define READ_EVERY  200u
#define LOOKS       30u /* for completions, before a nap */
#define NAPS        20u /* short ones, before long ones: as in an outage */
#define NAP_US      100
#define LONG_NAP_US 1000

enum outcome { OPEN, DONE, FAILED };

struct head {
	uint64_t number;
	uint32_t len;
	uint32_t spare;
};

struct slot {
	uint8_t *bytes;
	uint64_t number; /* of the message, or of the receive */
	double begin;
	bool busy;
};

static struct fab fab;
static uint8_t *outcomes; /* by number of the message */
static uint64_t outcome_room;
static uint8_t region[REGION_LEN];
static struct fid_mr *region_mr;

static uint32_t len_max = 100000;
static unsigned long_every = 512;

/* Contents: a message or region has those from number % CONTENTS_STEP on. */
#define CONTENTS_STEP 4093u
static uint8_t *contents;

/** Makes the same contents in each process. */
static void make_contents(void)
{
	uint64_t random = 88172645463325252ull;

	contents = malloc(len_max + CONTENTS_STEP);
	FAB_TRUE(contents);
	for (uint32_t i = 0; i < len_max + CONTENTS_STEP; i++) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		contents[i] = (uint8_t)(random >> 56);
	}
}

static const uint8_t *contents_of(uint64_t number)
{
	return contents + number % CONTENTS_STEP;
}

static uint32_t len_of(uint64_t number)
{
	if (number % long_every == long_every - 1)
		return len_max;
	return number % 32 == 31 ? 3000 : (uint32_t)(sizeof(struct head) + number % 48);
}

static uint8_t *outcome_at(uint64_t number)
{
	while (number >= outcome_room) {
		uint64_t room = outcome_room ? 2 * outcome_room : 1u << 20;

		outcomes = realloc(outcomes, room);
		FAB_TRUE(outcomes);
		memset(outcomes + outcome_room, OPEN, room - outcome_room);
		outcome_room = room;
	}
	return &outcomes[number];
}

static void save(const char *path, uint64_t cnt)
{
	FILE *file = fopen(path, "w");

	FAB_TRUE(file);
	if (cnt)
		outcome_at(cnt - 1);
	FAB_TRUE(fwrite(outcomes, 1, cnt, file) == cnt);
	FAB_TRUE(!fclose(file));
}

static void open_fab(const char *ip, uint64_t access, uint64_t key)
{
	struct sockaddr_in src = fab_addr(ip, 0);
	struct fi_info *hints = fi_allocinfo();

	FAB_TRUE(hints);
	hints->caps = FI_TAGGED | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addr = malloc(sizeof(src));
	FAB_TRUE(hints->src_addr);
	memcpy(hints->src_addr, &src, sizeof(src));
	hints->src_addrlen = sizeof(src);
	FAB_CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &fab.info));
	fi_freeinfo(hints);
	fab_open_found(&fab);
	FAB_CHECK(
		fi_mr_reg(fab.domain, region, sizeof(region), access, 0, key, 0, &region_mr, NULL));
}

static struct slot *make_slots(unsigned cnt)
{
	struct slot *slots = calloc(cnt, sizeof(*slots));

	FAB_TRUE(slots);
	for (unsigned i = 0; i < cnt; i++) {
		slots[i].bytes = malloc(len_max);
		FAB_TRUE(slots[i].bytes);
	}
	return slots;
}

/** Lets others run when there is no completion. */
static void idle(bool found)
{
	static unsigned looks;

	looks = found ? 0 : looks + 1;
	if (looks > LOOKS)
		usleep(looks > LOOKS + NAPS ? LONG_NAP_US : NAP_US);
	else if (!found)
		sched_yield();
}

/* ---- receiver ---- */

static uint64_t *numbers; /* of the message, by receive; UINT64_MAX: none, an error */
static uint64_t posted, number_room, arrived, errors;

static void post_receive(struct slot *slot)
{
	if (posted == number_room) {
		number_room = number_room ? 2 * number_room : 1u << 20;
		numbers = realloc(numbers, number_room * sizeof(*numbers));
		FAB_TRUE(numbers);
	}
	slot->number = posted++;
	numbers[slot->number] = UINT64_MAX;
	FAB_CHECK(
		fi_trecv(fab.ep, slot->bytes, len_max, NULL, FI_ADDR_UNSPEC, TAG_MESSAGE, 0, slot));
}

static void check_message(const struct slot *slot, size_t len)
{
	struct head head;
	uint8_t *outcome;

	FAB_TRUE(len >= sizeof(head));
	memcpy(&head, slot->bytes, sizeof(head));
	FAB_TRUE(head.len == len && len == len_of(head.number));
	FAB_TRUE(!memcmp(slot->bytes + sizeof(head), contents_of(head.number), len - sizeof(head)));
	outcome = outcome_at(head.number);
	FAB_TRUE(*outcome == OPEN); /* none arrives twice */
	*outcome = DONE;
	numbers[slot->number] = head.number;
	arrived++;
}

static void check_order(void)
{
	uint64_t last = 0, cnt = 0;

	for (uint64_t i = 0; i < posted; i++) {
		if (numbers[i] == UINT64_MAX)
			continue;
		FAB_TRUE(!cnt || numbers[i] > last);
		last = numbers[i];
		cnt++;
	}
	FAB_TRUE(cnt == arrived);
}

static void post_end(uint64_t *end)
{
	FAB_CHECK(fi_trecv(fab.ep, end, sizeof(*end), NULL, FI_ADDR_UNSPEC, TAG_END, 0, end));
}

/** Handles the completion of a receive. */
static void received(uint64_t *end, const struct fi_cq_tagged_entry *entry, int err)
{
	errors += err != 0;
	if (entry->op_context == end) {
		post_end(end);
		return;
	}
	if (!err)
		check_message(entry->op_context, entry->len);
	post_receive(entry->op_context);
}

static bool is_stopped(const char *path)
{
	static unsigned calls;
	char stop[256];

	snprintf(stop, sizeof(stop), "%s.stop", path);
	return ++calls % 1000 == 0 && !access(stop, F_OK);
}

static void receive(const char *ip, const char *path)
{
	struct fi_cq_tagged_entry entry;
	struct slot *slots;
	uint64_t end = 0;
	int err;

	memcpy(region, contents_of(KEY), REGION_LEN);
	open_fab(ip, FI_REMOTE_READ, KEY);
	slots = make_slots(RECEIVES);
	for (unsigned i = 0; i < RECEIVES; i++)
		post_receive(&slots[i]);
	post_end(&end);
	printf("ready %d\n", ntohs(fab.addr.sin_port));
	fflush(stdout);
	while (!is_stopped(path)) {
		bool found = fab_poll(&fab, &entry, &err);

		if (found)
			received(&end, &entry, err);
		idle(found);
	}
	FAB_TRUE(end);
	check_order();
	save(path, end);
	printf("received %llu of %llu, %llu receives failed\n", (unsigned long long)arrived,
	       (unsigned long long)end, (unsigned long long)errors);
}

/* ---- sender ---- */

static struct slot sending[SENDS + 1]; /* the last one: the read */
static uint64_t failed, reads, failed_reads;
static double longest;

/** Ends the operation of a completion. */
static void ended(struct slot *slot, int err)
{
	double took = fab_seconds() - slot->begin;

	FAB_TRUE(slot->busy); /* each operation ends once */
	slot->busy = false;
	longest = took > longest ? took : longest;
	if (slot == &sending[SENDS]) {
		reads++;
		failed_reads += err != 0;
		FAB_TRUE(err || !memcmp(region, contents_of(KEY), REGION_LEN));
		return;
	}
	*outcome_at(slot->number) = err ? FAILED : DONE;
	failed += err != 0;
	if (err)
		usleep(10000);
}

static void progress(void)
{
	struct fi_cq_tagged_entry entry;
	int err;
	bool found = fab_poll(&fab, &entry, &err);

	for (unsigned i = 0; !found && i <= SENDS; i++)
		FAB_TRUE(!sending[i].busy || fab_seconds() - sending[i].begin < PATIENCE);
	if (found)
		ended(entry.op_context, err);
	idle(found);
}

/**
 * Sleeps without progress, nine times as long as it took to send since the last sleep. During a
 * tenth of the time, 50 ms of each 500, it returns at once.
 */
static void rest(void)
{
	static double last;
	double now = fab_seconds(), took = now - last;

	if ((unsigned)(now * 20) % 10)
		usleep((useconds_t)(9e6 * (took < 1e-3 ? took : 1e-3)));
	last = fab_seconds();
}

static void begin(struct slot *slot)
{
	while (slot->busy)
		progress();
	slot->busy = true;
	slot->begin = fab_seconds();
}

static void send_message(fi_addr_t to, uint64_t number)
{
	struct slot *slot = &sending[number % SENDS];
	struct head head = { .number = number, .len = len_of(number) };
	ssize_t ret;

	begin(slot);
	slot->number = number;
	memcpy(slot->bytes, &head, sizeof(head));
	memcpy(slot->bytes + sizeof(head), contents_of(number), head.len - sizeof(head));
	while ((ret = fi_tsend(fab.ep, slot->bytes, head.len, NULL, to, TAG_MESSAGE, slot)) ==
	       -FI_EAGAIN)
		progress();
	FAB_CHECK(ret);
}

static void read_region(fi_addr_t to)
{
	struct slot *slot = &sending[SENDS];
	ssize_t ret;

	begin(slot);
	memset(region, 0, sizeof(region));
	while ((ret = fi_read(fab.ep, region, sizeof(region), fi_mr_desc(region_mr), to, 0, KEY,
			      slot)) == -FI_EAGAIN)
		progress();
	FAB_CHECK(ret);
}

static void settle(void)
{
	for (unsigned i = 0; i <= SENDS; i++)
		while (sending[i].busy)
			progress();
}

/** Sends the number of messages until it has arrived. */
static void send_end(fi_addr_t to, uint64_t cnt)
{
	static uint64_t number;
	uint64_t before;

	number = cnt;
	do {
		before = failed;
		begin(&sending[0]);
		sending[0].number = cnt;
		FAB_CHECK(
			fi_tsend(fab.ep, &number, sizeof(number), NULL, to, TAG_END, &sending[0]));
		settle();
	} while (failed != before);
}

static void send_all(char **argv)
{
	struct sockaddr_in dst = fab_addr(argv[2], atoi(argv[3]));
	uint64_t number, cnt = strtoull(argv[5], NULL, 10), lost;
	double end = 0;
	struct slot *slots = make_slots(SENDS);
	fi_addr_t to;

	memcpy(sending, slots, SENDS * sizeof(*slots));
	open_fab(getenv("SEND_FROM") ? getenv("SEND_FROM") : argv[2], FI_READ, 1);
	to = fab_insert(&fab, &dst);
	for (number = 0; number < cnt || fab_seconds() < end; number++) {
		send_message(to, number);
		if (!number) {
			settle();
			end = fab_seconds() + atof(argv[6]);
			printf("began\n");
			fflush(stdout);
		}
		if (number % READ_EVERY == 0)
			read_region(to);
		if (number % SENDS == SENDS - 1)
			rest();
	}
	settle();
	lost = failed;
	send_end(to, number);
	save(argv[4], number);
	printf("sent %llu, %llu failed, %llu reads, %llu failed, longest %.0f ms\n",
	       (unsigned long long)number, (unsigned long long)lost, (unsigned long long)reads,
	       (unsigned long long)failed_reads, longest * 1e3);
}

/* ---- both ---- */

static uint64_t load(const char *path, uint8_t **bytes)
{
	FILE *file = fopen(path, "r");
	long len;

	FAB_TRUE(file && !fseek(file, 0, SEEK_END));
	len = ftell(file);
	FAB_TRUE(len > 0);
	rewind(file);
	*bytes = malloc((size_t)len);
	FAB_TRUE(*bytes && fread(*bytes, 1, (size_t)len, file) == (size_t)len);
	fclose(file);
	return (uint64_t)len;
}

/** Prints the lost messages, as ranges. */
static void print_lost(const uint8_t *sent, const uint8_t *received, uint64_t cnt)
{
	uint64_t begin, i = 0;

	while (i < cnt) {
		begin = i;
		while (i < cnt && sent[i] == DONE && received[i] != DONE)
			i++;
		if (i > begin)
			printf("lost: %llu to %llu; before: %d, behind: %d\n",
			       (unsigned long long)begin, (unsigned long long)i - 1,
			       begin ? sent[begin - 1] : OPEN, i < cnt ? sent[i] : OPEN);
		else
			i++;
	}
}

static int compare(const char *sent_path, const char *received_path)
{
	uint64_t lost = 0, open = 0, errors_arrived = 0, cnt;
	uint8_t *sent, *received;

	cnt = load(sent_path, &sent);
	FAB_TRUE(load(received_path, &received) == cnt);
	for (uint64_t i = 0; i < cnt; i++) {
		open += sent[i] == OPEN;
		lost += sent[i] == DONE && received[i] != DONE;
		errors_arrived += sent[i] == FAILED && received[i] == DONE;
	}
	print_lost(sent, received, cnt);
	printf("%llu messages: %llu completed and lost, %llu not ended, %llu failed and arrived\n",
	       (unsigned long long)cnt, (unsigned long long)lost, (unsigned long long)open,
	       (unsigned long long)errors_arrived);
	return lost || open;
}

int main(int argc, char **argv)
{
	if (getenv("FLOOD_LONG")) {
		len_max = (uint32_t)atoi(getenv("FLOOD_LONG"));
		long_every = 16;
	}
	make_contents();
	if (argc == 4 && !strcmp(argv[1], "receive"))
		receive(argv[2], argv[3]);
	else if (argc == 7 && !strcmp(argv[1], "send"))
		send_all(argv);
	else if (argc == 4 && !strcmp(argv[1], "compare"))
		return compare(argv[2], argv[3]);
	else
		return 2;
	return 0;
}
