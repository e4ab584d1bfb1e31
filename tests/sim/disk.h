/* A journal in memory in place of the one on disk: the same interface (journal/journal.h, at link time), with a power switch.
 * It outlives the engines that use it, as a disk outlives processes. */
#ifndef ORBIT_TESTS_SIM_DISK_H
#define ORBIT_TESTS_SIM_DISK_H

#include "journal/journal.h"

/* What becomes of the next transaction: a commit, or several that were on their way together. All but the first are a process
 * that ends in it. */
enum fate {
  FATE_GOOD = 0,
  FATE_LOST,      /* crash before the sync: nothing of it reached the disk */
  FATE_TORN,      /* crash in the middle: some first bytes of it did, perhaps whole commits among them */
  FATE_KEPT,      /* crash behind the sync, before anybody was answered */
  FATE_SYNC_LOST, /* the sync failed, and nothing is there */
  FATE_SYNC_KEPT, /* the sync failed, and yet all is there */
  FATE_EXTEND,    /* the disk broke when the file was to be made longer, before anything was decided */
  FATE_COUNT
};

/* How much room there is. */
enum room { ROOM_PLENTY = 0, ROOM_RESERVE /* full: the reserve is left */, ROOM_NONE /* the reserve is used up too */ };

/* An empty disk; genesis, secret and node id follow from the seed. */
struct journal *disk_new(uint64_t seed);
void disk_free(struct journal *disk);
/* The power is on again: cuts what was torn and takes the log as it stands. What is wrong with it, a static sentence; NULL:
 * nothing. */
const char *disk_open(struct journal *disk);
void disk_set_fate(struct journal *disk, enum fate fate, uint64_t random);
/* The fate that was set, once it has come true; GOOD until then. */
enum fate disk_fate_came(const struct journal *disk);
void disk_set_room(struct journal *disk, enum room room);
enum room disk_room(const struct journal *disk);
/* How many commits are on their way (journal_hand_over). */
unsigned disk_queued(const struct journal *disk);
/* The oldest so many of them arrive, as one transaction with the fate that was set. */
void disk_arrive(struct journal *disk, unsigned count);
/* The power goes while they are on their way: some first bytes of them are there, not all. */
void disk_cut(struct journal *disk, uint64_t random);
/* The record of seq, 1 … disk_count: valid until the next commit. */
struct bytes disk_record(const struct journal *disk, uint64_t seq);
uint64_t disk_count(const struct journal *disk);
/* Over all bytes of the log. */
uint64_t disk_digest(const struct journal *disk);

#endif
