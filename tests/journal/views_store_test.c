/* The store of views: rows in order, all or nothing, and refusals that say what is wrong. */
#include "support/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "journal/views_store.h"

static const char *const names[] = {"one", "two"};
static const char *const others[] = {"three"};

struct place {
  char *parent;
  char directory[300], file[320];
};

static int make_place(void **context) {
  struct place *place = calloc(1, sizeof *place);
  place->parent = test_directory_make();
  (void)snprintf(place->directory, sizeof place->directory, "%s/views", place->parent);
  (void)snprintf(place->file, sizeof place->file, "%s/data.mdb", place->directory);
  *context = place;
  return 0;
}

static int remove_place(void **context) {
  struct place *place = *context;
  test_directory_remove(place->parent);
  free(place);
  return 0;
}

static enum status try_open(const struct place *place, bool read_only, const char *const *tables, unsigned count,
                            struct views **ret_views, struct fault *fault) {
  struct views_options options = {
      .map_bytes = UINT64_C(64) << 20, .read_only = read_only, .tables = tables, .table_count = count};
  *fault = (struct fault){.message = ""};
  return views_open(place->directory, &options, ret_views, fault);
}

static struct views *open_views(const struct place *place, bool read_only) {
  struct views *views;
  struct fault fault;
  if (try_open(place, read_only, names, 2, &views, &fault) != STATUS_OK) fail_msg("open: %s", fault.message);
  return views;
}

static void begin(struct views *views, bool write) {
  struct fault fault;
  assert_int_equal(views_begin(views, write, &fault), STATUS_OK);
}

static void commit(struct views *views) {
  struct fault fault;
  assert_int_equal(views_commit(views, &fault), STATUS_OK);
}

static void put(struct views *views, unsigned table, const char *key, const char *value, bool append) {
  assert_int_equal(views_put(views, table, bytes_text(key), bytes_text(value), append), STATUS_OK);
}

static void expect(struct views *views, unsigned table, const char *key, const char *value) {
  struct bytes found;
  assert_int_equal(views_get(views, table, bytes_text(key), &found), value != NULL ? STATUS_OK : STATUS_END);
  if (value != NULL) assert_true(bytes_equal_text(found, value));
}

struct walked {
  char text[128];
  size_t size, limit;
};

static enum status walk(void *context, struct bytes key, struct bytes value) {
  struct walked *walked = context;
  walked->size += (size_t)snprintf(walked->text + walked->size, sizeof walked->text - walked->size, "%.*s=%.*s ", (int)key.size,
                                   (const char *)key.data, (int)value.size, (const char *)value.data);
  return --walked->limit == 0 ? STATUS_END : STATUS_OK;
}

static void expect_walk(struct views *views, unsigned table, size_t limit, enum status status, const char *text) {
  struct walked walked = {.limit = limit};
  assert_int_equal(views_each(views, table, walk, &walked), status);
  assert_string_equal(walked.text, text);
}

static void rows_stand_in_the_order_of_keys(void **context) {
  struct views *views = open_views(*context, false);
  begin(views, true);
  put(views, 0, "b", "2", true);
  put(views, 0, "c", "3", true);
  put(views, 0, "a", "1", true); /* a wrong guess */
  put(views, 0, "c", "three", true);
  put(views, 0, "ab", "long", false);
  put(views, 1, "z", "other table", false);
  commit(views);
  views_close(views);
  views = open_views(*context, true);
  begin(views, false);
  expect_walk(views, 0, 100, STATUS_OK, "a=1 ab=long b=2 c=three ");
  expect_walk(views, 0, 2, STATUS_END, "a=1 ab=long ");
  expect_walk(views, 1, 100, STATUS_OK, "z=other table ");
  expect(views, 0, "c", "three");
  expect(views, 0, "z", NULL);
  expect(views, 1, "z", "other table");
  assert_int_equal(views_count(views, 0), 4);
  views_close(views);
}

