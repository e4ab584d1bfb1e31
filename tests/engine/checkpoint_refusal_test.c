/* What of a checkpoint is not believed, and what is said then; and how it is compared with a fold that it had no part in. */
#include "engine/checkpoint_stage.h"

#include <fcntl.h>
#include <unistd.h>

#include "journal/copy.h"
#include "journal/views_store.h"
#include "state/rows.h"

static void nothing_is_there(void **context) {
  struct stage *stage = *context;
  expect_refused(stage, STATUS_NOT_FOUND, "views");
  begin_following(stage);
  stop_following(stage);
  expect_refused(stage, STATUS_NOT_FOUND, "nothing is in it yet");
}

static void deleted_views_are_made_again(void **context) {
  struct stage *stage = *context;
  stage->random = 3;
  walk(stage, 100);
  follow_all(stage);
  stop_following(stage);
  (void)expect_equal(stage);
  assert_int_equal(checkpoint_remove(stage->views), STATUS_OK);
  assert_int_equal(access(stage->views, F_OK), -1);
  assert_int_equal(checkpoint_remove(stage->views), STATUS_OK); /* twice is fine */
  expect_refused(stage, STATUS_NOT_FOUND, "views");
  follow_all(stage);
  stop_following(stage);
  (void)expect_equal(stage);
}

/* The bytes of a file, kept aside and put back. */
static struct bytes file_take(const struct stage *stage, const char *name) {
  char path[400];
  (void)snprintf(path, sizeof path, "%s/%s", stage->world.directory, name);
  struct bytes file = test_file_read(path);
  assert_non_null(file.data);
  return file;
}

static void file_put(const struct stage *stage, const char *name, struct bytes file) {
  char path[400];
  (void)snprintf(path, sizeof path, "%s/%s", stage->world.directory, name);
  int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, file.data, file.size), file.size);
  assert_int_equal(close(fd), 0);
}

static void expect_cannot_go_on(struct stage *stage, enum status status) {
  struct fault fault;
  struct checkpoint *checkpoint;
  assert_int_equal(checkpoint_open(stage->views, 0, stage->world.journal, &checkpoint, &fault), status);
}

/* An older copy of the log was put back: the checkpoint is of a longer one. */
static void ahead_of_a_restored_log(void **context) {
  struct stage *stage = *context;
  (void)world_submitted(&stage->world, "before");
  struct bytes log = file_take(stage, "log/data.mdb");
  (void)world_submitted(&stage->world, "after");
  follow_all(stage);
  stop_following(stage);
  engine_free(stage->world.engine);
  journal_close(stage->world.journal, false);
  file_put(stage, "log/data.mdb", log);
  struct journal_options options = {.map_bytes = UINT64_C(1) << 30};
  struct fault fault;
  assert_int_equal(journal_open(stage->world.directory, &options, &stage->world.journal, &fault), STATUS_OK);
  expect_refused(stage, STATUS_FOREIGN, "of a longer log");
  expect_cannot_go_on(stage, STATUS_FOREIGN);
  /* … and the restored one went another way since, and further. */
  struct state *state = state_new();
  assert_int_equal(journal_replay(stage->world.journal, 0, 0, fold, state, &fault), STATUS_OK);
  struct engine_options engine = {.id_seed = 99, .version = "test"};
  stage->world.engine = engine_new(stage->world.journal, state, &engine);
  assert_int_equal(engine_start(stage->world.engine, stage->world.now_us, &fault), STATUS_OK);
  for (unsigned i = 0; i < 10; i++) (void)world_submitted(&stage->world, key_text(stage));
  expect_refused(stage, STATUS_FOREIGN, "is not the log's");
  expect_cannot_go_on(stage, STATUS_FOREIGN);
  free((void *)(uintptr_t)log.data);
}

static void of_another_log(void **context) {
  struct stage *stage = *context, *other;
  assert_int_equal(open_stage((void **)&other), 0);
  follow_all(other);
  stop_following(other);
  begin_following(stage);
  stop_following(stage);
  struct bytes views = file_take(other, "views/data.mdb");
  file_put(stage, "views/data.mdb", views);
  expect_refused(stage, STATUS_FOREIGN, "another genesis");
  expect_cannot_go_on(stage, STATUS_FOREIGN);
  free((void *)(uintptr_t)views.data);
  assert_int_equal(close_stage((void **)&other), 0);
}

/* ---- changed rows ---- */

