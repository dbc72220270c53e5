/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fields of the tag at their edges, and which messages a receive with ignored bits takes. */
#include <criterion/criterion.h>

#include "openmpi/pml_copyrpc_tag.h"

static const uint32_t contexts[] = { 0, 1, 77, PML_CONTEXT_MAX - 1, PML_CONTEXT_MAX };
static const int sources[] = { 0, 1, 4095, PML_RANKS_MAX - 2, PML_RANKS_MAX - 1 };
static const int tags[] = { 0,  1,   32767,   PML_TAG_MAX - 1, PML_TAG_MAX,
			    -1, -27, -200000, -PML_TAG_MAX / 2 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Returns whether a receive takes a message: the rule of fi_tagged(3). */
static bool takes(uint64_t receive, uint64_t ignore, uint64_t message)
{
	return (receive | ignore) == (message | ignore);
}

Test(tag, each_field_comes_back)
{
	for (size_t c = 0; c < COUNT(contexts); c++)
		for (size_t s = 0; s < COUNT(sources); s++)
			for (size_t t = 0; t < COUNT(tags); t++) {
				uint64_t tag = pml_tag_pack(contexts[c], sources[s], tags[t]);

				cr_assert_eq(pml_tag_source(tag), sources[s]);
				cr_assert_eq(pml_tag_user(tag), tags[t]);
				cr_assert_eq(tag >> PML_CONTEXT_SHIFT, contexts[c]);
				cr_assert_eq(tag & (PML_TAG_SYNC | PML_TAG_ACK), 0);
			}
}

Test(tag, fields_fill_62_bits_and_do_not_overlap)
{
	uint64_t context = pml_tag_pack(PML_CONTEXT_MAX, 0, 0);
	uint64_t source = pml_tag_pack(0, PML_RANKS_MAX - 1, 0);
	uint64_t tag = pml_tag_pack(0, 0, -1);

	cr_assert_eq(context & source, 0);
	cr_assert_eq(context & tag, 0);
	cr_assert_eq(source & tag, 0);
	cr_assert_eq(context | source | tag, UINT64_MAX >> 2);
	cr_assert_eq(source, PML_SOURCE_MASK);
}

Test(tag, any_tag_takes_all_tags_of_users_and_none_of_collectives)
{
	uint64_t receive = pml_tag_pack(3, 9, 0), ignore = PML_ANY_TAG_MASK | PML_TAG_SYNC;

	for (size_t t = 0; t < COUNT(tags); t++) {
		cr_assert_eq(takes(receive, ignore, pml_tag_pack(3, 9, tags[t])), tags[t] >= 0);
		cr_assert_not(takes(receive, ignore, pml_tag_pack(3, 8, tags[t])));
		cr_assert_not(takes(receive, ignore, pml_tag_pack(2, 9, tags[t])));
	}
}

Test(tag, any_source_takes_each_source_and_one_tag)
{
	uint64_t receive = pml_tag_pack(3, 0, 5), ignore = PML_SOURCE_MASK | PML_TAG_SYNC;

	for (size_t s = 0; s < COUNT(sources); s++) {
		cr_assert(takes(receive, ignore, pml_tag_pack(3, sources[s], 5)));
		cr_assert(takes(receive, ignore, pml_tag_pack(3, sources[s], 5) | PML_TAG_SYNC));
		cr_assert_not(takes(receive, ignore, pml_tag_pack(3, sources[s], 4)));
		cr_assert_not(takes(receive, ignore, pml_tag_pack(4, sources[s], 5)));
	}
}

Test(tag, acknowledgement_names_receiver_and_tag_and_no_receive_takes_it)
{
	for (size_t t = 0; t < COUNT(tags); t++) {
		uint64_t message = pml_tag_pack(11, 4, tags[t]) | PML_TAG_SYNC;
		uint64_t ack = pml_tag_ack(message, 6);

		cr_assert_eq(ack, PML_TAG_ACK | pml_tag_pack(11, 6, tags[t]));
		cr_assert_eq(ack, pml_tag_ack(pml_tag_pack(11, 4, tags[t]), 6));
		cr_assert_not(takes(pml_tag_pack(11, 0, 0),
				    PML_SOURCE_MASK | PML_ANY_TAG_MASK | PML_TAG_SYNC, ack));
	}
}

Test(tag, receive_of_a_blocking_probe_takes_no_message)
{
	uint64_t receive = pml_tag_pack(3, 9, 0) | PML_TAG_NEVER;

	for (size_t t = 0; t < COUNT(tags); t++) {
		uint64_t message = pml_tag_pack(3, 9, tags[t]);

		cr_assert_not(takes(receive, PML_TAG_SYNC, message));
		cr_assert_not(takes(receive, PML_TAG_SYNC, message | PML_TAG_SYNC));
	}
}

/* Ranges of Open MPI's coll_tags.h. */
enum {
	BLOCKING_FIRST = -7,
	BLOCKING_LAST = -32, /* of 5.0 */
	NONBLOCKING_FIRST = -27,
	NONBLOCKING_LAST = -INT32_MAX / 2 + 1,
	NEIGHBOR_FIRST = NONBLOCKING_LAST - 1,
	NEIGHBOR_LAST = NEIGHBOR_FIRST - 1024,
	STEP = 13, /* samples all of them modulo 2^23, ten times in a range of 2^30 */
};

/* Returns whether the bits are those of a message and of no user's. */
static bool is_collective(uint64_t bits)
{
	return bits >> (PML_TAG_BITS - 1) == 1 && (bits & PML_TAG_MAX) != 0;
}

Test(tag, negative_tags_of_the_whole_range_stay_negative_and_leave_one_value_free)
{
	for (int64_t tag = -1; tag >= INT32_MIN; tag -= 1 + -tag / 5000) {
		uint64_t bits = pml_tag_bits((int)tag);

		cr_assert(is_collective(bits), "tag %d", (int)tag);
		cr_assert_lt(pml_tag_user(pml_tag_pack(1, 2, (int)tag)), 0);
	}
	cr_assert(is_collective(pml_tag_bits(INT32_MIN)));
	cr_assert(is_collective(pml_tag_bits(-(1 << 23))));
}

Test(tag, blocking_collectives_share_a_tag_with_none_of_another_range)
{
	for (int tag = NEIGHBOR_LAST; tag < BLOCKING_LAST; tag += STEP) {
		uint64_t bits = pml_tag_bits(tag);

		if (pml_tag_user(bits) >= BLOCKING_LAST)
			cr_assert_fail("tag %d has the bits of %d", tag, pml_tag_user(bits));
	}
	for (int tag = BLOCKING_FIRST; tag >= BLOCKING_LAST; tag--)
		cr_assert_eq(pml_tag_user(pml_tag_bits(tag)), tag);
}

Test(tag, neighbourhood_collectives_share_a_tag_with_none_of_another_range)
{
	uint64_t last = pml_tag_bits(NEIGHBOR_LAST), first = pml_tag_bits(NEIGHBOR_FIRST);

	for (int tag = NEIGHBOR_FIRST; tag > NEIGHBOR_LAST; tag--)
		cr_assert_eq(pml_tag_bits(tag) - 1, pml_tag_bits(tag - 1));
	for (int tag = NONBLOCKING_LAST; tag <= BLOCKING_FIRST; tag += STEP) {
		uint64_t bits = pml_tag_bits(tag);

		if (bits >= last && bits <= first)
			cr_assert_fail("tag %d has the bits of a neighbourhood collective", tag);
	}
}

Test(tag, nonblocking_collectives_that_share_a_tag_are_millions_apart)
{
	static int32_t seen[1 << (PML_TAG_BITS - 1)];

	for (int tag = NONBLOCKING_FIRST; tag > -(1 << 25); tag--) {
		int32_t *before = &seen[pml_tag_bits(tag) & PML_TAG_MAX];

		if (*before && *before - tag < 4000000)
			cr_assert_fail("tags %d and %d", *before, tag);
		*before = tag;
	}
}
