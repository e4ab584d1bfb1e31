/* The store of views/ in memory in place of the one on disk: the same interface (journal/views_store.h, at link time), with
 * faults. What was committed outlives the process that wrote it, as on a disk. */
#ifndef ORBIT_TESTS_SIM_VIEWS_H
#define ORBIT_TESTS_SIM_VIEWS_H

#include "journal/views_store.h"

/* What becomes of the store's next use that it can happen to. */
enum views_fate {
  VIEWS_GOOD = 0,
  VIEWS_FULL,    /* a commit finds no room: nothing of it is there */
  VIEWS_LOST,    /* a commit fails, and nothing of it is there */
  VIEWS_KEPT,    /* a commit fails, and yet all of it is there */
  VIEWS_DAMAGED, /* a row that the writer asks for cannot be read */
  VIEWS_FATE_COUNT
};

struct views_disk;
struct views_disk *views_disk_new(void);
void views_disk_free(struct views_disk *disk); /* it is open nowhere */
/* Every directory that is opened or removed from here on is this one; NULL: there is no disk. */
void views_disk_mount(struct views_disk *disk);
void views_disk_set_fate(struct views_disk *disk, enum views_fate fate);
/* The fate that was set, once it has come true; GOOD until then. */
enum views_fate views_disk_fate_came(const struct views_disk *disk);

#endif