static struct views *open_rows(struct stage *stage) {
  struct views_options options = {.tables = rows_table_names, .table_count = ROWS_TABLE_COUNT};
  struct views *views;
  struct fault fault;
  assert_int_equal(views_open(stage->views, &options, &views, &fault), STATUS_OK);
  assert_int_equal(views_begin(views, true, &fault), STATUS_OK);
  return views;
}

static void close_rows(struct views *views) {
  struct fault fault;
  assert_int_equal(views_commit(views, &fault), STATUS_OK);
  views_close(views);
}

struct first_row {
  uint8_t key[32], value[4096];
  size_t key_size, value_size;
};

static enum status take_first(void *context, struct bytes key, struct bytes value) {
  struct first_row *row = context;
  memcpy(row->key, key.data, row->key_size = key.size);
  memcpy(row->value, value.data, row->value_size = value.size);
  return STATUS_END;
}

static struct first_row first_of(struct views *views, enum rows_table table) {
  struct first_row row = {.key_size = 0};
  assert_int_equal(views_each(views, table, take_first, &row), STATUS_END);
  return row;
}

/* A start reads what it keeps in memory; the rows of what has ended are judged by comparing. */
static void expect_found(struct stage *stage, enum rows_table table) {
  struct fault fault = {0};
  uint64_t seq;
  if (table < ROWS_ENDED) {
    expect_refused(stage, STATUS_CORRUPT, "damaged");
    return;
  }
  struct state *state = world_fold(&stage->world);
  assert_int_equal(checkpoint_compare(stage->views, stage->world.journal, state, &seq, &fault), STATUS_CORRUPT);
  assert_non_null(strstr(fault.message, "the fold of the log"));
  state_free(state);
}

static void follow_and_sort(struct stage *stage, enum rows_table table) {
  struct fault fault = {0};
  follow_all(stage);
  if (table >= ROWS_ENDED) assert_int_equal(checkpoint_index(stage->checkpoint, 0, 0, &fault), STATUS_OK);
  stop_following(stage);
}

/* Any bit of any row, and any row that is gone, is found. */
static void changed_rows_are_found(void **context) {
  struct stage *stage = *context;
  stage->random = 17;
  walk(stage, 150);
  step_administration(stage);
  struct command pause = world_queue(&stage->world, COMMAND_QUEUE_PAUSE, &stage->world.other_queue_id);
  world_identify(&stage->world, &pause, "pause");
  assert_int_equal(world_do(&stage->world, &pause).status, STATUS_OK);
  stop_following(stage);
  for (enum rows_table table = ROWS_OBJECTS; table < ROWS_TABLE_COUNT; table++) {
    follow_and_sort(stage, table);
    struct views *views = open_rows(stage);
    if (table == ROWS_BUCKETS && views_count(views, table) == 0) {
      close_rows(views);
      continue;
    }
    struct first_row row = first_of(views, table);
    struct bytes key = bytes_of(row.key, row.key_size), value = bytes_of(row.value, row.value_size);
    uint8_t *changed = value.size != 0 ? &row.value[roll(stage, row.value_size)] : &row.key[roll(stage, row.key_size)];
    if (value.size == 0) assert_int_equal(views_delete(views, table, key), STATUS_OK);
    *changed ^= (uint8_t)(1U << roll(stage, 8));
    assert_int_equal(views_put(views, table, key, value, false), STATUS_OK);
    close_rows(views);
    expect_found(stage, table);
    views = open_rows(stage);
    assert_int_equal(views_delete(views, table, key), STATUS_OK);
    close_rows(views);
    expect_found(stage, table);
    assert_int_equal(checkpoint_remove(stage->views), STATUS_OK);
  }
  follow_and_sort(stage, ROWS_ENDED);
  (void)expect_equal(stage);
}

static void of_another_format(void **context) {
  struct stage *stage = *context;
  follow_all(stage);
  stop_following(stage);
  struct views *views = open_rows(stage);
  struct first_row row = first_of(views, ROWS_META);
  row.value[0]++;
  assert_int_equal(views_put(views, ROWS_META, bytes_of(row.key, row.key_size), bytes_of(row.value, row.value_size), false),
                   STATUS_OK);
  close_rows(views);
  expect_refused(stage, STATUS_FOREIGN, "another format");
  expect_cannot_go_on(stage, STATUS_FOREIGN);
}

