/* The system's zones for tests of what is pure. */
#ifndef ORBIT_TESTS_CORE_ZONES_H
#define ORBIT_TESTS_CORE_ZONES_H

#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/zone.h"

/* The zone of this name from the system's files, or NULL when it has none: then why is printed. zone_free. */
static inline struct zone *system_zone(const char *name) {
  char path[256];
  struct zone *zone = NULL;
  (void)snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", name);
  struct bytes file = test_file_read(path);
  if (file.data == NULL) {
    print_message("skipped: %s is not there (package tzdata)\n", path);
    return NULL;
  }
  if (zone_parse(file, &zone) != STATUS_OK) fail_msg("%s cannot be read", path);
  free((void *)(uintptr_t)file.data);
  return zone;
}

#endif
