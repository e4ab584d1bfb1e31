/* The system's time zones: names of its list alone, other names of a zone, and what is not there or cannot be read. */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/zones.h"

static void write_file(const char *directory, const char *name, const char *text) {
  char path[512];
  (void)snprintf(path, sizeof path, "%s/%s", directory, name);
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  assert_int_equal(fclose(file), 0);
}

static enum status get(struct zones *zones, const char *name, struct fault *fault) {
  const struct zone *zone = NULL;
  *fault = (struct fault){.status = STATUS_OK};
  enum status status = zones_get(zones, bytes_text(name), &zone, fault);
  assert_true((status == STATUS_OK) == (zone != NULL));
  return status;
}

static void names_of_the_system(void **context) {
  (void)context;
  static const char *const good[] = {
      "UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "US/Eastern", "Etc/GMT+5", "Asia/Calcutta", "America/New_York"};
  static const char *const bad[] = {"",
                                    "utc",
                                    "Europe",
                                    "Europe/",
                                    "Europe/Berlin/",
                                    "/Europe/Berlin",
                                    "Europe//Berlin",
                                    "./Europe/Berlin",
                                    "../zoneinfo/Europe/Berlin",
                                    "../../etc/passwd",
                                    "/etc/localtime",
                                    "posix/Europe/Berlin",
                                    "right/Europe/Berlin",
                                    "tzdata.zi",
                                    "zone.tab",
                                    "EU",
                                    "Berlin",
                                    "Europe/Berlin\nUTC",
                                    " Europe/Berlin",
                                    "Z",
                                    "CET-1CEST,M3.5.0,M10.5.0/3"};
  struct zones *zones = zones_new(NULL);
  struct fault fault;
  if (get(zones, "Europe/Berlin", &fault) == STATUS_UNAVAILABLE) {
    print_message("skipped: the system has no time zones (package tzdata)\n");
    zones_free(zones);
    return;
  }
  for (unsigned round = 0; round < 2; round++)
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
      if (get(zones, good[i], &fault) != STATUS_OK) fail_msg("%s: %s", good[i], fault.message);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    if (get(zones, bad[i], &fault) != STATUS_INVALID_ARGUMENT) fail_msg("\"%s\" passed", bad[i]);
    assert_string_equal(fault.field, "/timezone");
  }
  const struct zone *zone;
  assert_int_equal(zones_get(zones, bytes_of("UTC\0x", 5), &zone, &fault), STATUS_INVALID_ARGUMENT);
  zones_free(zones);
}

static void directories_of_our_own(void **context) {
  (void)context;
  char *directory = test_directory_make();
  struct fault fault;
  struct zones *zones = zones_new(directory);
  assert_int_equal(get(zones, "UTC", &fault), STATUS_OK); /* needs no file */
  assert_int_equal(get(zones, "Moon/Tycho", &fault), STATUS_UNAVAILABLE);
  write_file(directory, "zone.tab", "# comment\nXX\t+0000+00000\tMoon/Tycho\tremark\nXX\t+0000+00000\tMoon/Kepler\n");
  assert_int_equal(get(zones, "Moon/Tycho", &fault), STATUS_UNAVAILABLE); /* listed now, but there is no file */
  assert_int_equal(get(zones, "XX", &fault), STATUS_INVALID_ARGUMENT);
  char path[512];
  (void)snprintf(path, sizeof path, "%s/Moon", directory);
  assert_int_equal(mkdir(path, 0700), 0);
  write_file(directory, "Moon/Tycho", "no zone at all");
  assert_int_equal(get(zones, "Moon/Tycho", &fault), STATUS_UNAVAILABLE);
  struct bytes utc = test_file_read("/usr/share/zoneinfo/Etc/UTC");
  if (utc.data != NULL) {
    (void)snprintf(path, sizeof path, "%s/Moon/Kepler", directory);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(utc.data, 1, utc.size, file), utc.size);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(get(zones, "Moon/Kepler", &fault), STATUS_OK);
    free((void *)(uintptr_t)utc.data);
  }
  zones_free(zones);

  /* The compact list comes first, where there is one. */
  write_file(directory, "tzdata.zi", "# version x\nR a 1 o - O 1 0 0 -\nZ Sea/One 0 - X\nL Sea/One Sea/Two\nZoo Sea/Three\n");
  zones = zones_new(directory);
  assert_int_equal(get(zones, "Sea/Two", &fault), STATUS_UNAVAILABLE);
  assert_int_equal(get(zones, "Sea/One", &fault), STATUS_UNAVAILABLE);
  assert_int_equal(get(zones, "Sea/Three", &fault), STATUS_INVALID_ARGUMENT);
  assert_int_equal(get(zones, "Moon/Kepler", &fault), STATUS_INVALID_ARGUMENT);
  zones_free(zones);
  test_directory_remove(directory);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_of_the_system), cmocka_unit_test(directories_of_our_own)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