/* A file that is no store, or only the beginning of one. */
static void files_that_are_no_store(void **context) {
  struct stage *stage = *context;
  follow_all(stage);
  stop_following(stage);
  struct bytes sound = file_take(stage, "views/data.mdb");
  file_put(stage, "views/data.mdb", bytes_text("not a store at all"));
  expect_refused(stage, STATUS_CORRUPT, "views");
  expect_cannot_go_on(stage, STATUS_CORRUPT);
  file_put(stage, "views/data.mdb", bytes_of(sound.data, 3 * 4096));
  expect_refused(stage, STATUS_CORRUPT, "ends before");
  file_put(stage, "views/data.mdb", sound);
  (void)expect_equal(stage);
  free((void *)(uintptr_t)sound.data);
}

/* ---- comparing ---- */

static void a_fold_that_differs_is_named(void **context) {
  struct stage *stage = *context;
  struct task task = world_submitted(&stage->world, "a");
  follow_all(stage);
  stop_following(stage);
  struct state *state;
  struct checkpoint_position position;
  struct fault fault = {0};
  uint64_t seq = 0;
  assert_int_equal(load(stage, &state, &position, &fault), STATUS_OK);
  state_free(state);
  state = world_fold(&stage->world);
  assert_int_equal(checkpoint_compare(stage->views, stage->world.journal, state, &seq, &fault), STATUS_OK);
  assert_int_equal(seq, position.seq);
  state_task(state, &task.id)->epoch++;
  assert_int_equal(checkpoint_compare(stage->views, stage->world.journal, state, &seq, &fault), STATUS_CORRUPT);
  assert_non_null(strstr(fault.message, id_text(&task.id).text));
  state_free(state);
}

/* The server went on while the log was being folded: either may be behind. */
static void comparing_brings_either_forward(void **context) {
  struct stage *stage = *context;
  struct fault fault = {0};
  uint64_t seq;
  (void)world_submitted(&stage->world, "a");
  struct state *early = state_new();
  assert_int_equal(journal_replay(stage->world.journal, 0, 0, fold, early, &fault), STATUS_OK);
  (void)world_submitted(&stage->world, "b");
  follow_all(stage);
  stop_following(stage);
  uint64_t watermark = journal_last_seq(stage->world.journal);
  assert_int_equal(checkpoint_compare(stage->views, stage->world.journal, early, &seq, &fault), STATUS_OK);
  assert_true(seq == watermark && state_last_seq(early) == watermark);
  (void)world_submitted(&stage->world, "c");
  struct state *late = state_new();
  assert_int_equal(journal_replay(stage->world.journal, 0, 0, fold, late, &fault), STATUS_OK);
  assert_int_equal(checkpoint_compare(stage->views, stage->world.journal, late, &seq, &fault), STATUS_OK);
  assert_int_equal(seq, watermark);
  state_free(early), state_free(late);
}

/* A walk of the file sees a commit before readers of the log do: what is not there for them yet is no difference. */
static void a_fold_ahead_of_the_log_is_not_judged(void **context) {
  struct stage *stage = *context;
  struct journal_options options = {.read_only = true};
  struct fault fault = {0};
  struct journal *shown;
  char copy[300];
  uint64_t seq;
  (void)world_submitted(&stage->world, "a");
  follow_all(stage);
  stop_following(stage);
  uint64_t end = journal_last_seq(stage->world.journal);
  (void)snprintf(copy, sizeof copy, "%s/shown", stage->world.directory);
  if (journal_copy(stage->world.journal, copy, &fault) != STATUS_OK) fail_msg("copy: %s", fault.message);
  if (journal_open(copy, &options, &shown, &fault) != STATUS_OK) fail_msg("open: %s", fault.message);
  (void)world_submitted(&stage->world, "b");
  struct state *ahead = state_new();
  assert_int_equal(journal_replay(stage->world.journal, 0, 0, fold, ahead, &fault), STATUS_OK);
  assert_true(state_last_seq(ahead) > end);
  assert_int_equal(checkpoint_compare(stage->views, shown, ahead, &seq, &fault), STATUS_UNAVAILABLE);
  assert_non_null(strstr(fault.message, "on its way to the disk"));
  assert_int_equal(checkpoint_compare(stage->views, stage->world.journal, ahead, &seq, &fault), STATUS_OK);
  assert_int_equal(seq, end);
  state_free(ahead);
  journal_close(shown, false);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
  const struct CMUnitTest tests[] = {
      ROW(nothing_is_there),
      ROW(deleted_views_are_made_again),
      ROW(ahead_of_a_restored_log),
      ROW(of_another_log),
      ROW(changed_rows_are_found),
      ROW(of_another_format),
      ROW(files_that_are_no_store),
      ROW(a_fold_that_differs_is_named),
      ROW(comparing_brings_either_forward),
      ROW(a_fold_ahead_of_the_log_is_not_judged),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