static void what_is_deleted_is_gone(void **context) {
  struct views *views = open_views(*context, false);
  begin(views, true);
  put(views, 0, "a", "1", false);
  put(views, 0, "b", "", false);
  assert_int_equal(views_delete(views, 0, bytes_text("a")), STATUS_OK);
  assert_int_equal(views_delete(views, 0, bytes_text("a")), STATUS_OK);
  commit(views);
  begin(views, false);
  expect(views, 0, "a", NULL);
  expect(views, 0, "b", "");
  views_close(views);
}

static void what_is_given_up_was_never_there(void **context) {
  struct views *views = open_views(*context, false);
  begin(views, true);
  put(views, 0, "a", "1", false);
  commit(views);
  begin(views, true);
  put(views, 0, "a", "2", false);
  put(views, 0, "b", "2", false);
  views_abort(views);
  begin(views, true);
  put(views, 0, "c", "3", false);
  views_close(views); /* with a transaction open */
  views = open_views(*context, false);
  begin(views, false);
  expect_walk(views, 0, 100, STATUS_OK, "a=1 ");
  views_close(views);
}

/* Values of many pages come back whole, and the file is as long as its pages want it, also after much was taken away. */
static void large_values_and_many_changes(void **context) {
  enum { large = 65520, rounds = 30 }; /* as the chunks of a checkpoint */
  struct place *place = *context;
  uint8_t *value = malloc(large);
  for (unsigned round = 0; round < rounds; round++) {
    struct views *views = open_views(place, false);
    char key[8];
    begin(views, true);
    memset(value, (int)round, large);
    (void)snprintf(key, sizeof key, "%03u", round);
    assert_int_equal(views_put(views, 0, bytes_text(key), bytes_of(value, large), true), STATUS_OK);
    (void)snprintf(key, sizeof key, "%03u", round / 2);
    if (round % 2 == 1) assert_int_equal(views_delete(views, 0, bytes_text(key)), STATUS_OK);
    commit(views);
    begin(views, false);
    struct bytes found;
    (void)snprintf(key, sizeof key, "%03u", round);
    assert_int_equal(views_get(views, 0, bytes_text(key), &found), STATUS_OK);
    assert_true(bytes_equal(found, bytes_of(value, large)));
    views_close(views);
  }
  free(value);
}

/* ---- refusals ---- */

static void refuse(const struct place *place, bool read_only, const char *const *tables, unsigned count, enum status status,
                   const char *says) {
  struct views *views;
  struct fault fault;
  assert_int_equal(try_open(place, read_only, tables, count, &views, &fault), status);
  if (strstr(fault.message, says) == NULL) fail_msg("\"%s\" does not say \"%s\"", fault.message, says);
}

static void what_is_not_there(void **context) {
  struct place *place = *context;
  refuse(place, true, names, 2, STATUS_NOT_FOUND, place->directory);
  assert_int_equal(access(place->directory, F_OK), -1); /* reading makes nothing */
}

static void other_tables(void **context) {
  struct place *place = *context;
  struct fault fault;
  struct views *views;
  assert_int_equal(try_open(place, false, others, 1, &views, &fault), STATUS_OK);
  views_close(views);
  refuse(place, true, names, 2, STATUS_FOREIGN, "tables");
}

static void write_file(const struct place *place, struct bytes bytes) {
  int fd = open(place->file, O_WRONLY | O_TRUNC);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes.data, bytes.size), bytes.size);
  assert_int_equal(close(fd), 0);
}

static void damaged_files(void **context) {
  struct place *place = *context;
  struct views *views = open_views(place, false);
  begin(views, true);
  put(views, 0, "a", "1", false);
  commit(views);
  views_close(views);
  struct bytes sound = test_file_read(place->file);
  write_file(place, bytes_of(sound.data, sound.size - 4096));
  for (int read_only = 0; read_only <= 1; read_only++) refuse(place, read_only, names, 2, STATUS_CORRUPT, "ends before");
  write_file(place, bytes_text("no LMDB environment"));
  for (int read_only = 0; read_only <= 1; read_only++) refuse(place, read_only, names, 2, STATUS_CORRUPT, place->directory);
  write_file(place, sound);
  views = open_views(place, true);
  begin(views, false);
  expect(views, 0, "a", "1");
  views_close(views);
  free((void *)(uintptr_t)sound.data);
}

static void removing(void **context) {
  struct place *place = *context;
  assert_int_equal(views_remove(place->directory), STATUS_OK);
  views_close(open_views(place, false));
  assert_int_equal(views_remove(place->directory), STATUS_OK);
  assert_int_equal(access(place->directory, F_OK), -1);
  struct views *views = open_views(place, false); /* and made again */
  begin(views, false);
  assert_int_equal(views_count(views, 0), 0);
  views_close(views);
}

/* Its map is full: nothing of the transaction is there, and it says so. */
static void a_full_map(void **context) {
  struct views_options options = {.map_bytes = 1 << 20, .tables = names, .table_count = 2};
  struct place *place = *context;
  struct views *views;
  struct fault fault;
  static const uint8_t value[4000];
  enum status status = STATUS_OK;
  assert_int_equal(views_open(place->directory, &options, &views, &fault), STATUS_OK);
  begin(views, true);
  for (unsigned i = 0; i < 1000 && status == STATUS_OK; i++) {
    char key[8];
    (void)snprintf(key, sizeof key, "%03u", i);
    status = views_put(views, 0, bytes_text(key), bytes_of(value, sizeof value), true);
  }
  assert_int_equal(status, STATUS_NO_SPACE);
  views_abort(views);
  begin(views, false);
  assert_int_equal(views_count(views, 0), 0);
  views_close(views);
}

/* ---- beside other processes ---- */

static void rewrite(struct views *views, unsigned rows) {
  static const uint8_t value[4000];
  begin(views, true);
  for (unsigned i = 0; i < rows; i++) {
    char key[8];
    (void)snprintf(key, sizeof key, "%03u", i);
    assert_int_equal(views_put(views, 0, bytes_text(key), bytes_of(value, sizeof value), false), STATUS_OK);
  }
  commit(views);
}

static off_t file_size(const struct place *place) {
  struct stat found;
  assert_int_equal(stat(place->file, &found), 0);
  return found.st_size;
}

/* A reader that is killed with its snapshot in hand does not make the file grow with every commit. */
static void the_dead_pin_nothing(void **context) {
  struct place *place = *context;
  int ends[2];
  char begun = 0;
  struct views *views = open_views(place, false);
  rewrite(views, 50);
  off_t before = file_size(place);
  views_close(views);
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    struct views *held;
    struct fault fault;
    bool reads = try_open(place, true, names, 2, &held, &fault) == STATUS_OK && views_begin(held, false, &fault) == STATUS_OK;
    if (write(ends[1], reads ? "y" : "n", 1) == 1) (void)pause();
    _exit(1);
  }
  assert_int_equal(read(ends[0], &begun, 1), 1);
  assert_int_equal(begun, 'y');
  views = open_views(place, false);
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(waitpid(child, NULL, 0), child);
  for (unsigned i = 0; i < 40; i++) rewrite(views, 50);
  assert_true(file_size(place) < 4 * before);
  views_close(views);
  (void)close(ends[0]), (void)close(ends[1]);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)
  const struct CMUnitTest tests[] = {
      ROW(rows_stand_in_the_order_of_keys),
      ROW(what_is_deleted_is_gone),
      ROW(what_is_given_up_was_never_there),
      ROW(large_values_and_many_changes),
      ROW(what_is_not_there),
      ROW(other_tables),
      ROW(damaged_files),
      ROW(removing),
      ROW(a_full_map),
      ROW(the_dead_pin_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
